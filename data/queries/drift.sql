-- What changed when driver, compiler or torch of a device did, for kernels confirmed before and after?
-- Ratios are after / before; an operator counts once. Above 1, speedup_ratio says that the kernel
-- gained on its baseline.
WITH confirmed AS (
    SELECT device, contract, operator_hash, candidate_id, speedup, ended_at,
        concat_ws(', ', environment ->> 'driver', environment ->> 'compiler',
            'torch ' || (environment ->> 'torch')) AS versions
    FROM stored.judged
    WHERE mode = 'confirm' AND verdict IN ('CORRECT', 'FASTER') AND speedup > 0
        AND execution = 'hardware'
), ordered AS (
    SELECT *, lag(versions) OVER kernel AS before, lag(speedup) OVER kernel AS earlier
    FROM confirmed
    WINDOW kernel AS (
        PARTITION BY device, contract, operator_hash, candidate_id ORDER BY ended_at)
), operators AS (
    SELECT device, contract, before, versions AS after, operator_hash,
        exp(avg(ln(speedup / earlier))) AS ratio
    FROM ordered WHERE before <> versions
    GROUP BY ALL
)
SELECT device, contract, before, after,
    count(*) AS operators,
    median(ratio) AS speedup_ratio,
    median_low(list(ratio)) AS ratio_low,
    median_high(list(ratio)) AS ratio_high,
    count(*) FILTER (ratio < 0.9) AS lost_a_tenth
FROM operators
GROUP BY device, contract, before, after
ORDER BY device, contract, before, after;
