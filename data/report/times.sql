-- The times of the pairs in `lot`, a row a step and shape; emulated devices have none.
SELECT t.iteration_id, shape, t.baseline, ratio, low, high, candidate_us, baseline_us, floor_us,
    warm, allocation
FROM timings t SEMI JOIN lot USING (run_id, operator_hash, device, contract)
ORDER BY t.iteration_id, shape;
