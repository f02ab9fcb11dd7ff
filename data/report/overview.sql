-- How much is on record; rows of other judges count apart.
SELECT count(*) AS steps,
    (SELECT count(*) FROM stored.steps WHERE execution = 'imported') AS imported,
    count(DISTINCT run_id) AS runs, count(DISTINCT operator_hash) AS operators,
    count(DISTINCT device) AS devices,
    count(DISTINCT device) FILTER (execution = 'hardware') AS timed_devices,
    count(DISTINCT model) AS models, min(started_at) AS began, max(ended_at) AS ended
FROM stored.judged;
