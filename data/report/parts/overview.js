// What is on record, how far each device came, and what is not claimed.

const VERDICTS = ["FASTER", "CORRECT", "UNVERIFIED", "NOT_AUTHORED", "failed", "outcome"];

function headline() {
  const about = DATA.about;
  place("title").textContent = about.run_id ? `Run ${about.run_id}` : `Ledger ${about.ledger}`;
  place("warning").hidden = !about.made_up;
  place("warning").textContent = "Made-up rows: this ledger is for tests of scale and failure. No number here was measured.";
  const from = about.began ? `, steps from ${about.began} to ${about.ended} UTC` : "";
  const runs = about.run_id ? `of the ledger ${about.ledger}` : many(about.runs, "run");
  place("subtitle").textContent = `${runs}${from}; written ${about.written} UTC by kforge ${about.version}`;
}

function tile(value, label, detail) {
  return el("div", { class: "tile" }, el("strong", {}, value), el("span", {}, label), el("small", {}, detail));
}

// Money that is known; what is unknown is never zero.
function costTile() {
  const calls = records(TABLES.cost);
  if (!calls.length) return tile("no model", "was asked", "offline agents: templates and rules");
  const sum = (name) => calls.reduce((total, row) => total + (row[name] || 0), 0);
  const [all, unknown] = [sum("calls"), sum("calls_of_unknown_cost")];
  if (unknown === all) return tile("unknown", "cost of language models", `${many(all, "call")} without a price`);
  const rest = unknown ? `${many(unknown, "call")} of unknown cost not in it` : `${many(all, "call")}, all of known cost`;
  return tile(shown(sum("cost_usd"), "usd"), "for language models", rest);
}

function tiles() {
  const about = DATA.about;
  const found = records(TABLES.coverage);
  const sum = (keep) => found.filter(keep).reduce((total, row) => total + row.operators, 0);
  const hardware = sum((row) => row.execution === "hardware");
  const faster = sum((row) => row.verdict === "FASTER" && row.confirmed);
  const right = sum((row) => ["FASTER", "CORRECT"].includes(row.verdict));
  const others = about.devices - about.timed_devices;
  const untimed = [...new Set(Object.values(EXECUTION))].filter((kind) => kind !== "hardware").sort();
  return [
    tile(shown(about.operators, "count"), "operators", `${many(about.pairs, "pair")}, ${many(about.steps, "step")}${about.imported ? `; ${many(about.imported, "imported step")} counted nowhere else` : ""}`),
    tile(shown(about.devices, "count"), about.devices === 1 ? "device" : "devices", others ? `${about.timed_devices} timed, ${others} without times (${untimed.join(", ")})` : "all timed on hardware"),
    tile(`${faster} of ${hardware}`, "confirmed faster", "operators by device and contract, hardware only"),
    tile(`${right} of ${sum(() => true)}`, "right", "on hardware or emulated; failures count"),
    costTile(),
  ];
}

// By device, contract and execution, how many operators ended how.
function coverageRows() {
  const byPlace = new Map();
  for (const row of records(TABLES.coverage)) {
    const key = [row.device, row.contract, row.execution].join("\n");
    if (!byPlace.has(key)) byPlace.set(key, { ...row, ends: [] });
    byPlace.get(key).ends.push(row);
  }
  return [...byPlace.values()].sort((a, b) => byName(a.device, b.device));
}

const ending = (row) =>
  ({ FASTER: "faster", CORRECT: "correct", UNVERIFIED: "unverified", NOT_AUTHORED: "authored" })[row.verdict] || tone(row.verdict);

const endText = (row) =>
  `${row.verdict}${row.verdict === "CORRECT" && !row.confirmed ? (row.execution === "hardware" ? " (not confirmed)" : " (functionally)") : ""}: ${row.operators}`;

function coverageBar(place, most) {
  const order = ["faster", "correct", "unverified", "authored", "failed", "outcome"];
  const ends = [...place.ends].sort((a, b) => order.indexOf(ending(a)) - order.indexOf(ending(b)));
  const parts = ends.map((row) =>
    el(
      "span",
      { class: `part ${ending(row)}${row.confirmed || row.verdict !== "CORRECT" ? "" : " open"}`, style: { width: `${(100 * row.operators) / most}%` }, on: tipped(endText(row)) },
      el("span", {}, row.operators),
    ),
  );
  return el("div", { class: "bar", "aria-hidden": "true" }, parts);
}

function coverage() {
  const found = coverageRows();
  if (!found.length) return el("p", {}, "Nothing is on record yet: kforge port makes the first pairs.");
  const total = (place) => place.ends.reduce((sum, row) => sum + row.operators, 0);
  const most = Math.max(...found.map(total));
  const lines = found.map((place) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, place.device, place.execution === "hardware" ? "" : el("span", { class: "badge emulated" }, place.execution)),
      el("td", {}, place.contract),
      el("td", { class: "number" }, shown(total(place), "count")),
      el("td", { class: "wide" }, coverageBar(place, most), el("span", { class: "ends" }, place.ends.map(endText).join(" · "))),
    ),
  );
  const head = ["device", "contract", "operators", "how they ended"].map((text, n) => el("th", { scope: "col", class: n === 2 ? "number" : null }, text));
  const table = el("table", { class: "coverage" }, captioned("How far did each operator come?"), el("thead", {}, el("tr", {}, head)), el("tbody", {}, lines));
  const key = [["faster", "confirmed faster"], ["correct", "right, confirmed"], ["correct open", "right, not confirmed or emulated"], ["unverified", "UNVERIFIED: could not be executed"], ["authored", "NOT_AUTHORED"], ["failed", "failed"], ["outcome", "no candidate: NOT_ADMITTED, NOT_COVERED, ..."]];
  const swatches = el("p", { class: "legend" }, key.map(([tag, text]) => el("span", { class: "swatch" }, el("span", { class: `part ${tag}` }), text)));
  return el("div", {}, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Coverage" }, table), swatches, el("p", { class: "note" }, "One end an operator, its best over all runs shown here. ", command("kforge query coverage")));
}

function overview() {
  headline();
  place("tiles").append(...tiles());
  place("coverage").append(coverage());
  const names = Object.fromEntries(records(TABLES.speedups).map((row) => [`${row.device}\n${row.contract}`, row]));
  const emulated = DEVICES.filter((name) => EXECUTION[name] !== "hardware");
  place("devices").append(
    answer("fast_p", {
      columns: [
        ...columnsOf(TABLES.fast_p),
        { name: "device", kind: "ratio", label: "median speed-up of confirmed", cell: (n) => medianOf(names[`${TABLES.fast_p.column("device")[n]}\n${TABLES.fast_p.column("contract")[n]}`]) },
      ],
    }),
    emulated.length ? el("p", { class: "note" }, `Without times, so without a row here: ${emulated.map((name) => `${name} (${EXECUTION[name]})`).join(", ")}.`) : "",
  );
}

function medianOf(row) {
  if (!row) return "–";
  const text = interval(row.median_speedup, row.median_low, row.median_high);
  const few = missing(row.median_low) ? ", too few for an interval" : "";
  return `${text} over ${row.baselines} (n = ${row.operators}${few})`;
}
