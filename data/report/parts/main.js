// The page draws itself, once.

function themed() {
  const button = place("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const show = (on) => {
    document.documentElement.dataset.theme = on ? "dark" : "light";
    button.setAttribute("aria-pressed", String(on));
  };
  show(dark.matches);
  dark.addEventListener("change", (event) => show(event.matches));
  button.addEventListener("click", () => show(button.getAttribute("aria-pressed") !== "true"));
}

function provenance() {
  const about = DATA.about;
  const run = about.run_id ? ` --run ${about.run_id}` : "";
  const left = DATA.left_out.map((text) => el("li", {}, text));
  return [
    el("p", {}, "Every figure is an answer of the ledger to a question that ships with KForge; the command under a table asks it again", about.run_id ? ", there over all runs" : "", ". This page was written by ", command(`kforge report --runs ${about.ledger}${run}`), "."),
    el("p", {}, "Intervals are 95 %. A median's interval is that of order statistics, a share's is Wilson's, and operators, not steps, are the independent units. Emulated devices say right or wrong and have no times. The page holds all its data, runs one script, and makes no request."),
    left.length ? el("h3", {}, "Left out to keep the file small") : el("p", {}, "Nothing was left out."),
    left.length ? el("ul", { id: "left-out" }, left) : "",
  ];
}

themed();
overview();
speed();
transfer();
pairs();
roofline();
calibration();
place("provenance").append(...provenance());
document.documentElement.dataset.drawn = "yes";
followHash();
