-- What share of a campaign did each device work: checking and timing over the time it was lent?
-- From the first start to the last end of a run's steps on it; several steps at once add up.
SELECT device, run_id,
    count(*) AS steps,
    epoch(max(ended_at) - min(started_at)) AS span_seconds,
    sum(run_seconds) AS busy_seconds,
    sum(build_seconds) AS build_seconds,
    sum(run_seconds) / nullif(epoch(max(ended_at) - min(started_at)), 0) AS utilisation
FROM stored.judged
GROUP BY device, run_id
ORDER BY device, min(started_at), run_id;
