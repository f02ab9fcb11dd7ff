-- What does one technique gain over the parent, where a step added exactly that one?
-- Steps that add several are left out; those that failed or lost stay in. The means are over
-- operators, each the geometric mean of its steps. helped: the interval of that gain lies above 1, as
-- in `transfer`; hurt: below. Confirmations are not steps of their own.
WITH operators AS (
    SELECT techniques_added[1] AS technique, device, contract, operator_hash,
        count(*) AS steps,
        count(gain_over_parent) AS timed,
        count(*) FILTER (verdict NOT IN ('CORRECT', 'FASTER')) AS failed,
        exp(avg(ln(gain_over_parent))) AS gain,
        min(gain_over_parent) AS worst,
        max(gain_over_parent) AS best
    FROM stored.judged
    WHERE len(techniques_added) = 1 AND len(parent_ids) > 0
        AND execution = 'hardware' AND mode <> 'confirm'
    GROUP BY ALL
), intervals AS (
    SELECT technique, device, contract, operator_hash, low, high FROM effects
)
SELECT technique, device, contract,
    sum(steps)::BIGINT AS steps,
    sum(timed)::BIGINT AS timed,
    sum(failed)::BIGINT AS failed,
    count(gain) AS operators,
    count(*) FILTER (low > 1) AS helped,
    count(*) FILTER (high < 1) AS hurt,
    median(gain) AS median_gain,
    exp(avg(ln(gain))) AS mean_gain,
    min(worst) AS worst_gain,
    max(best) AS best_gain
FROM operators LEFT JOIN intervals USING (technique, device, contract, operator_hash)
GROUP BY technique, device, contract
ORDER BY technique, device, contract;
