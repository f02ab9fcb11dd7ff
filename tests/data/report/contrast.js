// Texts whose contrast to what is behind them is below 4.5 to 1 (WCAG 2.2, level AA).
(() => {
  const parts = (text) => text.match(/[\d.]+/g).map(Number);
  const luminance = (colour) =>
    colour
      .slice(0, 3)
      .map((v) => v / 255)
      .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
      .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const found = parts(getComputedStyle(node).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((c) => c.nodeType === 3 && c.textContent.trim());
    if (!own || !node.getClientRects().length) continue;
    if (node.closest("script, style, noscript, :disabled, [hidden]")) continue;
    const svg = node.closest("svg");
    const style = getComputedStyle(node);
    const colours = [parts(svg ? style.fill : style.color), behind(svg ? svg.parentElement : node)];
    const [dark, light] = colours.map(luminance).sort((a, b) => a - b);
    const ratio = (light + 0.05) / (dark + 0.05);
    const name = `${node.tagName}.${node.getAttribute("class")}`;
    if (ratio < 4.5) poor.push(`${name} ${node.textContent.slice(0, 20)} ${ratio.toFixed(2)}`);
  }
  return poor;
})();
