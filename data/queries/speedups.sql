-- How fast are the confirmed champions: median and geometric mean over operators, by contract?
-- Each is over its own baseline, the faster stock form. Operators without a confirmed kernel are
-- not in it: `fast_p` has them. needs_review counts those that somebody should look at first.
SELECT device, contract,
    array_to_string(list_sort(list_distinct(flatten(list(string_split(baseline, ' / '))))), ', ')
        AS baselines,
    count(*) AS operators,
    count(*) FILTER (needs_review) AS needs_review,
    median(speedup) AS median_speedup,
    median_low(list(speedup)) AS median_low,
    median_high(list(speedup)) AS median_high,
    exp(avg(ln(speedup))) AS mean_speedup,
    min(speedup) AS least_speedup,
    max(speedup) AS largest_speedup
FROM stored.best
WHERE speedup > 0
GROUP BY device, contract
ORDER BY device, contract;
