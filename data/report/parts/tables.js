// Tables that sort and filter, a page of rows at a time: 20,000 rows cost what 25 do.

const PAGE = 25;

const KINDS = {
  share: /^(fast_|p_helps|p_otherwise|share|mended|utilisation|solved_with|right_direction|median_fraction|worst_fraction)/,
  ratio: /(speedup|gain|^predicted$|^real$|ratio|^first$|^precision$|^fusion$|^kernel$|^rest$|typical_error)/,
  p: /^(p|q|p_correct|p_faster)$/,
  usd: /usd/,
  seconds: /seconds/,
};
const BOUNDS = {
  speedup: ["speedup_low", "speedup_high"],
  median_speedup: ["median_low", "median_high"],
  p_helps: ["p_low", "p_high"],
  median_gain: ["gain_low", "gain_high"],
  median_fraction: ["fraction_low", "fraction_high"],
  speedup_ratio: ["ratio_low", "ratio_high"],
  gain: ["low", "high"],
};

function kindOf(name, values) {
  const value = values.find((v) => !missing(v));
  if (name === "verdict") return "verdict";
  if (Array.isArray(value)) return "list";
  if (typeof value === "boolean") return "bool";
  if (typeof value !== "number") return "text";
  if (name === "solved_only_with" || name === "solved_only_without") return "count";
  const found = Object.entries(KINDS).find(([, pattern]) => pattern.test(name));
  return found ? found[0] : values.every((v) => missing(v) || Number.isInteger(v)) ? "count" : "number";
}

// A column for each name; a value with an interval is one column.
function columnsOf(table, names = table.names) {
  const bounds = new Set(
    Object.entries(BOUNDS).flatMap(([name, pair]) => (table.names.includes(name) ? pair : [])),
  );
  return names
    .filter((name) => !bounds.has(name))
    .map((name) => {
      const kind = kindOf(name, table.column(name));
      const pair = (BOUNDS[name] || []).filter((bound) => table.names.includes(bound));
      const label = name.startsWith("fast_") ? name : name.replace(/seconds$/, "time").replaceAll("_", " ");
      return { name, kind, label, bounds: pair.length === 2 ? pair : null };
    });
}

function cellOf(table, column, n) {
  const value = table.column(column.name)[n];
  if (column.cell) return column.cell(n);
  if (column.kind === "verdict") return badge(value);
  if (!column.bounds) return shown(value, column.kind);
  const [low, high] = column.bounds.map((bound) => table.column(bound)[n]);
  return interval(value, low, high, column.kind);
}

const numeric = (column) => !["text", "list", "bool", "verdict", "time"].includes(column.kind);

function compared(values, sign) {
  return (a, b) => {
    const [x, y] = [values[a], values[b]];
    if (missing(x) || missing(y)) return missing(x) - missing(y);
    const order = typeof x === "number" ? x - y : byName(String(x), String(y));
    return order ? sign * order : a - b;
  };
}

// Rows whose text holds every word, and that have the chosen values.
function matching(table, state) {
  const words = state.words.toLowerCase().split(/\s+/).filter(Boolean);
  const texts = table.names.map((name) => table.column(name)).filter((values) => {
    const first = values.find((v) => !missing(v));
    return typeof first === "string" || Array.isArray(first);
  });
  const chosen = Object.entries(state.chosen).filter(([, value]) => value !== "");
  return rows(table).filter(
    (n) =>
      chosen.every(([name, value]) => String(table.column(name)[n]) === value) &&
      words.every((word) => texts.some((values) => String(values[n] ?? "").toLowerCase().includes(word))),
  );
}

function heading(column, state, resort) {
  const sorted = state.sort === column.name;
  const arrow = sorted ? (state.sign > 0 ? "▲" : "▼") : "";
  return el(
    "th",
    {
      scope: "col",
      class: numeric(column) ? "number" : null,
      "aria-sort": sorted ? (state.sign > 0 ? "ascending" : "descending") : null,
    },
    el("button", { type: "button", on: { click: () => resort(column) } }, column.label, el("span", { "aria-hidden": "true" }, arrow)),
  );
}

function selects(table, names, state, changed) {
  return names.map((name) => {
    const values = [...new Set(table.column(name).filter((v) => !missing(v)).map(String))].sort(byName);
    if (values.length < 2 || values.length > 200) return "";
    const act = (value) => {
      state.chosen[name] = value;
      changed();
    };
    return choice(name.replaceAll("_", " "), [["", "all"], ...values.map((v) => [v, v])], act);
  });
}

function pager(state, turn) {
  const button = (text, by) => el("button", { type: "button", on: { click: () => turn(by) } }, text);
  const [before, after] = [button("Previous", -1), button("Next", 1)];
  const where = el("span", { "aria-live": "polite" });
  const show = (count, total) => {
    const first = state.page * PAGE;
    const last = Math.min(first + PAGE, count);
    before.disabled = state.page === 0;
    after.disabled = last >= count;
    const of = count === total ? "" : ` (of ${shown(total, "count")})`;
    where.textContent = count ? `${first + 1}–${last} of ${shown(count, "count")}${of}` : "no row matches";
  };
  const bar = el("p", { class: "pager" }, where, before, after);
  return { bar, show };
}

const LONG = 34; // characters that a cell holds in one line

function bodyRow(table, columns, n, given) {
  const cells = columns.map((column, at) => {
    const tag = at === 0 ? "th" : "td";
    const content = cellOf(table, column, n);
    const inner = at === 0 && given.open ? given.open(n, content) : content;
    const long = typeof content === "string" && content.length > LONG;
    const kind = numeric(column) ? "number" : long ? "long" : null;
    return el(tag, { scope: at === 0 ? "row" : null, class: kind }, inner);
  });
  return el("tr", { class: given.thin && given.thin(n) ? "thin" : null }, cells);
}

// given: caption, columns, filters (names), open(row, content), thin(row), sort, descending
function tableView(table, given) {
  const columns = given.columns || columnsOf(table);
  const state = { words: "", chosen: {}, sort: given.sort, sign: given.descending ? -1 : 1, page: 0 };
  const head = el("tr");
  const body = el("tbody");
  let found = [];
  const show = () => {
    const from = state.page * PAGE;
    body.replaceChildren(...found.slice(from, from + PAGE).map((n) => bodyRow(table, columns, n, given)));
    head.replaceChildren(...columns.map((column) => heading(column, state, resort)));
    pages.show(found.length, table.rows);
  };
  const changed = () => {
    found = matching(table, state);
    if (state.sort) found.sort(compared(table.column(state.sort), state.sign));
    state.page = 0;
    show();
  };
  const pages = pager(state, (by) => {
    state.page += by;
    show();
  });
  function resort(column) {
    const flip = state.sort === column.name ? -state.sign : numeric(column) ? -1 : 1;
    Object.assign(state, { sort: column.name, sign: flip });
    const index = columns.indexOf(column);
    changed();
    head.children[index].firstChild.focus();
  }
  const search = el("input", {
    type: "search",
    on: {
      input: () => {
        state.words = search.value;
        changed();
      },
    },
  });
  const controls = el(
    "div",
    { class: "controls" },
    table.rows > 5 ? el("label", { class: "choice" }, "Filter ", search) : "",
    table.rows > 5 ? selects(table, given.filters || [], state, changed) : [],
  );
  const whole = el("table", {}, captioned(given.caption), el("thead", {}, head), body);
  const box = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": given.label }, whole);
  changed();
  return el("div", { class: "table" }, controls, box, table.rows > PAGE ? pages.bar : "");
}

// A shipped question with its answer; what it says of itself is the note.
function answer(name, given = {}) {
  const table = TABLES[name];
  const note = el("p", { class: "note" }, table.note ? `${table.note} ` : "", command(`kforge query ${name}`));
  if (!table.rows) return el("div", { class: "table empty" }, el("h3", {}, table.question), el("p", {}, "Nothing on record yet."), note);
  const caption = el("span", { class: "question" }, table.question);
  return el("div", {}, tableView(table, { caption, label: table.question, ...given }), note);
}
