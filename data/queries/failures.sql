-- How do candidates fail, by device, language and family, and how often is it mended?
-- mended: a later step of the same lineage is right.
WITH ends AS (
    SELECT device, language, coalesce(family, '(unknown)') AS family, verdict, operator_hash, reason,
        max(CASE WHEN verdict IN ('CORRECT', 'FASTER') THEN step END) OVER (
            PARTITION BY run_id, operator_hash, device, contract, lineage) > step AS mended
    FROM stored.judged WHERE candidate_id IS NOT NULL AND mode <> 'confirm'
)
SELECT device, language, family, verdict,
    count(*) AS steps,
    count(DISTINCT operator_hash) AS operators,
    avg(coalesce(mended, false)::INT) AS mended,
    mode(reason) AS commonest_reason
FROM ends
WHERE verdict NOT IN ('CORRECT', 'FASTER', 'UNVERIFIED')
GROUP BY device, language, family, verdict
ORDER BY device, steps DESC, language, family, verdict;
