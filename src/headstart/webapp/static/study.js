// One study: five steps, of which one is shown. The server's document decides what is possible.
import { watch } from "./api.js";
import { el, errorBox, page } from "./dom.js";
import { dataPanel } from "./data.js";
import { planPanel } from "./plan.js";
import { watchPanel } from "./watch.js";
import { reportPanel } from "./report.js";
import { tryPanel } from "./try.js";

const STEPS = [
  ["data", "Data", dataPanel, () => true],
  ["plan", "Plan", planPanel, (study) => study.jobs.inspect?.state === "done" || started(study)],
  ["watch", "Watch", watchPanel, (study) => started(study)],
  ["report", "Report", reportPanel, (study) => study.state === "finished"],
  ["try", "Try it", tryPanel, (study) => study.classifier],
];
const FIRST = {
  new: "data", inspected: "data", planned: "plan", running: "watch", stopping: "watch",
  stopped: "watch", failed: "watch", finished: "report",
};

const place = (step) => STEPS.findIndex(([name]) => name === step);
const started = (study) => ["running", "stopping", "stopped", "failed", "finished"].includes(study.state);

const busy = (study) => !study || ["running", "stopping"].includes(study.state) ||
  Object.values(study.jobs).some((job) => ["running", "stopping"].includes(job?.state));

export async function showStudy(id) {
  const path = `/api/studies/${id}`;
  const trouble = el("div"), steps = el("nav", { "aria-label": "Steps of the study" }), body = el("div");
  const title = el("h1", { className: "study-name" });
  page().replaceChildren(title, steps, trouble, body);
  let study = null, panel = null, shown = null;

  const wanted = () => {
    const asked = STEPS.find(([name]) => `#${name}` === location.hash);
    return asked && asked[3](study) ? asked[0] : FIRST[study.state];
  };

  const render = () => {
    const step = wanted();
    const moved = step !== shown;
    title.textContent = study.name;
    document.title = `${study.name} · Headstart`;
    steps.replaceChildren(el("ol", { className: "steps" }, STEPS.map(([name, label, , possible], number) => {
      const circle = el("span", { className: "number", "aria-hidden": "true" }, String(number + 1));
      return el("li", {}, possible(study)
        ? el("a", { href: `#${name}`, "aria-current": name === step ? "step" : null }, circle, label)
        : el("span", { className: "later", "aria-disabled": "true" }, circle, label));
    })));
    if (moved) {
      shown = step;
      panel?.leave?.();
      panel = STEPS.find(([name]) => name === step)[2]({ path, go, refresh: () => watching.now() });
      body.replaceChildren(panel.element);
    }
    panel.update(study);
  };

  const go = (step) => {
    if (location.hash === `#${step}`) render();
    else location.hash = step;
  };

  const watching = watch(path, (found) => {
    const before = study?.state;
    study = found;
    // Where the study went on, the page goes with it; it never goes back by itself.
    if (before && place(FIRST[study.state]) > place(FIRST[before]) && `#${FIRST[before]}` === location.hash) {
      history.replaceState(null, "", `#${FIRST[study.state]}`);
    }
    render();
  }, (error) => {
    if (error && !study) page().replaceChildren(el("h1", {}, "Something went wrong"), errorBox(error), el("p", {}, el("a", { href: "/" }, "All studies")));
    else trouble.replaceChildren(...(error ? [errorBox(error)] : []));
  }, () => (busy(study) ? 1000 : 4000));
  addEventListener("hashchange", () => { if (study) { render(); page().focus({ preventScroll: true }); scrollTo(0, 0); } });
}
