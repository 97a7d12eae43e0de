// A study under way: the stage, the time left, the curves of the report as they grow.
import { send, watch } from "./api.js";
import { announce, bar, count, duration, el, errorBox, plural, roughly, sentence, trusted } from "./dom.js";

const LEADS = {
  stopped: "Stopped. Finished trainings are saved.", failed: "It ended with an error.",
  stopping: "Stopping: finished trainings are saved …",
};

export function watchPanel({ path, go, refresh }) {
  const element = el("section", { className: "panel" });
  const status = el("div"), actions = el("p", { className: "actions" }), error = el("div");
  const figures = el("div");
  element.append(el("h2", {}, "Progress"), status, actions, error, figures);
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
    if (!live.trainings) {
      status.replaceChildren(...(active
        ? [el("p", { className: "more" }, sentence(`${live.stage} …`)), bar(null, "Preparing")]
        : [el("p", { className: "more" }, LEADS[state] ?? "")]));
      return;
    }
    const passed = active ? (Date.now() - came) / 1000 : 0;
    const left = active && live.seconds_left !== null ? Math.max(1, live.seconds_left - passed) : null;
    const lead = state === "finished" ? `Finished in ${duration(live.spent)}.`
      : LEADS[state] ?? (left === null ? "Almost finished." : `About ${roughly(left)} left.`);
    status.replaceChildren(
      el("p", { className: "more" }, el("strong", {}, lead), " ", active && live.stage !== "finished" ? sentence(live.stage) : ""),
      bar(left === null ? live.finished / live.trainings : live.spent / (live.spent + left), "Share of the study that is finished"),
      el("p", { className: "note" }, `${count(live.finished)} of ${plural(live.trainings, "training")} finished` +
        (active ? ` · ${duration(live.spent + passed)} so far` : "")));
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
