// The report in place: the same page that `headstart compare` wrote.
import { getText } from "./api.js";
import { el, errorBox, trusted } from "./dom.js";

export function reportPanel({ path, go }) {
  const body = el("div", { className: "report" }, el("p", { className: "note" }, "Opening the report …"));
  const seeds = el("input", { type: "checkbox", id: "seeds", onchange: () => body.classList.toggle("show-seeds", seeds.checked) });
  const element = el("section", { className: "panel" },
    el("p", { className: "actions tools" },
      el("button", { type: "button", className: "primary", onclick: () => go("try") }, "Try the classifier"),
      el("label", { className: "switch" }, seeds, "single seeds"),
      el("a", { href: `${path}/report`, target: "_blank", rel: "noopener" }, "By itself"),
      el("a", { href: `${path}/report?download=true`, download: "report.html" }, "Download")),
    body);
  // The page's own address names its step: links of the report scroll instead of changing it.
  body.addEventListener("click", (event) => {
    const link = event.target.closest(".contents a");
    if (!link) return;
    event.preventDefault();
    body.querySelector(link.getAttribute("href"))?.scrollIntoView();
  });
  getText(`${path}/report`).then((html) => {
    body.replaceChildren(...readReport(html));
    globalThis.showValues(body);
  }).catch((error) => body.replaceChildren(errorBox(error)));
  return { element, update: (study) => { element.querySelector("button").hidden = !study.classifier; } };
}

export function readReport(html) {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  return trusted(parsed.querySelector("main").innerHTML);
}
