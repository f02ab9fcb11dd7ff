-- What `transfer` counts of one technique: its gain on each operator and device, with the steps.
SELECT contract, device, any_value(e.vendor) AS vendor, operator_hash,
    any_value(e.operator) AS operator, any_value(e.gain) AS gain, any_value(e.low) AS low,
    any_value(e.high) AS high, any_value(e.steps) AS steps,
    min(struct_pack(run_id := a.run_id, step := a.step)) AS first_step
FROM effects e JOIN additions a USING (technique, contract, device, operator_hash)
WHERE technique = $technique
GROUP BY contract, device, operator_hash
ORDER BY contract, operator_hash, device;
