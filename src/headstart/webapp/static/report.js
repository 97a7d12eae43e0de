// The report in place: the page that `headstart compare` wrote.
import { download, getText } from "./api.js";
import { el, errorBox, trusted } from "./dom.js";

export function reportPanel({ path, go }) {
  const body = el("div", { className: "report" }, el("p", { className: "note" }, "Opening the report …"));
  const seeds = el("input", { type: "checkbox", id: "seeds", onchange: () => body.classList.toggle("show-seeds", seeds.checked) });
  const trouble = el("div");
  const save = () => download(`${path}/report`, "report.html").catch((error) => trouble.replaceChildren(errorBox(error)));
  const element = el("section", { className: "panel" },
    el("p", { className: "actions tools" },
      el("button", { type: "button", className: "primary", onclick: () => go("try") }, "Try the classifier"),
      el("label", { className: "switch" }, seeds, "single seeds"),
      el("button", { type: "button", id: "save-report", onclick: save }, "Download")),
    trouble, body);
  // The page's address names its step: links of the report scroll instead of changing it.
  body.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
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
