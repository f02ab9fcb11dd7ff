-- Which accepted kernels were looked at again, and which lost their standing or a part of their speed?
WITH looks AS (
    SELECT operator, device, contract, candidate_id, verdict, reason, speedup, speedup_low,
        speedup_high, ended_at, run_id,
        lag(verdict) OVER kernel AS verdict_before, lag(speedup) OVER kernel AS speedup_before,
        lag(speedup_low) OVER kernel AS low_before
    FROM stored.judged
    WHERE mode = 'confirm' AND execution = 'hardware' AND candidate_id IS NOT NULL
    WINDOW kernel AS (
        PARTITION BY operator_hash, device, contract, candidate_id ORDER BY ended_at)
)
SELECT ended_at, operator, device, contract, candidate_id, verdict_before, verdict,
    speedup_before, speedup, speedup / speedup_before AS ratio,
    verdict NOT IN ('CORRECT', 'FASTER') AS lost,
    coalesce(speedup_high < low_before AND speedup < 0.95 * speedup_before, false) AS slower,
    run_id
FROM looks
WHERE verdict_before IN ('CORRECT', 'FASTER')
ORDER BY ended_at DESC, operator, device;
