-- How well does an analyst's predicted gain agree with the gain that was measured?
-- typical_error is the geometric mean factor between the two; failed steps have no measured gain.
-- What a replay repeats was predicted once and counts there.
-- An advice with half a character in it is no JSON: its analyst is unknown.
WITH advised AS (
    SELECT device, contract, predicted_gain, gain_over_parent,
        known ->> 'agent_kind' AS analyst,
        known ->> 'model' AS model
    FROM (SELECT *, CASE WHEN json_valid(advice) THEN advice END AS known FROM stored.judged)
    WHERE predicted_gain > 0 AND execution = 'hardware' AND mode <> 'confirm'
        AND agent_kind IS DISTINCT FROM 'replay'
)
SELECT device, contract, analyst, model,
    count(*) AS steps,
    count(gain_over_parent) AS measured,
    median(predicted_gain) FILTER (gain_over_parent IS NOT NULL) AS predicted,
    median(gain_over_parent) AS real,
    exp(avg(abs(ln(predicted_gain / gain_over_parent)))) AS typical_error,
    avg(((predicted_gain > 1) = (gain_over_parent > 1))::INTEGER) AS right_direction
FROM advised
GROUP BY device, contract, analyst, model
ORDER BY device, contract, analyst, model;
