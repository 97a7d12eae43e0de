"use strict";
// Values under the pointer, for every picture below `root` that has them.
function element(name, words, style) {
  const made = document.createElement(name);
  made.textContent = words;
  Object.assign(made.style, style || {});
  return made;
}

function showValues(root) {
  const tip = document.getElementById("tip");
  for (const svg of root.querySelectorAll("svg[data-hover]")) {
    const places = JSON.parse(svg.dataset.hover);
    if (!places.length) continue;
    const box = svg.viewBox.baseVal;
    const rule = document.createElementNS(svg.namespaceURI, "line");
    rule.setAttribute("y1", 8);
    rule.setAttribute("y2", box.height - 40);
    rule.setAttribute("stroke", "var(--soft)");
    rule.setAttribute("stroke-dasharray", "2 3");
    rule.style.display = "none";
    svg.append(rule);
    const show = (event) => {
      const frame = svg.getBoundingClientRect();
      const x = ((event.clientX - frame.left) / frame.width) * box.width;
      const near = places.reduce((a, b) => (Math.abs(b.x - x) < Math.abs(a.x - x) ? b : a));
      rule.setAttribute("x1", near.x);
      rule.setAttribute("x2", near.x);
      rule.style.display = "";
      tip.replaceChildren(element("b", near.title));
      for (const [colour, name, value] of near.rows) {
        const row = element("div", "");
        row.append(element("span", "", {
          display: "inline-block", width: "9px", height: "9px", borderRadius: "50%",
          marginRight: "7px", background: colour,
        }), `${name} ${value}`);
        tip.append(row);
      }
      tip.hidden = false;
      const left = Math.min(event.clientX + 16, innerWidth - tip.offsetWidth - 8);
      tip.style.left = `${Math.max(8, left)}px`;
      tip.style.top = `${Math.max(8, event.clientY - tip.offsetHeight - 12)}px`;
    };
    const hide = () => { tip.hidden = true; rule.style.display = "none"; };
    svg.addEventListener("pointermove", show);
    svg.addEventListener("pointerdown", show);
    svg.addEventListener("pointerleave", hide);
  }
}

// The report's own controls: single seeds, light or dark.
document.getElementById("seeds")?.addEventListener("change", (event) => {
  document.body.classList.toggle("show-seeds", event.target.checked);
});
document.querySelector("button.report-theme")?.addEventListener("click", () => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
});
showValues(document);
