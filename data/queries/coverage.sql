-- How far did each operator come on each device and contract: one verdict or outcome an operator?
-- That of its champion; without one, of its latest right step, else of one that could not be
-- executed, else of its latest step. Emulated devices say right or wrong, never how fast.
WITH steps AS (
    SELECT operator_hash, device, contract, execution, verdict, ended_at,
        CASE WHEN verdict IN ('CORRECT', 'FASTER') THEN 2
            WHEN verdict = 'UNVERIFIED' THEN 1 ELSE 0 END AS rank
    FROM stored.judged
), furthest AS (
    SELECT operator_hash, device, contract, execution,
        arg_max(verdict, (rank, coalesce(ended_at, TIMESTAMP '1970-01-01'))) AS verdict
    FROM steps GROUP BY ALL
), ends AS (
    SELECT furthest.* REPLACE (coalesce(best.verdict,
        CASE WHEN furthest.verdict = 'FASTER' THEN 'CORRECT' ELSE furthest.verdict END) AS verdict),
        best.verdict IS NOT NULL AS confirmed
    FROM furthest LEFT JOIN stored.best best USING (operator_hash, device, contract, execution)
)
SELECT device, contract, execution, verdict, confirmed, count(*) AS operators
FROM ends
GROUP BY ALL
ORDER BY device, contract, execution, verdict, confirmed;
