// The transfer map: a cell is a technique and an ordered pair of devices; a click shows its rows.

const SIGNS = { transfers: "▲", backfires: "▼", unclear: "?", "too few": "" };
const TRANSFER = records(TABLES.transfer);

function sentence(cell) {
  const gain = `median gain ${interval(cell.median_gain, cell.gain_low, cell.gain_high)}`;
  const share = `helped there in ${cell.helped_there} of the ${cell.helped_here} operators where it helped here (${interval(cell.p_helps, cell.p_low, cell.p_high, "share")}), hurt in ${cell.hurt_there}`;
  const claim = cell.finding === "too few" ? "too few operators: nothing is claimed" : `${cell.finding}, q = ${shown(cell.q, "p")}`;
  return `${cell.technique}, ${cell.here} to ${cell.there}, contract ${cell.contract}: tried on both for ${many(cell.tried_on_both, "operator")}; ${share}; ${gain}; ${claim}`;
}

// -4 to 4: how much faster or slower, in steps of about 7 %.
function warmth(cell) {
  if (cell.finding === "too few" || missing(cell.median_gain)) return "thin";
  const step = Math.round(Math.log(cell.median_gain) / 0.07);
  return `w${Math.max(-4, Math.min(4, step))}`.replace("-", "m");
}

function cellButton(cell, act) {
  const gain = missing(cell.median_gain) ? "–" : shown(cell.median_gain, "ratio");
  return el(
    "button",
    { type: "button", tabindex: "-1", class: `${warmth(cell)} ${cell.finding.replace(" ", "-")}`, "aria-label": sentence(cell), on: { click: (event) => act(cell, event.currentTarget), ...tipped(sentence(cell)) } },
    el("strong", {}, gain, el("span", { class: "sign" }, SIGNS[cell.finding])),
    el("small", {}, `${cell.helped_there}/${cell.helped_here}`),
  );
}

// Arrow keys go from cell to cell; one cell is in the tab order.
function walk(grid) {
  const buttons = () => [...grid.querySelectorAll("tbody button")];
  if (buttons().length) buttons()[0].tabIndex = 0;
  grid.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const cell = event.target.closest("td");
    if (!step || !cell) return;
    event.preventDefault();
    const lines = [...grid.tBodies[0].rows];
    let [row, column] = [lines.indexOf(cell.parentNode), cell.cellIndex];
    for (let next; ; ) {
      [row, column] = [row + step[0], column + step[1]];
      next = lines[row] && lines[row].cells[column];
      if (!next) return;
      const button = next.querySelector("button");
      if (button) {
        buttons().forEach((other) => (other.tabIndex = other === button ? 0 : -1));
        button.focus();
        return;
      }
    }
  });
}

// Rows and columns of the map: techniques by device there, or devices by devices for a technique.
function gridOf(cells, view) {
  const [kind, name] = view.split("\n");
  const mine = cells.filter((cell) => cell[kind] === name);
  const [rowName, title] = kind === "here" ? ["technique", `Where a technique helped on ${name}, what did it do there?`] : ["here", `${name}: where it helped on a row's device, what did it do on a column's?`];
  const order = (key) => [...new Set(mine.map((cell) => cell[key]))].sort(byName);
  return { mine, rowName, title, rows: order(rowName), columns: order("there") };
}

function grid(cells, view, act) {
  const { mine, rowName, title, rows: names, columns } = gridOf(cells, view);
  const byPlace = new Map(mine.map((cell) => [`${cell[rowName]}\n${cell.there}`, cell]));
  const head = el("tr", {}, el("th", { scope: "col" }, rowName === "technique" ? "technique" : "here"), columns.map((name) => el("th", { scope: "col" }, name)));
  const body = names.map((name) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, name),
      columns.map((column) => {
        const cell = byPlace.get(`${name}\n${column}`);
        return el("td", {}, cell ? cellButton(cell, act) : "");
      }),
    ),
  );
  const table = el("table", { class: "map" }, captioned(title), el("thead", {}, head), el("tbody", {}, body));
  walk(table);
  return table;
}

function views(cells) {
  const tried = (key) => {
    const sums = new Map();
    for (const cell of cells) sums.set(cell[key], (sums.get(cell[key]) || 0) + cell.helped_here);
    return [...sums].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  };
  return [
    ...tried("here").map((name) => [`here\n${name}`, `from ${name}`]),
    ...tried("technique").map((name) => [`technique\n${name}`, `technique ${name}`]),
  ];
}

function key() {
  const steps = ["wm4", "wm2", "w0", "w2", "w4"];
  const texts = ["0.76× or less", "0.87×", "1×", "1.15×", "1.3× or more"];
  return el(
    "p",
    { class: "legend" },
    steps.map((tag, n) => el("span", { class: "swatch" }, el("span", { class: `cell ${tag}` }), texts[n])),
    el("span", { class: "swatch" }, "▲ transfers, ▼ backfires (q ≤ 0.05, corrected over all cells of the contract), ? unclear"),
    el("span", { class: "swatch" }, el("span", { class: "cell thin" }), "below 8 operators: not claimed"),
  );
}

function transferMap(host) {
  if (!TRANSFER.length) {
    host.append(figure("Transfer map", null, el("p", {}, "No technique was tried alone on two devices for the same operator and contract yet; transfer is measured from such steps only."), el("p", { class: "note" }, command("kforge query transfer"))));
    return;
  }
  const state = { contract: TRANSFER[0].contract, level: "device", view: null };
  const box = el("div", { class: "scroll", role: "region", "aria-label": "Transfer map" });
  const controls = el("div", { class: "controls" });
  const redraw = () => {
    const cells = TRANSFER.filter((cell) => cell.contract === state.contract && cell.level === state.level);
    const options = views(cells);
    if (!options.some(([value]) => value === state.view)) state.view = options.length ? options[0][0] : null;
    const set = (name) => (value) => {
      state[name] = value;
      redraw();
    };
    const contracts = [...new Set(TRANSFER.map((cell) => cell.contract))].map((c) => [c, c]);
    controls.replaceChildren(choice("contract", contracts, set("contract"), state.contract), choice("between", [["device", "devices"], ["vendor", "vendors"]], set("level"), state.level), choice("show", options, set("view"), state.view));
    box.replaceChildren(state.view ? grid(cells, state.view, showEvidence) : el("p", {}, "Nothing was tried on two of them."));
  };
  redraw();
  const note = "Median gain there over the operators where the technique helped here, and in how many of those it helped there too. Press a cell for the rows behind it.";
  host.append(figure("Transfer map", note, controls, box, key()), el("p", { class: "note" }, command("kforge query transfer")));
}

function effectText(row, name) {
  const effect = row.low > 1 ? "helped" : row.high < 1 ? "hurt" : "no clear effect";
  return `${name ? `${row.device}: ` : ""}${interval(row.gain, row.low, row.high)} ${effect}`;
}

// One row an operator that was tried on both sides of the cell, as `transfer` counts them.
function evidenceRows(effects, cell) {
  const side = cell.level === "device" ? "device" : "vendor";
  const byOperator = new Map();
  for (const row of effects) {
    if (row.contract !== cell.contract || ![cell.here, cell.there].includes(row[side])) continue;
    const found = byOperator.get(row.operator_hash) || { operator: row.operator, here: [], there: [] };
    found[row[side] === cell.here ? "here" : "there"].push(row);
    byOperator.set(row.operator_hash, found);
  }
  return [...byOperator.values()].filter((row) => row.here.length && row.there.length);
}

function evidenceTable(found, cell) {
  const texts = (side) => found.map((row) => row[side].map((effect) => effectText(effect, cell.level !== "device")).join("; "));
  const columns = {
    operator: found.map((row) => row.operator),
    [`here: ${cell.here}`]: texts("here"),
    [`there: ${cell.there}`]: texts("there"),
    "gain here": found.map((row) => row.here[0].gain),
    "gain there": found.map((row) => row.there[0].gain),
    "steps here": found.map((row) => row.here.reduce((sum, r) => sum + r.steps, 0)),
    "steps there": found.map((row) => row.there.reduce((sum, r) => sum + r.steps, 0)),
  };
  const alone = found.every((row) => row.here.length === 1 && row.there.length === 1);
  const names = Object.keys(columns).filter((name) => alone || !name.startsWith("gain"));
  const table = { rows: found.length, names, column: (name) => columns[name] };
  const first = (row) => row.here[0];
  const open = (n, text) => pairLink(pairNumber(first(found[n]).first_run, found[n].operator, first(found[n]).device, cell.contract), text);
  return tableView(table, { caption: "The operators behind the cell", label: "Evidence", sort: "operator", open });
}

async function showEvidence(cell, button) {
  const host = place("evidence");
  const effects = await evidence(cell.technique);
  const heading = el("h3", { tabindex: "-1" }, `${cell.technique}: ${cell.here} → ${cell.there}`);
  const back = el("button", { type: "button", on: { click: () => button.focus() } }, "Back to the map");
  const left = el("p", {}, "These rows were left out to keep the file small: ", command(`kforge query "FROM effects WHERE technique = '${cell.technique}'"`));
  host.replaceChildren(el("div", { class: "panel" }, heading, el("p", {}, `${sentence(cell)}.`), effects ? evidenceTable(evidenceRows(records(effects), cell), cell) : left, back));
  heading.focus();
}

function transfer() {
  transferMap(place("map"));
  const thin = (table, test) => (n) => test(table, n);
  const few = thin(TABLES.transfer, (table, n) => table.column("finding")[n] === "too few");
  const unsure = thin(TABLES.what_to_try_first, (table, n) => !table.column("enough")[n]);
  place("advice").append(
    answer("what_to_try_first", { filters: ["device", "family", "contract", "technique"], thin: unsure }),
    answer("transfer", { filters: ["level", "contract", "technique", "here", "there", "finding"], thin: few }),
  );
  place("techniques").append(answer("techniques", { filters: ["technique", "device"] }));
  place("kernels").append(answer("kernel_transfer"), answer("reference_transfer"), answer("head_start"));
}
