-- How far did each author's candidates get: parsed, built, right, faster; what did it take?
-- An author is a model, or an offline agent by name, in one run. A step that only repeats an
-- earlier source counts as it was judged; confirming steps count in `accepted` alone, by pair.
WITH steps AS (
    SELECT run_id, coalesce(model, agent_name) AS author, operator_hash, device, verdict, mode,
        parse_status = 'ok' AND candidate_id IS NOT NULL AS parsed, coalesce(build_ok, false) AS built,
        verdict IN ('CORRECT', 'FASTER') AS correct, date_diff('second', started_at, ended_at) AS took
    FROM stored.judged WHERE mode <> 'admit' AND agent_kind IS NOT NULL
), counted AS (
    SELECT run_id, author,
        count(DISTINCT (operator_hash, device)) AS pairs,
        count(*) FILTER (mode <> 'confirm') AS steps,
        count(*) FILTER (mode <> 'confirm' AND parsed) AS parsed,
        count(*) FILTER (mode <> 'confirm' AND built) AS built,
        count(*) FILTER (mode <> 'confirm' AND correct) AS correct,
        count(*) FILTER (mode <> 'confirm' AND verdict = 'FASTER') AS faster,
        count(DISTINCT (operator_hash, device)) FILTER (mode = 'confirm' AND correct) AS accepted,
        sum(took)::BIGINT AS seconds
    FROM steps GROUP BY run_id, author
), spent AS (
    SELECT run_id, model AS author, count(*) AS calls,
        sum(prompt_tokens)::BIGINT AS prompt_tokens,
        sum(completion_tokens)::BIGINT AS completion_tokens, sum(seconds) AS model_seconds
    FROM llm_calls GROUP BY run_id, model
)
SELECT run_id, author, pairs, steps, parsed, built, correct, faster, accepted, seconds,
    calls, prompt_tokens, completion_tokens, model_seconds
FROM counted LEFT JOIN spent USING (run_id, author)
ORDER BY run_id, author;
