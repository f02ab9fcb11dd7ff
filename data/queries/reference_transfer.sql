-- Does a foreign kernel in the prompt help: paired arms with and without it, at equal budget?
-- An arm is what one run did for an operator, device and contract. Both arms have the same kind of
-- agent and author (a model, else templates by name) and are cut to the steps of the shorter. An
-- operator counts once. The tests are sign tests: of the operators solved by one arm alone, and of
-- the speeds where both solved it.
-- `reached` holds what an arm had after all its steps, and after those of a shorter partner.
WITH steps AS (
    SELECT hash(run_id, operator_hash, device, contract) AS arm, operator_hash, device, contract,
        step, agent_kind, coalesce(model, agent_name, '') AS author, reference,
        verdict IN ('CORRECT', 'FASTER') AS correct, speedup
    FROM stored.judged
    WHERE execution = 'hardware' AND mode NOT IN ('confirm', 'admit')
        AND agent_kind IS DISTINCT FROM 'replay'
), arms AS MATERIALIZED (
    SELECT arm, any_value(operator_hash) AS operator_hash, any_value(device) AS device,
        any_value(contract) AS contract,
        arg_min(agent_kind, step) AS agent, arg_min(author, step) AS author,
        count(*) AS steps, count(reference) > 0 AS shown,
        bool_or(correct) AS solved, max(speedup) FILTER (correct) AS fastest
    FROM steps GROUP BY arm
), matched AS MATERIALIZED (
    SELECT a.operator_hash, a.device, a.contract, a.agent, a.author, a.arm AS with_arm,
        b.arm AS without_arm, least(a.steps, b.steps) AS budget,
        CASE WHEN a.steps > b.steps THEN a.arm WHEN b.steps > a.steps THEN b.arm END AS longer
    FROM arms a JOIN arms b USING (operator_hash, device, contract, agent, author)
    WHERE a.shown AND NOT b.shown
), cut AS (
    SELECT DISTINCT longer AS arm, budget FROM matched WHERE longer IS NOT NULL
), counted_steps AS (
    SELECT arm, correct, speedup, row_number() OVER (PARTITION BY arm ORDER BY step) AS n
    FROM steps SEMI JOIN cut USING (arm)
), reached AS (
    SELECT arm, steps AS budget, solved, fastest FROM arms
    UNION ALL
    SELECT arm, budget, bool_or(correct), max(speedup) FILTER (correct)
    FROM counted_steps JOIN cut USING (arm) WHERE n <= budget GROUP BY arm, budget
), compared AS (
    SELECT m.operator_hash, m.device, m.contract, m.agent, m.author, m.budget,
        w.solved AS solved_with, o.solved AS solved_without, w.fastest / o.fastest AS gain
    FROM matched m
    JOIN reached w ON w.arm = with_arm AND w.budget = m.budget
    JOIN reached o ON o.arm = without_arm AND o.budget = m.budget
), operators AS (
    SELECT device, contract, agent, author, operator_hash, avg(budget) AS budget,
        avg(solved_with::INT) AS solved_with, avg(solved_without::INT) AS solved_without,
        exp(avg(ln(gain))) AS gain
    FROM compared GROUP BY ALL
), counted AS (
    SELECT device, contract, agent, nullif(author, '') AS author,
        count(*) AS operators, median(budget) AS median_steps,
        avg(solved_with) AS solved_with, avg(solved_without) AS solved_without,
        count(*) FILTER (solved_with > solved_without) AS won,
        count(*) FILTER (solved_with < solved_without) AS lost,
        count(*) FILTER (gain > 1) AS faster, count(*) FILTER (gain < 1) AS slower,
        list(gain) FILTER (gain IS NOT NULL) AS gains
    FROM operators GROUP BY ALL
)
SELECT device, contract, agent, author, operators, median_steps, solved_with, solved_without,
    won AS solved_only_with, lost AS solved_only_without,
    wilson(won, won + lost, -1) AS won_low, wilson(won, won + lost, 1) AS won_high,
    CASE WHEN operators >= 8 THEN sign_test(won, lost) END AS p_correct,
    len(gains) AS solved_by_both, list_median(gains) AS median_gain,
    median_low(gains) AS gain_low, median_high(gains) AS gain_high,
    CASE WHEN len(gains) >= 8 THEN sign_test(faster, slower) END AS p_faster
FROM counted
ORDER BY device, contract, agent, author;
