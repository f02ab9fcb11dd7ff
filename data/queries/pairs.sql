-- Each operator on each device with each of its runs, the latest first.
SELECT operator, device, run_id, operator_hash, epoch, count(*) AS steps, max(ended_at) AS ended_at
FROM stored.judged
GROUP BY ALL
ORDER BY max(ended_at) DESC, run_id
