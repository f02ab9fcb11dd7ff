// Kernels with their words in colour, and what a step changed.

const WORDS = new Set(
  ("alignas and as assert async auto await bool break case char class const constant constexpr continue def del device do double elif else enum except extern finally float float2 float4 for from global half if import in inline int int64_t is kernel lambda local long namespace nonlocal not nullptr or pass private raise restrict return short signed size_t sizeof static struct switch template thread threadgroup try typedef typename uint uint32_t uint64_t ulong union unsigned using void volatile while with yield True False None __global__ __device__ __shared__ __restrict__ __global __local __kernel __private __attribute__").split(" "),
);
const PYTHON = /(#.*$)|("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(\b\d[\w.]*)|([A-Za-z_]\w*)/g;
const KERNEL = /(\/\/.*$|\/\*.*?(?:\*\/|$)|^\s*#\s*\w+.*$)|("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])+')|(\b\d[\w.]*)|([A-Za-z_]\w*)/g;

// Whether each line stands in a triple-quoted text, which is where kernels are.
function quoted(lines) {
  let inside = null;
  return lines.map((text) => {
    const began = inside;
    for (const [mark] of text.matchAll(/'''|"""/g)) {
      if (!inside) inside = mark;
      else if (inside === mark) inside = null;
    }
    return Boolean(began);
  });
}

function coloured(text, kernel) {
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(kernel ? KERNEL : PYTHON)) {
    const kind = found[1] ? "remark" : found[2] ? "string" : found[3] ? "digits" : WORDS.has(found[4]) ? "word" : null;
    if (!kind) continue;
    parts.push(text.slice(from, found.index), el("span", { class: kind }, found[0]));
    from = found.index + found[0].length;
  }
  return [...parts, text.slice(from)];
}

const split = (source) => source.split("\n");

function listing(source) {
  const lines = split(source);
  const kernel = quoted(lines);
  return el("pre", { class: "code", tabindex: "0" }, lines.map((text, n) => el("span", { class: "line", "data-n": n + 1 }, coloured(text, kernel[n]), "\n")));
}

// Pairs of equal lines in the longest common subsequence; the ends that agree are cut off first.
function common(a, b) {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const [m, n] = [a.length - head - tail, b.length - head - tail];
  const same = Array.from({ length: head }, (_, k) => [k, k]);
  if (m * n <= 4_000_000) same.push(...middle(a.slice(head, head + m), b.slice(head, head + n)).map(([i, j]) => [head + i, head + j]));
  for (let k = tail; k > 0; k -= 1) same.push([a.length - k, b.length - k]);
  return same;
}

function middle(a, b) {
  const width = b.length + 1;
  const best = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      best[i * width + j] = a[i] === b[j] ? best[(i + 1) * width + j + 1] + 1 : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  const same = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) same.push([i++, j++]);
    else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return same;
}

// Lines as {sign, text, at, kernel}: taken away, added, kept.
function changes(before, after) {
  const [a, b] = [split(before), split(after)];
  const [inA, inB] = [quoted(a), quoted(b)];
  const found = [];
  let [i, j] = [0, 0];
  for (const [x, y] of [...common(a, b), [a.length, b.length]]) {
    while (i < x) found.push({ sign: "-", text: a[i], at: i + 1, kernel: inA[i++] });
    while (j < y) found.push({ sign: "+", text: b[j], at: j + 1, kernel: inB[j++] });
    if (x < a.length) found.push({ sign: " ", text: b[y], at: y + 1, kernel: inB[y] });
    [i, j] = [x + 1, y + 1];
  }
  return found;
}

const NEAR = 3;

function difference(before, after) {
  const found = changes(before, after);
  const near = found.map((_, n) => found.slice(Math.max(0, n - NEAR), n + NEAR + 1).some((l) => l.sign !== " "));
  const lines = [];
  let passed = 0;
  const gap = () => {
    if (passed) lines.push(el("span", { class: "line gap" }, `${many(passed, "line")} as before\n`));
    passed = 0;
  };
  found.forEach((row, n) => {
    if (!near[n]) {
      passed += 1;
      return;
    }
    gap();
    const tag = { "+": "added", "-": "taken", " ": "kept" }[row.sign];
    lines.push(el("span", { class: `line ${tag}`, "data-n": row.at }, el("span", { class: "sign" }, row.sign), coloured(row.text, row.kernel), "\n"));
  });
  gap();
  const count = (sign) => found.filter((row) => row.sign === sign).length;
  return el("div", {}, el("p", { class: "note" }, `${many(count("+"), "line")} added, ${count("-")} taken away`), el("pre", { class: "code diff", tabindex: "0" }, lines));
}
