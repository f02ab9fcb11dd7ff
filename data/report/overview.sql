-- How much is on record.
SELECT count(*) AS steps, count(DISTINCT run_id) AS runs, count(DISTINCT operator_hash) AS operators,
    count(DISTINCT device) AS devices,
    count(DISTINCT device) FILTER (execution = 'hardware') AS timed_devices,
    count(DISTINCT model) AS models, min(started_at) AS began, max(ended_at) AS ended
FROM stored.steps;
