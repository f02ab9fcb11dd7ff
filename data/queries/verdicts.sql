-- How do steps end, by device, kind of agent and model, and what is the commonest reason?
SELECT device, agent_kind, model, verdict,
    count(*) AS steps,
    round(count(*) / sum(count(*)) OVER (PARTITION BY device, agent_kind, model), 3) AS share,
    count(DISTINCT operator_hash) AS operators,
    mode(reason) AS commonest_reason
FROM stored.judged
GROUP BY device, agent_kind, model, verdict
ORDER BY device, agent_kind, model, steps DESC, verdict;
