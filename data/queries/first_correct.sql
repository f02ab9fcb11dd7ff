-- How many steps and seconds until a pair has its first right candidate, by device and agent?
-- Medians are of the solved pairs alone; `pairs` counts those without one too.
WITH steps AS (
    SELECT *, verdict IN ('CORRECT', 'FASTER') AND mode <> 'confirm' AS correct
    FROM stored.judged WHERE mode <> 'admit' AND execution <> 'none'
), pairs AS (
    SELECT device, contract, arg_min(agent_kind, step) AS agent, arg_min(model, step) AS model,
        1 + min(step) FILTER (correct) AS steps,
        epoch(min(ended_at) FILTER (correct) - min(started_at)) AS seconds
    FROM steps GROUP BY run_id, operator_hash, device, contract
)
SELECT device, contract, agent, model,
    count(*) AS pairs,
    count(steps) AS solved,
    wilson(count(steps), count(*), -1) AS share_low,
    wilson(count(steps), count(*), 1) AS share_high,
    median(steps) AS median_steps,
    median(seconds) AS median_seconds,
    quantile_cont(seconds, 0.9) AS p90_seconds
FROM pairs
GROUP BY device, contract, agent, model
ORDER BY device, contract, agent, model;
