// What happened to a pair: its trajectory, and each step with verdict, advice, times and change.

const pairTitle = (n) => `${PAIRS.column("operator")[n]} on ${PAIRS.column("device")[n]}`;

// A link to the story, the plain text where it was left out.
function pairLink(n, content) {
  return missing(n) || !told(n) ? content : el("a", { href: `#pair-${n}`, title: "Open the story" }, content);
}

function openPair(n) {
  if (!missing(n) && told(n)) location.hash = `pair-${n}`;
}

const gist = (step) => `step ${step.step}, ${step.mode}${step.lineage ? ` ${step.lineage}` : ""}: ${step.verdict}${missing(step.speedup) ? "" : `, ${interval(step.speedup, step.speedup_low, step.speedup_high)} over ${step.baseline}`}`;

// Speed-up by step with intervals; steps without a speed are crosses at the bottom.
function trajectory(steps, act) {
  const timed = steps.filter((s) => s.speedup > 0);
  const width = room(place("story"), 860);
  const domain = logDomain(timed.flatMap((s) => [s.speedup, s.speedup_low ?? s.speedup, s.speedup_high ?? s.speedup]), [0.9, 1.2]);
  const last = Math.max(...steps.map((s) => s.step), 1);
  const lineages = [...new Set(steps.map((s) => s.lineage))];
  const frame = framed({
    width,
    height: timed.length ? 260 : 90,
    says: steps.map(gist).join("; "),
    x: { domain: [-0.5, last + 0.5], label: "step", ticks: evenTicks([0, last]).filter(Number.isInteger) },
    y: timed.length ? { domain, log: true, label: "speed-up", format: (v) => `${plainNumber(v)}×` } : null,
  });
  const points = [];
  if (timed.length && domain[0] < 1) frame.svg.append(draw("line", { class: "one", x1: frame.left, x2: frame.right, y1: frame.y(1), y2: frame.y(1) }));
  lineages.forEach((lineage, n) => {
    const mine = timed.filter((s) => s.lineage === lineage && s.mode !== "confirm");
    frame.svg.append(draw("path", { class: `curve thin ${line(n)}`, d: mine.map((s, k) => `${k ? "L" : "M"}${frame.x(s.step)} ${frame.y(s.speedup)}`).join("") }));
  });
  for (const step of steps) {
    const x = frame.x(step.step);
    const y = step.speedup > 0 ? frame.y(step.speedup) : frame.bottom - 9;
    const colour = line(lineages.indexOf(step.lineage));
    if (step.speedup > 0 && step.speedup_low > 0) frame.svg.append(draw("line", { class: "whisker", x1: x, x2: x, y1: frame.y(step.speedup_low), y2: frame.y(step.speedup_high) }));
    const right = ["CORRECT", "FASTER"].includes(step.verdict);
    const shape = step.mode === "confirm" && right ? draw("path", { class: "median", d: `M${x} ${y - 8}l6 8l-6 8l-6 -8z` }) : right ? draw("circle", { class: `dot ${colour}`, cx: x, cy: y, r: 5 }) : draw("path", { class: "cross", d: `M${x - 5} ${y - 5}l10 10m0 -10l-10 10` });
    frame.svg.append(shape);
    points.push({ x, y, text: gist(step), step: step.step });
  }
  pointed(frame.svg, points, (point) => act(point.step));
  const marks = "A circle is a right kernel, a cross one that is not (or has no time), the diamond the confirming run, whose figure counts. ";
  return figure("Trajectory", marks + (lineages.length > 1 ? "Colours are lineages." : ""), frame.svg);
}

const fact = (name, value) => (missing(value) || value === "" ? [] : [el("dt", {}, name), el("dd", {}, value)]);

function facts(step) {
  const by = [step.agent_kind, step.agent_name, step.model].filter(Boolean).join(" ");
  const list = (value) => (value && value.length ? value.join(", ") : null);
  const parameters = step.parameters && step.parameters !== "{}" ? step.parameters : null;
  return el(
    "dl",
    {},
    fact("reason", step.reason),
    fact("candidate", step.candidate_id ? `${step.candidate_id}${by ? ` by ${by}` : ""}, ${step.language}` : null),
    fact("foreign kernel shown", step.reference),
    fact("techniques added", list(step.techniques_added)),
    fact("declared", list(step.techniques)),
    fact("detected in the source", list(step.techniques_detected)),
    fact("schedule", parameters),
    fact("gain over its parent", missing(step.gain_over_parent) ? null : interval(step.gain_over_parent, step.gain_low, step.gain_high)),
    fact("language model", step.cost_usd > 0 ? shown(step.cost_usd, "usd") : step.model && missing(step.cost_usd) ? "of unknown cost" : null),
    fact("build, check and timing", [step.build_seconds, step.run_seconds].some((v) => !missing(v)) ? `${shown(step.build_seconds ?? null, "seconds")}, ${shown(step.run_seconds ?? null, "seconds")}` : null),
    fact("isolation", step.isolation),
    step.needs_review ? fact("needs review", "somebody should look before this is believed") : [],
  );
}

function advised(step) {
  const advice = step.advice;
  if (!advice) return "";
  const cited = (advice.evidence || []).map((e) => `${e.metric} = ${shown(e.value, "number")}`).join(", ");
  const hoped = missing(advice.expected_gain) ? "" : `; predicted ${shown(advice.expected_gain, "ratio")}`;
  return el(
    "blockquote",
    {},
    el("p", {}, advice.change),
    el("p", { class: "note" }, `Advice of ${[advice.agent_kind, advice.agent_name, advice.model].filter(Boolean).join(" ")}: bottleneck ${advice.bottleneck}, technique ${advice.technique}; ${cited}${hoped}${missing(step.gain_over_parent) ? "" : `, measured ${interval(step.gain_over_parent, step.gain_low, step.gain_high)}`}`),
    advice.replaced ? el("p", { class: "note" }, `It stands for a model's advice that was dropped: ${advice.replaced}`) : "",
  );
}

function timesTable(step) {
  if (!step.times.length) return "";
  const us = (v) => (missing(v) ? "–" : v.toFixed(1));
  const head = ["shape", "speed-up", "over", "kernel µs", "baseline µs", "floor µs", "cached", "more from reused memory"];
  const lines = step.times.map(([shape, baseline, ratio, low, high, own, base, floor, warm, reused]) =>
    el("tr", {}, el("th", { scope: "row" }, shape), [interval(ratio, low, high), baseline, us(own), us(base), us(floor), shown(warm, "bool"), reused === 1 ? "–" : shown(reused, "ratio")].map((text) => el("td", { class: "number" }, text))),
  );
  return el("div", { class: "scroll" }, el("table", {}, captioned("Times by shape: medians, for orientation; the ratio is of pairs"), el("thead", {}, el("tr", {}, head.map((text, n) => el("th", { scope: "col", class: n ? "number" : null }, text)))), el("tbody", {}, lines)));
}

const WAITING = new WeakMap(); // open details whose content is made when they come near

function made(box) {
  WAITING.get(box)?.();
  WAITING.delete(box);
  NEAR_VIEW.unobserve(box);
}

const NEAR_VIEW = new IntersectionObserver(
  (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => made(entry.target)),
  { rootMargin: "600px" },
);
addEventListener("beforeprint", () => document.querySelectorAll("details[open]").forEach(made));

// Details whose content is made when they are opened, or open ones when they come near.
function later(title, make, open = false) {
  const box = el("details", {}, el("summary", {}, title));
  WAITING.set(box, () => box.append(make()));
  box.open = open;
  if (open) NEAR_VIEW.observe(box);
  else box.addEventListener("toggle", () => box.open && made(box));
  return box;
}

const FEW = 12; // steps whose changes are all shown at once; of more, each is a press away

function kernels(step, known, sources, open) {
  if (missing(step.source)) return [];
  const parent = (step.parent_ids || []).map((id) => known.get(id)).find(Boolean);
  const whole = later("Kernel", () => listing(sources[step.source]), false);
  if (step.mode === "confirm") return [el("p", { class: "note" }, "The winner's kernel once more, with new secret inputs."), whole];
  if (!parent || parent.source === step.source) return [whole];
  return [later(`Change to the kernel of step ${parent.step}`, () => difference(sources[parent.source], sources[step.source]), open), whole];
}

function stepView(step, known, found) {
  const speed = missing(step.speedup) ? "" : ` ${interval(step.speedup, step.speedup_low, step.speedup_high)} over ${step.baseline}`;
  const environment = found.environments[step.environment];
  return el(
    "li",
    { id: `step-${step.step}`, tabindex: "-1" },
    el("h4", {}, `Step ${step.step}: ${step.mode}${step.lineage ? ` ${step.lineage}` : ""} `, badge(step.verdict), speed),
    advised(step),
    facts(step),
    timesTable(step),
    kernels(step, known, found.sources, found.steps.length <= FEW),
    environment ? later("Environment", () => el("dl", {}, Object.entries(environment).map(([name, value]) => fact(name, String(value))))) : "",
  );
}

function storyView(n, found) {
  const known = new Map();
  for (const step of found.steps) if (!known.has(step.candidate_id)) known.set(step.candidate_id, step);
  const row = record(PAIRS, n);
  const list = el("ol", { class: found.steps.length > FEW ? "steps many" : "steps" }, found.steps.map((step) => stepView(step, known, found)));
  const go = (step) => {
    const target = list.querySelector(`#step-${step}`);
    target.scrollIntoView({ block: "start" });
    target.focus();
  };
  const speed = missing(row.speedup) ? (row.execution === "hardware" ? "no confirmed speed-up" : `no times: ${row.execution}`) : `${interval(row.speedup, row.speedup_low, row.speedup_high)} over ${row.baseline}, confirmed`;
  return el(
    "article",
    { class: "panel" },
    el("h3", {}, `${pairTitle(n)} `, badge(row.verdict)),
    el("p", {}, `${speed}; contract ${row.contract}; run ${row.run_id}, epoch ${row.epoch}`),
    trajectory(found.steps, go),
    list,
    el("p", {}, el("a", { href: "#pairs" }, "Back to the pairs")),
  );
}

async function followHash() {
  const found = /^#pair-(\d+)$/.exec(location.hash);
  const n = found ? Number(found[1]) : -1;
  if (!found || !told(n)) return;
  const host = place("story");
  host.replaceChildren(storyView(n, await story(n)));
  host.scrollIntoView({ block: "start" });
  host.focus({ preventScroll: true });
}

function ended(n) {
  const right = ["CORRECT", "FASTER"].includes(PAIRS.column("verdict")[n]);
  const open = right && PAIRS.column("execution")[n] === "hardware" && !PAIRS.column("confirmed")[n];
  return el("span", {}, badge(PAIRS.column("verdict")[n]), open ? " not confirmed" : "", PAIRS.column("needs_review")[n] ? el("span", { class: "badge review" }, "needs review") : "");
}

function pairs() {
  const names = ["operator", "device", "contract", "verdict", "speedup", "baseline", "steps", "reason", "language", "agent_kind", "model", "execution", "run_id", "ended_at"];
  const columns = columnsOf(PAIRS, [...names, "speedup_low", "speedup_high"]);
  columns[4] = { ...columns[4], cell: (n) => (PAIRS.column("execution")[n] === "hardware" ? interval(...["speedup", "speedup_low", "speedup_high"].map((name) => PAIRS.column(name)[n])) : `no times (${PAIRS.column("execution")[n]})`) };
  columns[3] = { ...columns[3], cell: (n) => ended(n) };
  place("pair-table").append(
    PAIRS.rows
      ? tableView(PAIRS, { caption: "All pairs, champions first", label: "Pairs", columns, filters: ["device", "contract", "verdict", "run_id"], open: pairLink })
      : el("p", {}, "None yet."),
  );
  window.addEventListener("hashchange", followHash);
}
