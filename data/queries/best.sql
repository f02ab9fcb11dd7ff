-- Which confirmed kernel is the best of each operator, device and contract?
SELECT operator, device, contract, verdict, baseline, speedup, speedup_low, speedup_high,
    needs_review, techniques_detected, agent_kind, agent_name, model, run_id, candidate_id
FROM stored.best
ORDER BY device, contract, speedup DESC NULLS LAST, operator;
