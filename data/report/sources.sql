-- The sources of the steps in `lot`. Below the views, whose join with all texts would be made for each.
SELECT i.iteration_id, coalesce(i.source, t.text) AS source
FROM (FROM stored.iterations SEMI JOIN lot USING (run_id, operator_hash, device, contract)) i
    LEFT JOIN stored.texts t ON t.text_id = i.source_id
WHERE i.source IS NOT NULL OR t.text IS NOT NULL;
