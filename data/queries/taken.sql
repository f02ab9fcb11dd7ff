-- What has each run taken so far: steps, device minutes, calls, tokens, dollars?
WITH steps AS (
    SELECT run_id, any_value(epoch) AS epoch, count(*) AS steps,
        coalesce(sum(run_seconds), 0) / 60 AS device_minutes
    FROM iterations WHERE execution <> 'imported' GROUP BY run_id
), calls AS (
    SELECT run_id, count(*) AS calls, sum(cost_usd) AS cost_usd,
        coalesce(sum(coalesce(prompt_tokens, 0) + coalesce(completion_tokens, 0)), 0)::BIGINT AS tokens
    FROM llm_calls GROUP BY run_id
)
SELECT run_id, epoch, coalesce(steps, 0) AS steps, coalesce(device_minutes, 0) AS device_minutes,
    coalesce(calls, 0) AS calls, coalesce(tokens, 0) AS tokens, cost_usd
FROM steps FULL JOIN calls USING (run_id)
ORDER BY run_id;
