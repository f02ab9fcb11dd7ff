-- Does a foreign kernel in the prompt help: paired arms with and without it, at equal budget?
-- An arm is what one run did for an operator, device and contract. Both arms have the same kind of
-- agent and model and are cut to the steps of the shorter. An operator counts once. The tests are
-- sign tests: of the operators solved by one arm alone, and of the speeds where both solved it.
WITH steps AS (
    SELECT run_id, operator_hash, device, contract, agent_kind, coalesce(model, '') AS model,
        verdict IN ('CORRECT', 'FASTER') AS correct, speedup, reference,
        row_number() OVER (PARTITION BY run_id, operator_hash, device, contract ORDER BY step) AS n
    FROM stored.judged
    WHERE execution = 'hardware' AND mode NOT IN ('confirm', 'admit')
), arms AS (
    SELECT run_id, operator_hash, device, contract,
        arg_min(agent_kind, n) AS agent, arg_min(model, n) AS model,
        count(*) AS steps, bool_or(reference IS NOT NULL) AS shown
    FROM steps GROUP BY run_id, operator_hash, device, contract
), matched AS (
    SELECT a.operator_hash, a.device, a.contract, a.agent, a.model,
        a.run_id AS with_run, b.run_id AS without_run, least(a.steps, b.steps) AS budget
    FROM arms a JOIN arms b USING (operator_hash, device, contract, agent, model)
    WHERE a.shown AND NOT b.shown
), compared AS (
    SELECT m.operator_hash, m.device, m.contract, m.agent, m.model, m.with_run, m.without_run,
        any_value(budget) AS budget,
        bool_or(s.correct AND s.run_id = with_run) AS solved_with,
        bool_or(s.correct AND s.run_id = without_run) AS solved_without,
        max(s.speedup) FILTER (s.correct AND s.run_id = with_run)
            / max(s.speedup) FILTER (s.correct AND s.run_id = without_run) AS gain
    FROM matched m JOIN steps s ON s.operator_hash = m.operator_hash AND s.device = m.device
        AND s.contract = m.contract AND s.run_id IN (with_run, without_run) AND s.n <= budget
    GROUP BY ALL
), operators AS (
    SELECT device, contract, agent, model, operator_hash, avg(budget) AS budget,
        avg(solved_with::INT) AS solved_with, avg(solved_without::INT) AS solved_without,
        exp(avg(ln(gain))) AS gain
    FROM compared GROUP BY ALL
), counted AS (
    SELECT device, contract, agent, nullif(model, '') AS model,
        count(*) AS operators, median(budget) AS median_steps,
        avg(solved_with) AS solved_with, avg(solved_without) AS solved_without,
        count(*) FILTER (solved_with > solved_without) AS won,
        count(*) FILTER (solved_with < solved_without) AS lost,
        count(*) FILTER (gain > 1) AS faster, count(*) FILTER (gain < 1) AS slower,
        list(gain) FILTER (gain IS NOT NULL) AS gains
    FROM operators GROUP BY ALL
)
SELECT device, contract, agent, model, operators, median_steps, solved_with, solved_without,
    won AS solved_only_with, lost AS solved_only_without,
    wilson(won, won + lost, -1) AS won_low, wilson(won, won + lost, 1) AS won_high,
    CASE WHEN operators >= 8 THEN sign_test(won, lost) END AS p_correct,
    len(gains) AS solved_by_both, list_median(gains) AS median_gain,
    median_low(gains) AS gain_low, median_high(gains) AS gain_high,
    CASE WHEN len(gains) >= 8 THEN sign_test(faster, slower) END AS p_faster
FROM counted
ORDER BY device, contract, agent, model;
