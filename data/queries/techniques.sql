-- What does one technique gain over the parent, where a step added exactly that one?
-- Steps that add several are left out; those that failed or lost stay in. The means are over
-- operators, each the geometric mean of its steps. helped: the interval of that gain lies above 1, as
-- in `transfer`; hurt: below. Confirmations are not steps of their own.
WITH steps AS (
    SELECT techniques_added[1] AS technique, device, contract, operator_hash,
        verdict NOT IN ('CORRECT', 'FASTER') AS failed, ln(gain_over_parent) AS gain,
        coalesce(ln(gain_over_parent / gain_low), below) AS below,
        coalesce(ln(gain_high / gain_over_parent), above) AS above
    FROM stored.judged LEFT JOIN older_gains USING (iteration_id)
    WHERE len(techniques_added) = 1 AND len(parent_ids) > 0
        AND execution = 'hardware' AND mode <> 'confirm'
), operators AS (
    SELECT technique, device, contract, operator_hash,
        count(*) AS steps, count(gain) AS timed, count(*) FILTER (failed) AS failed,
        avg(gain) AS gain, min(gain) AS worst, max(gain) AS best,
        avg(gain) FILTER (below IS NOT NULL AND NOT failed) AS sure,
        sqrt(sum(below ^ 2) FILTER (NOT failed)) / count(below) FILTER (NOT failed) AS below,
        sqrt(sum(above ^ 2) FILTER (NOT failed)) / count(above) FILTER (NOT failed) AS above
    FROM steps GROUP BY ALL
)
SELECT technique, device, contract,
    sum(steps)::BIGINT AS steps,
    sum(timed)::BIGINT AS timed,
    sum(failed)::BIGINT AS failed,
    count(gain) AS operators,
    count(*) FILTER (sure > below) AS helped,
    count(*) FILTER (sure < -above) AS hurt,
    median(exp(gain)) AS median_gain,
    exp(avg(gain)) AS mean_gain,
    exp(min(worst)) AS worst_gain,
    exp(max(best)) AS best_gain
FROM operators
GROUP BY technique, device, contract
ORDER BY technique, device, contract;
