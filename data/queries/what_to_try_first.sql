-- Which technique should one try first on a device for a family of operators, on which evidence?
-- expected_gain: geometric mean over operators, shrunk to the mean elsewhere, and that to 1, by the
-- weight of four operators each. Below eight operators in all, `enough` is false. A device that
-- nobody has used yet is the one named `(new)`. Ask for yours:
-- FROM what_to_try_first WHERE device = 'cpu' AND family = 'softmax'
WITH known AS (
    SELECT technique, contract, coalesce(family, '(unknown)') AS family, device, operator_hash,
        ln(gain) AS gain, low > 1 AS helped, high < 1 AS hurt
    FROM effects
), sums AS (
    SELECT technique, contract, family, device, count(*) AS operators, sum(gain) AS gain,
        count(*) FILTER (helped) AS helped, count(*) FILTER (hurt) AS hurt
    FROM known GROUP BY ALL
), devices AS (
    SELECT DISTINCT device FROM sums UNION ALL SELECT '(new)'
), gathered AS (
    SELECT d.device, s.family, s.contract, s.technique,
        coalesce(sum(operators) FILTER (s.device = d.device), 0) AS operators_here,
        coalesce(sum(helped) FILTER (s.device = d.device), 0) AS helped_here,
        coalesce(sum(hurt) FILTER (s.device = d.device), 0) AS hurt_here,
        coalesce(sum(gain) FILTER (s.device = d.device), 0) AS gain_here,
        coalesce(sum(operators) FILTER (s.device <> d.device), 0) AS operators_elsewhere,
        coalesce(sum(helped) FILTER (s.device <> d.device), 0) AS helped_elsewhere,
        coalesce(sum(hurt) FILTER (s.device <> d.device), 0) AS hurt_elsewhere,
        coalesce(sum(gain) FILTER (s.device <> d.device), 0) AS gain_elsewhere,
        count(*) FILTER (s.device <> d.device) AS devices_elsewhere
    FROM sums s CROSS JOIN devices d
    GROUP BY ALL
), judged AS (
    SELECT *,
        exp((gain_here + 4 * gain_elsewhere / (operators_elsewhere + 4)) / (operators_here + 4))
            AS expected_gain,
        operators_here + operators_elsewhere >= 8 AS enough
    FROM gathered
)
SELECT device, family, contract,
    row_number() OVER (
        PARTITION BY device, family, contract ORDER BY enough DESC, expected_gain DESC, technique
    ) AS rank,
    technique, expected_gain, enough,
    CASE WHEN operators_here = 0 THEN 'elsewhere'
        WHEN operators_elsewhere = 0 THEN 'here' ELSE 'both' END AS evidence,
    operators_here::BIGINT AS operators_here, helped_here::BIGINT AS helped_here,
    hurt_here::BIGINT AS hurt_here, exp(gain_here / nullif(operators_here, 0)) AS gain_here,
    operators_elsewhere::BIGINT AS operators_elsewhere,
    helped_elsewhere::BIGINT AS helped_elsewhere, hurt_elsewhere::BIGINT AS hurt_elsewhere,
    exp(gain_elsewhere / nullif(operators_elsewhere, 0)) AS gain_elsewhere, devices_elsewhere
FROM judged
ORDER BY device, family, contract, rank;
