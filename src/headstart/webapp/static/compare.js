// Studies side by side: the verdicts, and the report's picture and table by number of labels.
import { get, getText } from "./api.js";
import { el, errorBox, page, when } from "./dom.js";
import { readReport } from "./report.js";

export async function showComparison(query) {
  document.title = "Side by side · Headstart";
  const ids = (query.get("ids") || "").split(",").filter((id) => /^[0-9a-f]{12}$/.test(id)).slice(0, 6);
  document.body.classList.add("wide-page");
  page().replaceChildren(el("h1", {}, "Side by side"),
    el("div", { className: "beside" }, await Promise.all(ids.map(column))),
    el("p", {}, el("a", { href: "/" }, "All studies")));
  globalThis.showValues(page());
}

async function column(id) {
  try {
    const [study, html] = await Promise.all([get(`/api/studies/${id}`), getText(`/api/studies/${id}/report`)]);
    const report = el("div", {}, readReport(html));
    const verdict = report.querySelector("#verdict h1")?.textContent ?? "";
    const others = [...report.querySelectorAll("#verdict .more")].map((one) => el("p", {}, one.textContent));
    const labels = report.querySelector("#labels");
    const kept = labels ? [labels.querySelector("figure"), labels.querySelector(".scroll")] : [];
    for (const node of labels?.querySelectorAll("[id]") ?? []) node.removeAttribute("id");
    // A column is narrow on every screen: the picture for phones is the one that fits.
    for (const wide of labels?.querySelectorAll(".wide") ?? []) wide.remove();
    for (const phone of labels?.querySelectorAll(".phone") ?? []) phone.classList.remove("phone");
    return el("article", {}, el("h2", {}, el("a", { href: `/study/${id}#report` }, study.name)),
      el("p", { className: "note" }, when(study.created)),
      el("p", { className: "more" }, verdict), others, kept.filter(Boolean));
  } catch (error) {
    return el("article", {}, errorBox(error.what ? error : { what: String(error) }));
  }
}
