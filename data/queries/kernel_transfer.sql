-- What fraction of the best speed does a kernel translated from another device reach at once?
-- The first step of a pair that translates or was shown a foreign kernel, against the champion of
-- its operator, device and contract. An operator counts once; those wrong at once count in `right`
-- alone. from_device is `given` for a kernel that came from outside the ledger.
WITH firsts AS MATERIALIZED (
    SELECT any_value(operator_hash) AS operator_hash, any_value(device) AS device,
        any_value(contract) AS contract,
        unnest(arg_min(struct_pack(mode, reference, verdict, speedup), step))
    FROM stored.judged
    WHERE execution = 'hardware' AND candidate_id IS NOT NULL
    GROUP BY hash(run_id, operator_hash, device, contract)
), homes AS (
    SELECT operator_hash, candidate_id AS reference, arg_min(device, ended_at) AS home
    FROM stored.judged WHERE candidate_id IN (SELECT reference FROM firsts)
    GROUP BY operator_hash, candidate_id
), at_once AS (
    SELECT coalesce(home, 'given') AS from_device, f.device AS to_device, f.contract,
        f.operator_hash,
        bool_or(f.verdict IN ('CORRECT', 'FASTER')) AS correct,
        exp(avg(ln(f.speedup / best.speedup))) AS fraction
    FROM firsts f LEFT JOIN homes USING (operator_hash, reference)
        LEFT JOIN stored.best best USING (operator_hash, device, contract)
    WHERE (f.mode = 'translate' OR f.reference IS NOT NULL) AND home IS DISTINCT FROM f.device
    GROUP BY ALL
)
SELECT from_device, to_device, contract,
    count(*) AS operators,
    count(*) FILTER (correct) AS correct_at_once,
    wilson(count(*) FILTER (correct), count(*), -1) AS share_low,
    wilson(count(*) FILTER (correct), count(*), 1) AS share_high,
    count(fraction) AS timed,
    median(fraction) AS median_fraction,
    median_low(list(fraction) FILTER (fraction IS NOT NULL)) AS fraction_low,
    median_high(list(fraction) FILTER (fraction IS NOT NULL)) AS fraction_high,
    min(fraction) AS worst_fraction
FROM at_once
GROUP BY from_device, to_device, contract
ORDER BY from_device, to_device, contract;
