-- What did the language models cost, by run, model and role?
-- cost_usd sums the calls of known cost; calls_of_unknown_cost says how many it leaves out.
-- A replay asks nobody and is left out.
SELECT run_id, model, role,
    count(*) AS calls,
    sum(prompt_tokens)::BIGINT AS prompt_tokens,
    sum(cached_tokens)::BIGINT AS cached_tokens,
    sum(completion_tokens)::BIGINT AS completion_tokens,
    sum(cost_usd) AS cost_usd,
    count(*) FILTER (cost_usd IS NULL) AS calls_of_unknown_cost,
    sum(seconds) AS seconds
FROM llm_calls
WHERE NOT starts_with(model, 'replay/')
GROUP BY run_id, model, role
ORDER BY run_id, model, role;
