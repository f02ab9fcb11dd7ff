-- What share of all operators tried has a confirmed kernel more than p times as fast (KernelBench)?
-- An operator that ended without a candidate (NOT_ADMITTED, NOT_COVERED, ...) counts as not solved.
WITH tried AS (
    SELECT DISTINCT operator_hash, device, contract FROM stored.judged WHERE execution = 'hardware'
)
SELECT device, contract,
    count(*) AS operators,
    count(best.verdict) / count(*) AS fast_0,
    count(*) FILTER (best.speedup > 1.0) / count(*) AS fast_1,
    count(*) FILTER (best.speedup > 1.5) / count(*) AS "fast_1.5",
    count(*) FILTER (best.speedup > 2.0) / count(*) AS fast_2
FROM tried LEFT JOIN stored.best best USING (operator_hash, device, contract)
GROUP BY device, contract
ORDER BY device, contract;
