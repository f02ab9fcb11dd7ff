-- Advised steps whose gain was measured, for the picture of `calibration`; a fixed draw of them.
SELECT operator, device, contract, known ->> 'agent_kind' AS analyst, known ->> 'model' AS model,
    known ->> 'technique' AS technique, predicted_gain, gain_over_parent, gain_low, gain_high,
    run_id, step
FROM (SELECT *, CASE WHEN json_valid(advice) THEN advice END AS known FROM stored.steps)
WHERE predicted_gain > 0 AND gain_over_parent > 0 AND execution = 'hardware' AND mode <> 'confirm'
    AND agent_kind IS DISTINCT FROM 'replay'
ORDER BY hash(iteration_id)
LIMIT 3000;
