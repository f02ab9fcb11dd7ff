// What models cost, how well analysts foretell, how steps end.

function predictionPlot(width) {
  const found = records(PREDICTIONS);
  const both = found.flatMap((row) => [row.predicted_gain, row.gain_over_parent]);
  const domain = logDomain(both, [0.8, 1.5]);
  const format = (v) => `${plainNumber(v)}×`;
  const frame = framed({
    width,
    height: Math.min(width, 440),
    left: 60,
    says: `Predicted against measured gain of ${found.length} steps; figures in the table below`,
    x: { domain, log: true, label: "gain that the analyst predicted", format },
    y: { domain, log: true, label: "gain over the parent, measured", format },
  });
  const ends = domain.map((v) => [frame.x(v), frame.y(v)]);
  frame.svg.append(draw("line", { class: "one", x1: ends[0][0], y1: ends[0][1], x2: ends[1][0], y2: ends[1][1] }));
  const devices = [...new Set(found.map((row) => row.device))].sort(byName);
  const points = found.map((row) => ({
    x: frame.x(row.predicted_gain),
    y: frame.y(row.gain_over_parent),
    device: row.device,
    pair: pairNumber(row.run_id, row.operator, row.device, row.contract),
    text: `${row.operator} on ${row.device}, ${row.technique}: predicted ${shown(row.predicted_gain, "ratio")}, measured ${interval(row.gain_over_parent, row.gain_low, row.gain_high)} (${row.model || row.analyst})`,
  }));
  devices.forEach((device, n) => {
    frame.svg.append(dots(points.filter((p) => p.device === device), { class: lineOf(device), "data-series": n }));
  });
  pointed(frame.svg, points, (point) => openPair(point.pair));
  return [frame.svg, legend(devices, [frame.svg], devices.map(lineOf))];
}

function calibration() {
  const calls = TABLES.cost;
  place("costs").append(
    calls.rows ? answer("cost", { filters: ["run_id", "model", "role"] }) : el("p", {}, "No language model was asked: the offline agents (templates and rules) did this work at no cost. ", command("kforge query cost")),
  );
  const host = place("calibration");
  if (PREDICTIONS.rows) {
    const note = "A dot is an advised step whose gain was measured; on the line the analyst was right. Steps that failed have no measured gain: the table counts them.";
    host.append(figure("Predicted against measured gain", note, ...predictionPlot(room(host, 560))));
    if (PREDICTIONS.rows >= 3000) host.append(el("p", { class: "note" }, "A fixed draw of 3,000 steps; the table is over all."));
  }
  host.append(answer("calibration"));
  place("verdicts").append(
    answer("verdicts", { filters: ["device", "verdict", "model"] }),
    answer("failures", { filters: ["device", "language", "family", "verdict"] }),
    answer("first_correct"),
    answer("utilisation"),
    answer("drift"),
  );
}
