// Operations a second over operations a byte, under the roof that the device's peaks make.

// Rows of the profiles with the names of their pairs.
const ROOFED = records(ROOFS).map((row) => ({ ...record(PAIRS, row.pair), ...row }));

function roofPlot(found, width) {
  const drawn = found.filter((row) => row.arithmetic_intensity > 0 && row.achieved_gflop_s > 0);
  const [bandwidth, rate] = [found[0].peak_gb_s, found[0].peak_gflop_s];
  const ridge = rate ? rate / bandwidth : null;
  const x = logDomain(drawn.map((row) => row.arithmetic_intensity), ridge ? [ridge / 30, ridge * 4] : [0.1, 10]);
  const reach = (at) => Math.min(bandwidth * at, rate || Infinity);
  const y = logDomain(drawn.map((row) => row.achieved_gflop_s), [reach(x[0]) / 4, reach(x[1])]);
  const says = `Roofline of ${found[0].device}: peak ${shown(bandwidth, "number")} GB/s, ${rate ? `${shown(rate, "number")} GFLOP/s` : "operations unknown"}; ${drawn.length} champions, listed in the table below`;
  const frame = framed({
    width,
    height: 360,
    left: 64,
    says,
    x: { domain: x, log: true, label: "operations a byte that must be moved (flop/byte)" },
    y: { domain: y, log: true, label: "GFLOP/s" },
  });
  const turn = ridge && ridge < x[1] ? [ridge] : [];
  const corners = [Math.max(x[0], y[0] / bandwidth), ...turn, x[1]];
  frame.svg.append(
    draw("path", { class: "roof", d: corners.map((at, n) => `${n ? "L" : "M"}${frame.x(at)} ${frame.y(reach(at))}`).join("") }),
    draw("text", { class: "small", x: frame.right - 4, y: frame.y(reach(x[1])) - 6, "text-anchor": "end" }, rate ? `${shown(rate, "number")} GFLOP/s float32` : ""),
    draw("text", { class: "small", x: frame.x(corners[0]) + 8, y: frame.y(reach(corners[0])) + 4 }, `${shown(bandwidth, "number")} GB/s`),
  );
  const points = drawn.map((row) => ({
    x: frame.x(row.arithmetic_intensity),
    y: frame.y(row.achieved_gflop_s),
    pair: row.pair,
    text: `${row.operator}: ${shown(row.achieved_gflop_s, "number")} GFLOP/s, ${shown(row.achieved_gb_s, "number")} GB/s; ${shown(row.time_over_floor, "number")} times its floor`,
  }));
  frame.svg.append(dots(points, { class: "c0 big" }));
  pointed(frame.svg, points, (point) => openPair(point.pair));
  const missed = found.length - drawn.length;
  return el("div", {}, frame.svg, missed ? el("p", { class: "note" }, `${many(missed, "operator")} without a count of operations: in the table only.`) : "");
}

function roofTable() {
  const names = ["operator", "device", "contract", "arithmetic_intensity", "achieved_gflop_s", "achieved_gb_s", "compute_share", "bandwidth_share", "time_over_floor"];
  const table = { rows: ROOFED.length, names, column: (name) => (table[name] ??= ROOFED.map((row) => row[name] ?? null)) };
  const labels = { arithmetic_intensity: "flop/byte", achieved_gflop_s: "GFLOP/s", achieved_gb_s: "GB/s", compute_share: "of peak GFLOP/s", bandwidth_share: "of peak GB/s", time_over_floor: "time over floor" };
  const kinds = { compute_share: "share", bandwidth_share: "share", time_over_floor: "ratio" };
  const columns = columnsOf(table).map((column) => ({ ...column, label: labels[column.name] || column.label, kind: kinds[column.name] || (labels[column.name] ? "number" : column.kind) }));
  return tableView(table, { caption: "How close are the kernels to what the device can do?", label: "Roofline", columns, filters: ["device", "contract"], sort: "time_over_floor", open: (n, text) => pairLink(ROOFED[n].pair, text) });
}

function roofline() {
  const host = place("roofs");
  if (!ROOFED.length) {
    host.append(el("p", {}, "No timed step with a profile is on record here: emulated devices have no times, and rows of older versions no profile."));
    return;
  }
  const places = [...new Set(ROOFED.map((row) => `${row.device}\n${row.contract}`))];
  const box = el("div");
  const show = (value) => {
    const [device, contract] = value.split("\n");
    box.replaceChildren(roofPlot(ROOFED.filter((row) => row.device === device && row.contract === contract), room(host, 760)));
  };
  const options = places.map((value) => [value, value.replace("\n", ", ")]);
  const note = "A dot is the latest timed kernel of a pair at the official shape; the roof is made of the peaks that its profile names. Bytes are those that must cross main memory once, so a cached operator can lie above the slope.";
  host.append(figure("Roofline by device and contract", note, options.length > 1 ? el("div", { class: "controls" }, choice("device", options, show)) : el("p", {}, options[0][1]), box));
  show(places[0]);
  host.append(roofTable());
}
