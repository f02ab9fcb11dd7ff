// Axes, curves and dots in SVG. Thousands of dots are one path, so that scrolling stays smooth.

const COLOURS = 8;
const line = (n) => `c${n % COLOURS} d${Math.floor(n / COLOURS) % 3}`;

// A device has one colour in all plots.
const TIMED = DEVICES.filter((name) => EXECUTION[name] === "hardware").sort(byName);
const lineOf = (device) => line(Math.max(0, TIMED.indexOf(device)));

function scaled([from, to], [start, end], log) {
  const map = log ? Math.log : (v) => v;
  const size = map(to) - map(from) || 1;
  return (v) => start + ((map(v) - map(from)) / size) * (end - start);
}

function logTicks([from, to]) {
  if (to / from < 4) return evenTicks([from, to]);
  const ticks = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to); power += 1) {
    ticks.push(...[1, 2, 5].map((step) => step * 10 ** power));
  }
  const within = ticks.filter((t) => t >= from * 0.999 && t <= to * 1.001);
  return within.length > 9 ? within.filter((t) => Math.abs(Math.log10(t) % 1) < 1e-9) : within;
}

function evenTicks([from, to]) {
  const rough = (to - from) / 5 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((s) => s * power >= rough) * power;
  const first = Math.ceil(from / step - 1e-9);
  const count = Math.floor(to / step + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, n) => (first + n) * step);
}

// The smallest range on a logarithmic axis that holds all values and `also`, with room around.
function logDomain(values, also = []) {
  const all = [...also, ...values.filter((v) => v > 0 && Number.isFinite(v))];
  let [from, to] = [Infinity, 0];
  for (const v of all) {
    from = Math.min(from, v);
    to = Math.max(to, v);
  }
  return to ? [from / 1.15, to * 1.15] : [0.5, 2];
}

const plainNumber = (v) => String(Number(v.toPrecision(3)));

function axisX(frame, axis, y) {
  return (axis.ticks || (axis.log ? logTicks : evenTicks)(axis.domain)).map((tick) => {
    const at = frame.x(tick);
    return draw(
      "g",
      { class: "tick" },
      draw("line", { x1: at, x2: at, y1: y[0], y2: y[1] }),
      draw("text", { x: at, y: y[1] + 16, "text-anchor": "middle" }, (axis.format || plainNumber)(tick)),
    );
  });
}

function axisY(frame, axis, x) {
  return (axis.ticks || (axis.log ? logTicks : evenTicks)(axis.domain)).map((tick) => {
    const at = frame.y(tick);
    return draw(
      "g",
      { class: "tick" },
      draw("line", { x1: x[0], x2: x[1], y1: at, y2: at }),
      draw("text", { x: x[0] - 6, y: at + 4, "text-anchor": "end" }, (axis.format || plainNumber)(tick)),
    );
  });
}

// given: width, height, left, x and y ({domain, log, label, format, ticks}), says (for ears)
function framed(given) {
  const { width, height, left = 66 } = given;
  const [x, y] = [[left, width - 14], [12, height - 40]];
  const frame = {
    x: scaled(given.x.domain, x, given.x.log),
    y: given.y ? scaled(given.y.domain, [y[1], y[0]], given.y.log) : null,
    left: x[0],
    right: x[1],
    top: y[0],
    bottom: y[1],
  };
  frame.svg = draw(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": given.says },
    axisX(frame, given.x, y),
    given.y ? axisY(frame, given.y, x) : [],
    draw("text", { class: "axis", x: (x[0] + x[1]) / 2, y: height - 6, "text-anchor": "middle" }, given.x.label),
    given.y && given.y.label
      ? draw("text", { class: "axis", transform: `translate(13 ${(y[0] + y[1]) / 2}) rotate(-90)`, "text-anchor": "middle" }, given.y.label)
      : "",
  );
  return frame;
}

const dots = (points, given) =>
  draw("path", { ...given, class: `dots ${given.class || ""}`, d: points.map((p) => `M${p.x.toFixed(1)} ${p.y.toFixed(1)}h0`).join("") });

// Says what the nearest point is while the pointer is within 12 units of it; a click acts on it.
function pointed(svg, points, act) {
  const nearest = (event) => {
    const box = svg.getBoundingClientRect();
    const by = svg.viewBox.baseVal.width / box.width;
    const [x, y] = [(event.clientX - box.left) * by, (event.clientY - box.top) * by];
    let found = null;
    let least = 144;
    for (const point of points) {
      const far = (point.x - x) ** 2 + (point.y - y) ** 2;
      if (far < least) [found, least] = [point, far];
    }
    return found;
  };
  svg.addEventListener("mousemove", (event) => {
    const point = nearest(event);
    tip(point ? point.text : "", event);
    svg.classList.toggle("active", Boolean(point && act));
  });
  svg.addEventListener("mouseleave", () => tip(""));
  if (act) {
    svg.addEventListener("click", (event) => {
      const point = nearest(event);
      if (point) act(point);
    });
  }
}

// Names with their line or colour; pressing one fades the others.
function legend(names, svgs, lines) {
  const buttons = names.map((name, n) =>
    el(
      "button",
      { type: "button", "aria-pressed": "false", on: { click: () => press(n) } },
      draw("svg", { width: 26, height: 10, "aria-hidden": "true" }, draw("line", { class: `curve ${lines[n]}`, x1: 1, x2: 25, y1: 5, y2: 5 })),
      ` ${name}`,
    ),
  );
  const press = (n) => {
    const on = buttons[n].getAttribute("aria-pressed") !== "true";
    buttons.forEach((button, k) => button.setAttribute("aria-pressed", String(on && k === n)));
    for (const svg of svgs) {
      for (const curve of svg.querySelectorAll("[data-series]")) {
        curve.classList.toggle("faded", on && curve.dataset.series !== String(n));
      }
    }
  };
  return el("p", { class: "legend" }, buttons);
}

const room = (host, most = 960) => Math.max(300, Math.min(most, host.clientWidth || most));
