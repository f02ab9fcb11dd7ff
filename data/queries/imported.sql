-- What did runs of other judges find, and what is our own champion of the same operator?
-- They name neither baseline nor contract: their times are their own, and no speed-up is made of them.
-- Ours is the fastest champion of a device of the same name, under any contract; NULL without one.
WITH ours AS (
    SELECT operator_hash, device, max(speedup) AS our_speedup,
        arg_max(baseline, speedup) AS our_baseline
    FROM stored.best GROUP BY ALL
)
SELECT run_id, device, operator, model,
    count(*) AS samples,
    count(*) FILTER (build_ok) AS built,
    count(*) FILTER (environment ->> 'correct' = 'True') AS right_there,
    min((environment ->> 'runtime_ms')::DOUBLE) AS fastest_ms,
    min((environment ->> 'ref_runtime_ms')::DOUBLE) AS reference_ms,
    any_value(our_speedup) AS our_speedup, any_value(our_baseline) AS our_baseline
FROM stored.steps LEFT JOIN ours USING (operator_hash, device)
WHERE execution = 'imported'
GROUP BY run_id, device, operator, operator_hash, model
ORDER BY run_id, device, operator, model;
