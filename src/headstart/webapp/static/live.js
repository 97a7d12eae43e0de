// A study under way: the stage, the time left, the curves of the report as they grow.
import { send, watch } from "./api.js";
import { announce, bar, count, duration, el, errorBox, percent, plural, sentence, trusted } from "./dom.js";

export function watchPanel({ path, go, refresh }) {
  const element = el("section", { className: "panel" });
  const status = el("div"), actions = el("p", { className: "actions" }), error = el("div");
  const arms = el("div"), figures = el("div", { className: "figures" });
  const seeds = el("input", { type: "checkbox", id: "seeds", onchange: () => figures.classList.toggle("show-seeds", seeds.checked) });
  const single = el("label", { className: "switch note", hidden: true }, seeds, "single seeds");
  element.append(el("h2", {}, "How it goes"), status, actions, error, single, figures, arms);
  let watching = null, state = null, live = null, came = 0, clock = null, first = true;

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
    const parts = [];
    if (!live.plan) {
      if (active) parts.push(el("p", { className: "more" }, sentence(live.stage + " …")), bar(null, "Preparing"));
      else if (state === "stopped") parts.push(el("p", { className: "more" }, "Stopped before anything was finished."));
    } else {
      const passed = active ? (Date.now() - came) / 1000 : 0;
      const left = live.seconds_left === null || live.seconds_left === undefined ? null : Math.max(1, live.seconds_left - passed);
      const lead = state === "finished" ? `Done in ${duration(live.spent)}.`
        : state === "stopped" ? "Stopped. What is finished is kept."
        : state === "failed" ? "It ended with an error."
        : state === "stopping" ? "Stopping: what is finished is kept …"
        : left === null ? "Running …" : `About ${duration(left)} left.`;
      parts.push(el("p", { className: "more" }, el("strong", {}, lead), " ", active ? sentence(stageWords(live)) : ""));
      parts.push(bar(live.plan.trainings ? share(live) : null, "Share of the study that is done"));
      parts.push(el("p", { className: "note" },
        `${count(live.finished)} of ${plural(live.plan.trainings, "training")} finished` +
          (active ? ` · ${duration(live.spent + passed)} so far` : "")));
      if (live.pretraining) parts.push(pretrainingFacts(live.pretraining));
    }
    status.replaceChildren(...parts);
  }

  function showActions() {
    const buttons = {
      running: [el("button", { type: "button", onclick: () => act("stop") }, "Stop")],
      stopping: [el("button", { type: "button", onclick: () => act("stop") }, "Stop at once")],
      stopped: [el("button", { type: "button", className: "primary", onclick: () => act("start") }, "Resume")],
      failed: [el("button", { type: "button", onclick: () => act("start") }, "Try again")],
      finished: [el("button", { type: "button", className: "primary", onclick: () => go("report") }, "Read the report")],
    };
    actions.replaceChildren(...(buttons[state] || []));
  }

  function onLive(found) {
    live = found;
    came = Date.now();
    showStatus();
    figures.replaceChildren(...(found.figures || []).map((html, place) => {
      const made = trusted(html);
      if (place === 0) made.forEach((node) => node.classList?.add("first"));
      return made;
    }).flat());
    if (first && found.plan?.seeds.length > 1 && figures.querySelector(".seeds")) {
      first = false; // while it runs, every seed's own curve is what grows
      seeds.checked = true;
      figures.classList.add("show-seeds");
    }
    single.hidden = first;
    globalThis.showValues(figures);
    arms.replaceChildren(...(found.arms?.length ? [armTable(found)] : []));
  }

  function update(study) {
    if (!watching) {
      watching = watch(`${path}/live`, onLive, () => {});
      clock = setInterval(showStatus, 1000);
    }
    if (study.state !== state) {
      state = study.state;
      announce(`The study is ${state}.`);
      error.replaceChildren(...(study.error ? [errorBox(study.error)] : []));
      showActions();
      showStatus();
      watching.now();
    }
  }

  return { element, update, leave: () => { watching?.stop(); clearInterval(clock); } };
}

function stageWords(live) {
  if (live.pretraining) return `pretraining, ${live.objective}`;
  if (live.stage_share) return `${live.stage}, ${percent(live.stage_share, 0)}`;
  return live.stage;
}

// By time: what was spent of what is spent and left together.
function share(live) {
  if (!live.seconds_left) return live.finished / live.plan.trainings;
  return live.spent / (live.spent + live.seconds_left);
}

// Which training runs on which machine, where there are several.

function pretrainingFacts(now) {
  const facts = [["step", `${count(now.step)} of ${count(now.steps)}`], ["loss", now.loss === null ? "not a number" : now.loss.toFixed(3)],
    ["tokens", count(now.tokens)], ["tokens a second", now.tokens_per_second ? count(Math.round(now.tokens_per_second)) : "…"],
    ["left", now.seconds_left === null ? "…" : duration(now.seconds_left)]];
  return el("dl", { className: "facts-row" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function armTable(live) {
  const seeds = live.plan.seeds.length;
  const cell = (one) => el("td", {}, one.value === null ? el("span", { className: "note" }, "–") : percent(one.value),
    one.value !== null && one.seeds < seeds ? el("small", {}, `${one.seeds} of ${seeds} seeds`) : null);
  return el("div", {},
    el("h3", {}, `Finished so far: validation ${live.metric}, mean over seeds`),
    el("div", { className: "scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "arm"), live.plan.budgets.map((n) => el("th", { scope: "col" }, plural(n, "label"))))),
      el("tbody", {}, live.arms.map((arm) => el("tr", {},
        el("td", { className: "arm-name" }, el("span", { className: "key", style: { background: `var(${arm.colour})` } }), arm.name),
        arm.cells.map(cell)))))));
}
