-- How do candidates fail, by device, language and family, and how often is it mended?
-- mended: a later step of the same lineage is right.
WITH steps AS (
    SELECT hash(run_id, operator_hash, device, contract, lineage) AS place, step, device, language,
        coalesce(family, '(unknown)') AS family, verdict, operator_hash, reason
    FROM stored.judged WHERE candidate_id IS NOT NULL AND mode <> 'confirm'
), right_steps AS (
    SELECT place, max(step) AS latest FROM steps
    WHERE verdict IN ('CORRECT', 'FASTER') GROUP BY place
), ends AS (
    SELECT steps.*, latest > step AS mended FROM steps LEFT JOIN right_steps USING (place)
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
