-- What `transfer` counts: the gain of a technique on each operator and device, with its first step.
SELECT technique, contract, device, any_value(e.vendor) AS vendor, operator_hash,
    any_value(e.operator) AS operator, any_value(e.gain) AS gain, any_value(e.low) AS low,
    any_value(e.high) AS high, any_value(e.steps) AS steps,
    arg_min(a.run_id, a.step) AS first_run, min(a.step) AS first_step
FROM effects e JOIN additions a USING (technique, contract, device, operator_hash)
GROUP BY technique, contract, device, operator_hash
ORDER BY technique, contract, operator_hash, device;
