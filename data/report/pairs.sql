-- One row a pair of each run: how far it came. A speed stands only where it was confirmed.
WITH ranked AS (
    SELECT *, 1000000 * CASE WHEN mode = 'confirm' THEN 3
        WHEN verdict IN ('CORRECT', 'FASTER') THEN 2
        WHEN verdict = 'UNVERIFIED' THEN 1 ELSE 0 END + step AS place
    FROM stored.steps
), ended AS (
    SELECT run_id, operator_hash, device, contract,
        any_value(operator) AS operator, any_value(family) AS family, any_value(vendor) AS vendor,
        any_value(execution) AS execution, any_value(epoch) AS epoch,
        count(*) AS steps, max(ended_at) AS ended_at,
        arg_max(struct_pack(verdict, reason, mode, baseline, speedup, speedup_low, speedup_high,
            needs_review, language, agent_kind, model), place) AS last
    FROM ranked
    GROUP BY run_id, operator_hash, device, contract
)
SELECT run_id, operator_hash, operator, device, contract, family, vendor, execution, epoch, steps,
    last.verdict AS verdict, last.mode = 'confirm' AS confirmed, last.reason AS reason,
    CASE WHEN last.mode = 'confirm' THEN last.baseline END AS baseline,
    CASE WHEN last.mode = 'confirm' THEN last.speedup END AS speedup,
    CASE WHEN last.mode = 'confirm' THEN last.speedup_low END AS speedup_low,
    CASE WHEN last.mode = 'confirm' THEN last.speedup_high END AS speedup_high,
    last.needs_review AS needs_review, last.language AS language,
    last.agent_kind AS agent_kind, last.model AS model,
    best.run_id IS NOT NULL AS champion, ended.ended_at AS ended_at
FROM ended LEFT JOIN (SELECT run_id, operator_hash, device, contract FROM stored.best) best
    USING (run_id, operator_hash, device, contract)
ORDER BY champion DESC, ended_at DESC NULLS LAST, run_id, operator_hash, device, contract;
