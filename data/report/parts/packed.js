// The data of the page: tables by column, and chunks that are unpacked when somebody asks.

const DATA = JSON.parse(place("data").textContent);

function unfolded(column) {
  return Array.isArray(column) ? column : column.codes.map((code) => column.values[code]);
}

// {rows, column(name)}: a column is an array, made when first asked for.
function opened(table) {
  const made = {};
  return {
    rows: table.rows,
    names: Object.keys(table.columns),
    question: table.question,
    note: table.note,
    column: (name) => (made[name] ??= unfolded(table.columns[name] || [])),
  };
}

const TABLES = Object.fromEntries(
  Object.entries(DATA.tables).map(([name, table]) => [name, opened(table)]),
);
const PAIRS = opened(DATA.pairs);
const ROOFS = opened(DATA.roofline);
const PREDICTIONS = opened(DATA.predictions);

const rows = (table) => Array.from({ length: table.rows }, (_, n) => n);

function record(table, n) {
  return Object.fromEntries(table.names.map((name) => [name, table.column(name)[n]]));
}

const records = (table) => rows(table).map((n) => record(table, n));

const ENDS = [];
for (const size of [...DATA.stories, ...Object.values(DATA.evidence)]) {
  ENDS.push((ENDS.length ? ENDS[ENDS.length - 1] + 1 : 0) + size);
}

let CHUNKS = null; // some megabytes: read when the first is asked for

async function unpacked(chunk) {
  CHUNKS ??= place("chunks").textContent;
  const text = CHUNKS.slice(chunk ? ENDS[chunk - 1] + 1 : 0, ENDS[chunk]);
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

const told = (pair) => pair < DATA.stories.length;
const story = (pair) => unpacked(pair);

// The rows behind a technique's cells; null where they were left out.
async function evidence(technique) {
  const at = Object.keys(DATA.evidence).indexOf(technique);
  return at < 0 ? null : opened(await unpacked(DATA.stories.length + at));
}

// The number of a pair by run, operator and device; undefined where it is not in the page.
const PAIR_NUMBERS = new Map();
for (const n of rows(PAIRS)) {
  const key = ["run_id", "operator", "device", "contract"].map((name) => PAIRS.column(name)[n]);
  if (!PAIR_NUMBERS.has(key.join("\n"))) PAIR_NUMBERS.set(key.join("\n"), n);
}
const pairNumber = (run, operator, device, contract) =>
  PAIR_NUMBERS.get([run, operator, device, contract].join("\n"));

const CONTRACTS = [...new Set(TABLES.coverage.column("contract"))];
const DEVICES = [...new Set(TABLES.coverage.column("device"))];
const EXECUTION = Object.fromEntries(
  records(TABLES.coverage)
    .sort((a, b) => (a.execution === "hardware") - (b.execution === "hardware"))
    .map((row) => [row.device, row.execution]),
);
