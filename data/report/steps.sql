-- The steps of the pairs in `lot`, with all that the story of a pair tells.
SELECT i.run_id, i.operator_hash, i.device, i.contract, iteration_id, lineage, step, mode,
    candidate_id, parent_ids, reference, verdict, reason, needs_review, execution, baseline,
    speedup, speedup_low, speedup_high, gain_over_parent, gain_low, gain_high,
    techniques, techniques_added, techniques_detected, agent_kind, agent_name, model, cost_usd,
    isolation, language, parameters, advice, predicted_gain, build_seconds, run_seconds,
    environment,
    CASE WHEN json_valid(record) THEN json_extract(record, '$.profile.metrics')::VARCHAR END
        AS profile,
    started_at, ended_at
FROM stored.steps i SEMI JOIN lot USING (run_id, operator_hash, device, contract)
ORDER BY i.run_id, i.operator_hash, i.device, i.contract, step, lineage;
