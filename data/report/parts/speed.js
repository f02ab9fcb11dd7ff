// How much faster: curves of fast_p, all champions as dots, and the table with their intervals.

const CHAMPIONS = TABLES.best;

// Speed-ups of the champions of a device under a contract, largest first.
function speedsOf(device, contract) {
  const [devices, contracts, speeds] = ["device", "contract", "speedup"].map((n) => CHAMPIONS.column(n));
  return speeds.filter((v, n) => v > 0 && devices[n] === device && contracts[n] === contract).sort((a, b) => b - a);
}

// Whether all champions of a device and contract are in the page: a part would tell another story.
function whole(row, count) {
  const [devices, contracts] = ["device", "contract"].map((name) => CHAMPIONS.column(name));
  return rows(CHAMPIONS).filter((n) => devices[n] === row.device && contracts[n] === row.contract).length === count;
}

function leftOut(all, drawn, name) {
  const names = all.filter((row) => !drawn.includes(row)).map((row) => row.device);
  return names.length ? el("p", { class: "note" }, `Not drawn, as not all of their champions are in this page: ${names.join(", ")}. `, command(`kforge query ${name}`)) : "";
}

// Share of the operators tried whose champion is more than p times as fast: falls at each speed.
function curve(speeds, operators, frame, [from, to]) {
  let path = `M${frame.x(to)} ${frame.y(speeds.filter((s) => s > to).length / operators)}`;
  speeds.forEach((speed, n) => {
    if (speed > to || speed < from) return;
    path += `H${frame.x(speed).toFixed(1)}V${frame.y((n + 1) / operators).toFixed(1)}`;
  });
  return `${path}H${frame.x(from)}`;
}

function fastPlot(contract, width, domain) {
  const all = records(TABLES.fast_p).filter((row) => row.contract === contract).sort((a, b) => byName(a.device, b.device));
  const found = all.filter((row) => whole(row, Math.round(row.fast_0 * row.operators)));
  const names = found.map((row) => `${row.device} (n = ${row.operators})`);
  const says = found.map((row) => `${row.device}: fast_0 ${shown(row.fast_0, "share")}, fast_1 ${shown(row.fast_1, "share")}, fast_1.5 ${shown(row["fast_1.5"], "share")}, fast_2 ${shown(row.fast_2, "share")} of ${row.operators} operators`).join("; ");
  const frame = framed({
    width,
    height: 300,
    says,
    x: { domain, log: true, label: "p: times as fast as the baseline", format: (v) => `${plainNumber(v)}×` },
    y: { domain: [0, 1], label: "share of operators tried", format: (v) => `${Math.round(100 * v)} %` },
  });
  const at = frame.x(1);
  frame.svg.append(draw("line", { class: "one", x1: at, x2: at, y1: frame.top, y2: frame.bottom }));
  found.forEach((row, n) => {
    const speeds = speedsOf(row.device, row.contract);
    frame.svg.append(
      draw("path", { class: `curve ${lineOf(row.device)}`, "data-series": n, d: curve(speeds, row.operators, frame, domain) }),
    );
  });
  return el("div", { class: "facet" }, el("h4", {}, `contract ${contract}`), frame.svg, legend(names, [frame.svg], found.map((row) => lineOf(row.device))), leftOut(all, found, "fast_p"));
}

function fastCurves(host) {
  if (!TABLES.fast_p.rows) return;
  const domain = logDomain(CHAMPIONS.column("speedup"), [0.5, 2]);
  const contracts = CONTRACTS.filter((c) => TABLES.fast_p.column("contract").includes(c));
  const width = room(host, contracts.length > 1 ? 560 : 820);
  const note = "Share of all operators tried with a confirmed kernel more than p times as fast as its baseline; an operator without one counts as not solved. The height at the left edge is the share that is right at all.";
  host.append(figure("fast_p by device and contract", note, el("div", { class: "facets" }, contracts.map((c) => fastPlot(c, width, domain)))));
}

// A dot a champion, spread within its row by a fixed pattern.
function strip(row, n, frame, y) {
  const [devices, contracts, speeds] = ["device", "contract", "speedup"].map((name) => CHAMPIONS.column(name));
  return rows(CHAMPIONS)
    .filter((k) => speeds[k] > 0 && devices[k] === row.device && contracts[k] === row.contract)
    .map((k, at) => ({
      champion: k,
      x: frame.x(speeds[k]),
      y: y + (((at * 7) % 13) - 6),
      text: `${CHAMPIONS.column("operator")[k]} on ${row.device}: ${interval(speeds[k], CHAMPIONS.column("speedup_low")[k], CHAMPIONS.column("speedup_high")[k])} over ${CHAMPIONS.column("baseline")[k]}`,
    }));
}

function medianMark(row, frame, y) {
  const x = frame.x(row.median_speedup);
  const bounds = missing(row.median_low)
    ? ""
    : draw("line", { class: "whisker", x1: frame.x(row.median_low), x2: frame.x(row.median_high), y1: y, y2: y });
  const mark = draw("path", { class: missing(row.median_low) ? "median hollow" : "median", d: `M${x} ${y - 8}l6 8l-6 8l-6 -8z` });
  return [bounds, mark];
}

function distribution(host) {
  const found = records(TABLES.speedups).sort((a, b) => byName(a.device, b.device));
  if (!found.length) return;
  const width = room(host);
  const left = Math.max(120, Math.min(200, width * 0.34));
  const height = 60 + 30 * found.length;
  const says = found.map((row) => `${row.device}, ${row.contract}: median ${interval(row.median_speedup, row.median_low, row.median_high)}, ${row.operators} operators`).join("; ");
  const domain = logDomain(CHAMPIONS.column("speedup"), [1]);
  const frame = framed({ width, height, left, says, x: { domain, log: true, label: "confirmed speed-up over the baseline, logarithmic", format: (v) => `${plainNumber(v)}×` } });
  const at = frame.x(1);
  frame.svg.append(draw("line", { class: "one", x1: at, x2: at, y1: frame.top, y2: frame.bottom }));
  const points = [];
  found.forEach((row, n) => {
    const y = 28 + 30 * n;
    const mine = strip(row, n, frame, y);
    points.push(...mine);
    const label = draw("text", { class: "label", x: left - 10, y: y - 1, "text-anchor": "end" }, row.device);
    const below = draw("text", { class: "small", x: left - 10, y: y + 11, "text-anchor": "end" }, CONTRACTS.length > 1 ? `${row.contract}, n = ${row.operators}`.slice(-left / 6) : `n = ${row.operators}`);
    frame.svg.append(label, below, dots(mine, { class: lineOf(row.device) }), ...medianMark(row, frame, y).filter(Boolean));
  });
  pointed(frame.svg, points, (point) => openPair(pairOfChampion(point.champion)));
  if (points.length < found.reduce((sum, row) => sum + row.operators, 0)) host.append(el("p", { class: "note" }, "Some dots are missing: not all champions are in this page. The medians are over all."));
  const note = "A dot is the confirmed champion of one operator; the diamond is the median over operators with its 95 % interval, hollow where there are fewer than six, too few for an interval.";
  host.append(figure(`Speed-ups of the champions${CONTRACTS.length > 1 ? "" : `, contract ${found[0].contract}`}`, note, frame.svg), el("p", { class: "note" }, command("kforge query speedups")));
}

function pairOfChampion(n) {
  const key = ["run_id", "operator", "device", "contract"].map((name) => CHAMPIONS.column(name)[n]);
  return pairNumber(...key);
}

// The interval of one champion on an axis that all rows share.
function whisker(n, domain) {
  const [value, low, high] = ["speedup", "speedup_low", "speedup_high"].map((name) => CHAMPIONS.column(name)[n]);
  if (!(value > 0)) return "–";
  const x = scaled(domain, [3, 177], true);
  const parts = [draw("line", { class: "one", x1: x(1), x2: x(1), y1: 0, y2: 16 })];
  if (low > 0 && high > 0) parts.push(draw("line", { class: "whisker", x1: x(low), x2: x(high), y1: 8, y2: 8 }));
  parts.push(draw("circle", { class: value > 1 ? "up" : "down", cx: x(value), cy: 8, r: 4 }));
  return draw("svg", { width: 180, height: 16, viewBox: "0 0 180 16", role: "img", "aria-label": interval(value, low, high) }, parts);
}

function champions() {
  if (!CHAMPIONS.rows) return answer("best");
  const domain = logDomain(CHAMPIONS.column("speedup"), [0.9, 1.1]);
  const names = ["operator", "device", "contract", "verdict", "speedup", "baseline", "needs_review", "techniques_detected", "model"];
  const columns = columnsOf(CHAMPIONS, [...names, "speedup_low", "speedup_high"]);
  columns.splice(5, 0, { name: "speedup", kind: "ratio", label: "interval", cell: (n) => whisker(n, domain) });
  return answer("best", { columns, filters: ["device", "contract", "verdict"], sort: "speedup", descending: true, open: (n, text) => pairLink(pairOfChampion(n), text) });
}

function speed() {
  fastCurves(place("fast-p"));
  distribution(place("distribution"));
  place("champions").append(champions());
  place("precision").append(answer("precision_split"));
}
