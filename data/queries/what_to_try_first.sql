-- Which technique should one try first on a device for a family of operators, on which evidence?
-- expected_gain: geometric mean over operators, shrunk to the mean elsewhere, and that to 1, by the
-- weight of four operators each. Elsewhere an operator counts once, whatever the number of devices:
-- with its mean gain there, as helped where it was on one and was hurt on none. Below eight different
-- operators in all, `enough` is false. A device that nobody has used yet is the one named `(new)`.
-- Ask for yours: FROM what_to_try_first WHERE device = 'cpu' AND family = 'softmax'
WITH known AS MATERIALIZED (
    SELECT technique, contract, coalesce(family, '(unknown)') AS family, device, operator_hash,
        ln(gain) AS gain, (low > 1)::INT AS up, (high < 1)::INT AS down
    FROM effects
), operators AS (
    SELECT technique, contract, family, operator_hash,
        count(*) AS devices, sum(gain) AS gain, sum(up) AS up, sum(down) AS down
    FROM known GROUP BY ALL
), everywhere AS (
    SELECT technique, contract, family, count(*) AS operators, sum(gain / devices) AS gain,
        count(*) FILTER (up > 0 AND down = 0) AS helped,
        count(*) FILTER (down > 0 AND up = 0) AS hurt
    FROM operators GROUP BY ALL
), seen AS (
    SELECT technique, contract, family, count(DISTINCT device) AS devices FROM known GROUP BY ALL
), -- What a device's operators are here, and how much less of them is elsewhere than everywhere.
here AS (
    SELECT k.technique, k.contract, k.family, k.device, count(*) AS operators,
        sum(k.gain) AS gain, sum(k.up) AS helped, sum(k.down) AS hurt,
        count(*) FILTER (o.devices = 1) AS less_operators,
        sum(o.gain / o.devices - CASE WHEN o.devices > 1
            THEN (o.gain - k.gain) / (o.devices - 1) ELSE 0 END) AS less_gain,
        sum((o.up > 0 AND o.down = 0)::INT - (o.up > k.up AND o.down = k.down)::INT)
            AS less_helped,
        sum((o.down > 0 AND o.up = 0)::INT - (o.down > k.down AND o.up = k.up)::INT) AS less_hurt
    FROM known k JOIN operators o USING (technique, contract, family, operator_hash)
    GROUP BY ALL
), devices AS (
    SELECT DISTINCT device FROM known UNION ALL SELECT '(new)'
), gathered AS (
    SELECT d.device, e.family, e.contract, e.technique, e.operators,
        coalesce(h.operators, 0) AS operators_here, coalesce(h.helped, 0) AS helped_here,
        coalesce(h.hurt, 0) AS hurt_here, coalesce(h.gain, 0) AS gain_here,
        e.operators - coalesce(less_operators, 0) AS operators_elsewhere,
        e.helped - coalesce(less_helped, 0) AS helped_elsewhere,
        e.hurt - coalesce(less_hurt, 0) AS hurt_elsewhere,
        e.gain - coalesce(less_gain, 0) AS gain_elsewhere,
        s.devices - (h.device IS NOT NULL)::INT AS devices_elsewhere
    FROM devices d CROSS JOIN everywhere e
        JOIN seen s USING (technique, contract, family)
        LEFT JOIN here h USING (device, technique, contract, family)
), judged AS (
    SELECT *,
        exp((gain_here + 4 * gain_elsewhere / (operators_elsewhere + 4)) / (operators_here + 4))
            AS expected_gain,
        operators >= 8 AS enough
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
