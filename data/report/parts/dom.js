// Elements, numbers and words. What comes from the ledger goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") {
      for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    } else if (name === "style") {
      for (const [property, to] of Object.entries(value)) node.style.setProperty(property, to);
    } else {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== ""));
  return node;
}

const el = (tag, given = {}, ...children) => fill(document.createElement(tag), given, children);
const draw = (tag, given = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), given, children);
const place = (id) => document.getElementById(id);

const missing = (value) => value === null || value === undefined;

function decimals(value) {
  const size = Math.abs(value);
  return size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.095 || size === 0 ? 2 : 3;
}

const SHOWN = {
  text: (v) => String(v),
  list: (v) => (v.length ? v.join(", ") : "–"),
  bool: (v) => (v ? "yes" : "no"),
  count: (v) => v.toLocaleString("en"),
  number: (v) => (Number.isInteger(v) ? v.toLocaleString("en") : v.toLocaleString("en", { maximumSignificantDigits: 3 })),
  ratio: (v) => `${v.toFixed(decimals(v))}×`,
  share: (v) => `${(100 * v).toFixed(Math.abs(v) < 0.1 && v !== 0 ? 1 : 0)} %`,
  seconds: (v) => (v < 120 ? `${v.toFixed(1)} s` : v < 7200 ? `${(v / 60).toFixed(0)} min` : `${(v / 3600).toFixed(1)} h`),
  usd: (v) => (v < 0.01 && v > 0 ? `$${v.toPrecision(2)}` : `$${v.toFixed(2)}`),
  p: (v) => (v < 0.001 ? "< 0.001" : v.toFixed(3)),
  time: (v) => v,
  verdict: (v) => v,
};

// A value in words; a dash where there is none: unknown is never zero.
const shown = (value, kind = "text") => (missing(value) ? "–" : SHOWN[kind](value));

function interval(value, low, high, kind = "ratio") {
  if (missing(value)) return "–";
  if (missing(low) || missing(high)) return shown(value, kind);
  const short = (v) => shown(v, kind).replace(/[×]| %/, "");
  return `${shown(value, kind)} [${short(low)}, ${short(high)}]`;
}

const many = (count, word) => `${shown(count, "count")} ${word}${count === 1 ? "" : "s"}`;

const GOOD = { FASTER: "faster", CORRECT: "correct", UNVERIFIED: "unverified" };
const OUTCOMES = ["NOT_ADMITTED", "NOT_COVERED", "TOO_LARGE", "UNSUPPORTED"];

// FASTER, CORRECT, UNVERIFIED, an outcome without a candidate, or a failure.
const tone = (verdict) =>
  GOOD[verdict] || (OUTCOMES.includes(verdict) ? "outcome" : "failed");

const badge = (verdict) => el("span", { class: `badge ${tone(verdict)}` }, verdict);

const command = (text) => el("code", { class: "command" }, text);

// A caption that stays in sight where its table is wider than the window.
const captioned = (text) => el("caption", {}, el("span", { class: "caption" }, text));

function figure(title, note, ...children) {
  return el("figure", {}, el("figcaption", {}, el("h3", {}, title), note ? el("p", {}, note) : ""), ...children);
}

function choice(label, options, act, chosen) {
  const select = el(
    "select",
    { on: { change: () => act(select.value) } },
    options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)),
  );
  return el("label", { class: "choice" }, `${label} `, select);
}

// One line beside the pointer; what it says stands in a table or label as well.
function tip(text, event) {
  const box = place("tip");
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  const right = event.clientX + 14 + box.offsetWidth > window.innerWidth;
  box.style.setProperty("left", `${right ? event.clientX - box.offsetWidth - 10 : event.clientX + 14}px`);
  box.style.setProperty("top", `${event.clientY + 14}px`);
}

const tipped = (text) => ({ mousemove: (event) => tip(text, event), mouseleave: () => tip("") });

const byName = new Intl.Collator("en", { numeric: true }).compare;
