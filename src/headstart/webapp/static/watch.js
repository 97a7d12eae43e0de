// A study under way: the stage, the time left, the curves of the report as they grow.
import { send, watch } from "./api.js";
import { announce, bar, count, duration, el, errorBox, percent, plural, roughly, sentence, trusted } from "./dom.js";

const LEADS = {
  stopped: "Stopped. What is finished is saved.", failed: "It ended with an error.",
  stopping: "Stopping: what is finished is saved …",
};

export function watchPanel({ path, go, refresh }) {
  const element = el("section", { className: "panel" });
  const status = el("div"), actions = el("p", { className: "actions" }), error = el("div");
  const arms = el("div"), figures = el("div");
  element.append(el("h2", {}, "How it goes"), status, actions, error, figures, arms);
  let watching = null, state = null, live = null, came = 0, clock = null;

  async function act(verb) {
    error.replaceChildren();
    try {
      await send("POST", `${path}/${verb}`);
      await refresh();
    } catch (trouble) {
      error.replaceChildren(errorBox(trouble));
    }
  }

  function showStatus() {
    if (!live) return;
    const active = state === "running" || state === "stopping";
    if (!live.plan) {
      status.replaceChildren(...(active
        ? [el("p", { className: "more" }, sentence(`${live.stage} …`)), bar(null, "Preparing")]
        : [el("p", { className: "more" }, LEADS[state] ?? "")]));
      return;
    }
    const passed = active ? (Date.now() - came) / 1000 : 0;
    const left = active && live.seconds_left !== null ? Math.max(1, live.seconds_left - passed) : null;
    const lead = state === "finished" ? `Finished in ${duration(live.spent)}.`
      : LEADS[state] ?? (left === null ? "Almost finished." : `About ${roughly(left)} left.`);
    const stage = live.share ? `${live.stage}, ${percent(live.share, 0)}` : live.stage;
    status.replaceChildren(
      el("p", { className: "more" }, el("strong", {}, lead), " ", active && live.stage !== "finished" ? sentence(stage) : ""),
      bar(left === null ? live.finished / live.plan.trainings : live.spent / (live.spent + left), "Share of the study that is finished"),
      el("p", { className: "note" }, `${count(live.finished)} of ${plural(live.plan.trainings, "training")} finished` +
        (active ? ` · ${duration(live.spent + passed)} so far` : "")),
      ...(live.pretraining ? [pretrainingFacts(live.pretraining)] : []));
  }

  function showActions() {
    const button = (words, action, primary) => el("button", { type: "button", className: primary ? "primary" : null, onclick: action }, words);
    const buttons = {
      running: button("Stop", () => act("stop")),
      stopping: button("Stop at once", () => act("stop")),
      stopped: button("Resume", () => act("start"), true),
      failed: button("Try again", () => act("start"), true),
      finished: button("Read the report", () => go("report"), true),
    };
    actions.replaceChildren(...(buttons[state] ? [buttons[state]] : []));
  }

  function onLive(found) {
    live = found;
    came = Date.now();
    showStatus();
    figures.replaceChildren(...(found.figures ?? []).map((one) => el("figure", { className: one.seeds ? "show-seeds" : null },
      el("figcaption", {}, one.caption),
      el("div", { className: "wide" }, trusted(one.wide)), el("div", { className: "phone" }, trusted(one.phone)))));
    globalThis.showValues(figures);
    arms.replaceChildren(...(found.arms?.length ? [armTable(found)] : []));
  }

  function update(study) {
    if (!watching) {
      watching = watch(`${path}/live`, onLive, () => {}, () => (state === "running" ? 2000 : 5000));
      clock = setInterval(showStatus, 1000);
    }
    if (study.state !== state) {
      state = study.state;
      announce(`The study is ${state}.`);
      const trouble = study.jobs.study?.error;
      error.replaceChildren(...(trouble ? [errorBox(trouble)] : []));
      showActions();
      showStatus();
      watching.now();
    }
  }

  return { element, update, leave: () => { watching?.stop(); clearInterval(clock); } };
}

function pretrainingFacts(now) {
  const facts = [["step", `${count(now.step)} of ${count(now.steps)}`], ["loss", now.loss.toFixed(3)],
    ["tokens", count(now.tokens)], ["tokens per second", count(Math.round(now.tokens / now.seconds))]];
  return el("dl", { className: "facts-row" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function armTable(live) {
  const cell = (one) => el("td", {}, one.value === null ? el("span", { className: "note" }, "–") : percent(one.value),
    one.trainings ? el("small", {}, plural(one.trainings, "training")) : null);
  return el("div", { className: "arms" },
    el("h3", {}, `Mean validation ${live.metric} of finished trainings`),
    el("div", { className: "scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "arm"), live.plan.budgets.map((n) => el("th", { scope: "col" }, plural(n, "label"))))),
      el("tbody", {}, live.arms.map((arm) => el("tr", {},
        el("td", { className: "arm-name" }, el("span", { className: "key", style: { background: `var(${arm.colour})` } }), arm.name),
        arm.cells.map(cell)))))));
}
