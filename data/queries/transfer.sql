-- Where a technique helped on one device or vendor, does it help on another: how often, how much?
-- An operator counts once in a cell: tried on both, under the same contract. helped: the interval of
-- the gain lies above 1; hurt: below. p_helps has Wilson's interval, the median gain there that of
-- order statistics. p_otherwise: share helped there of those not helped here. q: sign test of the
-- gain there, Benjamini-Hochberg over all cells of the contract with at least 8 operators; below,
-- no claim is made.
-- Millions of operators are counted in a large ledger: cells and places have numbers meanwhile.
WITH gained AS MATERIALIZED (FROM effects), vendors AS (
    SELECT technique, contract, vendor, operator_hash, exp(avg(ln(gain))) AS gain,
        exp(avg(ln(gain)) - sqrt(sum(ln(gain / low) ^ 2)) / count(*)) AS low,
        exp(avg(ln(gain)) + sqrt(sum(ln(high / gain) ^ 2)) / count(*)) AS high
    FROM gained
    GROUP BY technique, contract, vendor, operator_hash
), places AS (
    SELECT 'device' AS level, technique, contract, operator_hash, device AS place,
        gain, low > 1 AS helped, high < 1 AS hurt
    FROM gained
    UNION ALL
    SELECT 'vendor', technique, contract, operator_hash, vendor, gain, low > 1, high < 1
    FROM vendors
), cells AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY level, technique, contract, place)::INTEGER AS cell,
        dense_rank() OVER (ORDER BY level, technique, contract)::INTEGER AS kind
    FROM (SELECT DISTINCT level, technique, contract, place FROM places)
), operators AS MATERIALIZED (
    SELECT operator_hash, row_number() OVER ()::INTEGER AS operator
    FROM (SELECT DISTINCT operator_hash FROM gained)
), numbered AS MATERIALIZED (
    SELECT kind::BIGINT << 32 | operator AS tried, cell, gain, helped, hurt
    FROM places JOIN cells USING (level, technique, contract, place)
    JOIN operators USING (operator_hash)
), met AS (
    SELECT here.cell AS one, there.cell AS other, count(*) AS tried_on_both
    FROM numbered here JOIN numbered there USING (tried)
    WHERE here.cell < there.cell
    GROUP BY here.cell, there.cell
), tried AS (
    SELECT one AS here, other AS there, tried_on_both FROM met
    UNION ALL
    SELECT other, one, tried_on_both FROM met
), summed AS MATERIALIZED (
    SELECT here.cell AS here, there.cell AS there,
        count(*) AS helped_here,
        count(*) FILTER (there.helped) AS helped_there,
        count(*) FILTER (there.hurt) AS hurt_there,
        count(*) FILTER (there.gain > 1) AS up,
        count(*) FILTER (there.gain < 1) AS down,
        list_sort(list(there.gain)) AS gains
    FROM numbered here JOIN numbered there USING (tried)
    WHERE here.helped AND here.cell <> there.cell
    GROUP BY here.cell, there.cell
), counted AS (
    SELECT h.level, h.technique, h.contract, h.place AS here, t.place AS there, tried_on_both,
        coalesce(s.helped_here, 0) AS helped_here, coalesce(s.helped_there, 0) AS helped_there,
        coalesce(s.hurt_there, 0) AS hurt_there, coalesce(s.up, 0) AS up,
        coalesce(s.down, 0) AS down, s.gains AS gains,
        coalesce(back.helped_here, 0) - coalesce(s.helped_there, 0) AS helped_there_only
    FROM tried LEFT JOIN summed s USING (here, there)
        LEFT JOIN summed back ON back.here = tried.there AND back.there = tried.here
        JOIN cells h ON h.cell = tried.here JOIN cells t ON t.cell = tried.there
), tested AS (
    SELECT *, CASE WHEN helped_here >= 8 THEN sign_test(up, down) END AS p FROM counted
), ranked AS (
    SELECT *, p * count(p) OVER (PARTITION BY contract)
        / count(p) OVER (PARTITION BY contract ORDER BY p NULLS LAST) AS stepped
    FROM tested
), corrected AS (
    SELECT *, min(stepped) OVER (
        PARTITION BY contract ORDER BY p NULLS LAST
        RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS q
    FROM ranked
)
SELECT level, technique, contract, here, there, tried_on_both, helped_here, helped_there,
    hurt_there,
    helped_there / nullif(helped_here, 0) AS p_helps,
    wilson(helped_there, helped_here, -1) AS p_low,
    wilson(helped_there, helped_here, 1) AS p_high,
    helped_there_only / nullif(tried_on_both - helped_here, 0) AS p_otherwise,
    list_median(gains) AS median_gain,
    gains[median_rank(len(gains))] AS gain_low,
    gains[len(gains) + 1 - median_rank(len(gains))] AS gain_high,
    p, q,
    CASE WHEN p IS NULL THEN 'too few'
        WHEN q <= 0.05 AND up > down THEN 'transfers'
        WHEN q <= 0.05 THEN 'backfires'
        ELSE 'unclear'
    END AS finding
FROM corrected
ORDER BY level, q NULLS LAST, technique, contract, here, there;
