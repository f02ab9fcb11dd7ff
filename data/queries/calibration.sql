-- How well does an analyst's predicted gain agree with the gain that was measured?
-- typical_error is the geometric mean factor between the two; failed steps have no measured gain.
WITH advised AS (
    SELECT device, predicted_gain, gain_over_parent,
        advice ->> 'agent_kind' AS analyst,
        advice ->> 'model' AS model
    FROM iterations
    WHERE predicted_gain > 0 AND execution = 'hardware' AND mode <> 'confirm'
)
SELECT device, analyst, model,
    count(*) AS steps,
    count(gain_over_parent) AS measured,
    median(predicted_gain) FILTER (gain_over_parent IS NOT NULL) AS predicted,
    median(gain_over_parent) AS real,
    exp(avg(abs(ln(predicted_gain / gain_over_parent)))) AS typical_error,
    avg(((predicted_gain > 1) = (gain_over_parent > 1))::INTEGER) AS right_direction
FROM advised
GROUP BY device, analyst, model
ORDER BY device, analyst, model;
