-- Which kernels are accepted, as their latest confirming run left them, the best of each place first?
SELECT operator, device, contract, candidate_id, verdict, speedup, speedup_low, ended_at,
    run_id, operator_hash, lineage, step
FROM stored.confirmed
WHERE verdict IN ('CORRECT', 'FASTER')
ORDER BY device, operator, operator_hash, contract,
    speedup_low DESC NULLS LAST, ended_at DESC NULLS LAST, iteration_id;
