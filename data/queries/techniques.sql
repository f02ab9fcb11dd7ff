-- What does one technique gain over the parent, where a step added exactly that one?
-- Steps that add several are left out; those that failed or lost stay in. Confirmations are not steps of their own.
SELECT techniques_added[1] AS technique, device,
    count(*) AS steps,
    count(gain_over_parent) AS timed,
    count(*) FILTER (verdict NOT IN ('CORRECT', 'FASTER')) AS failed,
    count(*) FILTER (gain_over_parent > 1.02) AS helped,
    count(*) FILTER (gain_over_parent < 0.98) AS hurt,
    median(gain_over_parent) AS median_gain,
    exp(avg(ln(gain_over_parent))) AS mean_gain,
    min(gain_over_parent) AS worst_gain,
    max(gain_over_parent) AS best_gain
FROM iterations
WHERE len(techniques_added) = 1 AND len(parent_ids) > 0
    AND execution = 'hardware' AND mode <> 'confirm'
GROUP BY technique, device
ORDER BY technique, device;
