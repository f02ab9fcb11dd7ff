-- How much of the champions' speed is precision, how much fusion, how much a better kernel?
-- From a champion back to the first of its ancestors that was not timed beside its parent: `first`
-- is that one's speed-up, the others are gains of the steps since then. A step that adds
-- low_precision is precision, else one that fuses is fusion, else kernel. `rest` is what confirming
-- found beside the product. All are geometric means over operators.
WITH RECURSIVE champions AS MATERIALIZED (
    SELECT run_id, operator_hash, device, contract, candidate_id, speedup FROM stored.best
), steps AS MATERIALIZED (
    SELECT run_id, operator_hash, device, contract, candidate_id, step, parent_ids[1] AS parent,
        speedup, gain_over_parent AS gain, techniques_added AS added
    FROM stored.judged SEMI JOIN champions USING (run_id, operator_hash, device, contract)
    WHERE mode <> 'confirm' AND execution = 'hardware' AND speedup > 0
), path AS (
    SELECT s.*, b.speedup AS total FROM champions b
    JOIN steps s USING (run_id, operator_hash, device, contract, candidate_id)
    UNION ALL
    SELECT s.*, p.total FROM path p JOIN steps s ON s.run_id = p.run_id
        AND s.operator_hash = p.operator_hash AND s.device = p.device
        AND s.contract = p.contract AND s.candidate_id = p.parent AND s.step < p.step
    WHERE p.gain > 0
), kinds AS (
    SELECT *, CASE WHEN gain IS NULL THEN 'first'
        WHEN list_contains(added, 'low_precision') THEN 'precision'
        WHEN list_has_any(added, ['fuse_epilogue', 'fuse_prologue', 'single_pass']) THEN 'fusion'
        ELSE 'kernel' END AS kind
    FROM path
), operators AS (
    SELECT operator_hash, device, contract, any_value(total) AS total,
        coalesce(sum(ln(speedup)) FILTER (kind = 'first'), 0) AS first,
        coalesce(sum(ln(gain)) FILTER (kind = 'precision'), 0) AS precision,
        coalesce(sum(ln(gain)) FILTER (kind = 'fusion'), 0) AS fusion,
        coalesce(sum(ln(gain)) FILTER (kind = 'kernel'), 0) AS kernel
    FROM kinds GROUP BY operator_hash, device, contract
    HAVING bool_or(kind = 'first')
)
SELECT device, contract, count(*) AS operators,
    exp(avg(ln(total))) AS speedup,
    exp(avg(first)) AS first,
    exp(avg(precision)) AS precision,
    exp(avg(fusion)) AS fusion,
    exp(avg(kernel)) AS kernel,
    exp(avg(ln(total) - first - precision - fusion - kernel)) AS rest
FROM operators
GROUP BY device, contract
ORDER BY device, contract;
