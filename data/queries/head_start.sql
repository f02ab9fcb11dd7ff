-- How many evaluations does a foreign kernel save: steps until 95 % of the speed that the pair reached?
-- Paired arms with and without it, as in `reference_transfer`, each with all its steps. The goal is
-- the same for both: 95 % of the fastest that either found. An arm that never reached it counts as
-- one step more than the longer of the two took. An operator counts once; `share` is what the arm
-- that was shown a kernel needed of the other's steps: 0.5 saves half. The test is a sign test.
WITH steps AS (
    SELECT hash(run_id, operator_hash, device, contract) AS arm, operator_hash, device, contract,
        step, agent_kind, coalesce(model, agent_name, '') AS author, reference,
        CASE WHEN verdict IN ('CORRECT', 'FASTER') THEN speedup END AS speed
    FROM stored.judged
    WHERE execution = 'hardware' AND mode NOT IN ('confirm', 'admit')
        AND agent_kind IS DISTINCT FROM 'replay'
), arms AS MATERIALIZED (
    SELECT arm, any_value(operator_hash) AS operator_hash, any_value(device) AS device,
        any_value(contract) AS contract,
        arg_min(agent_kind, step) AS agent, arg_min(author, step) AS author,
        count(*) AS steps, count(reference) > 0 AS shown, max(speed) AS fastest
    FROM steps GROUP BY arm
), matched AS MATERIALIZED (
    SELECT a.operator_hash, a.device, a.contract, a.agent, a.author, a.arm AS with_arm,
        b.arm AS without_arm, greatest(a.steps, b.steps) + 1 AS never,
        0.95 * greatest(a.fastest, b.fastest) AS goal
    FROM arms a JOIN arms b USING (operator_hash, device, contract, agent, author)
    WHERE a.shown AND NOT b.shown
), goals AS (
    SELECT with_arm AS arm, goal FROM matched UNION SELECT without_arm, goal FROM matched
), reached AS MATERIALIZED (
    SELECT arm, goal, min(step) + 1 AS evaluations
    FROM steps JOIN goals USING (arm) WHERE speed >= goal GROUP BY arm, goal
), compared AS (
    SELECT m.*, w.evaluations AS shown, o.evaluations AS cold
    FROM matched m
    LEFT JOIN reached w ON w.arm = with_arm AND w.goal = m.goal
    LEFT JOIN reached o ON o.arm = without_arm AND o.goal = m.goal
    WHERE m.goal IS NOT NULL
), operators AS (
    SELECT device, contract, agent, author, operator_hash,
        avg(coalesce(shown, never)) AS shown, avg((shown IS NOT NULL)::INT) AS got,
        avg(coalesce(cold, never)) AS cold, avg((cold IS NOT NULL)::INT) AS cold_got
    FROM compared GROUP BY ALL
), counted AS (
    SELECT device, contract, agent, nullif(author, '') AS author, count(*) AS operators,
        avg(shown) AS steps_with, avg(cold) AS steps_without,
        avg(got) AS reached_with, avg(cold_got) AS reached_without,
        list(shown / cold) AS shares,
        count(*) FILTER (shown < cold) AS fewer, count(*) FILTER (shown > cold) AS more
    FROM operators GROUP BY ALL
)
SELECT device, contract, agent, author, operators,
    steps_with, steps_without, reached_with, reached_without,
    list_median(shares) AS median_share, median_low(shares) AS share_low,
    median_high(shares) AS share_high, fewer, more,
    CASE WHEN operators >= 8 THEN sign_test(fewer, more) END AS p_fewer
FROM counted
ORDER BY device, contract, agent, author;
