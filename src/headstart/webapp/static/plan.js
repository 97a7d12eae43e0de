// The plan: what will be trained and how long it takes; change it, start it.
import { send } from "./api.js";
import { announce, bar, count, duration, el, errorBox, notes, plural, roughly, sentence } from "./dom.js";

const ENDED = { what: "the command ended without a plan", where: null, fix: "try again; it may have run out of memory" };

export function planPanel({ path, go, refresh }) {
  const element = el("section", { className: "panel" });
  const result = el("div"), settings = el("div");
  element.append(el("h2", {}, "The plan"), result, settings);
  let shownForm = null, shownResult = null, asked = false;

  async function make(chosen) {
    try {
      await send("POST", `${path}/plan`, chosen);
      element.classList.remove("changed");
      shownResult = null;
      await refresh();
    } catch (error) {
      result.replaceChildren(errorBox(error)); // what was typed stays in the form
    }
    element.scrollIntoView();
  }

  async function start() {
    try {
      await send("POST", `${path}/start`);
      announce("The study has been started.");
      history.replaceState(null, "", "#watch");
      await refresh();
    } catch (error) {
      result.append(errorBox(error));
    }
  }

  function update(study) {
    const job = study.jobs.plan;
    const fixed = !["new", "inspected", "planned"].includes(study.state);
    if (!job && !asked && !fixed) {
      asked = true;
      make({});
    }
    const key = JSON.stringify([study.settings, study.arms, fixed]);
    if (key !== shownForm && !element.classList.contains("changed")) {
      shownForm = key;
      settings.replaceChildren(choiceForm(study, fixed, make, () => element.classList.add("changed")));
    }
    const state = JSON.stringify([job, study.state]);
    if (!job || state === shownResult) return;
    shownResult = state;
    if (job.state === "running") {
      result.replaceChildren(
        el("p", { className: "note" }, `Timing a few steps on this machine … ${duration(job.seconds)}`),
        bar(null, "Making the plan"));
    } else if (job.state === "done") {
      result.replaceChildren(...planParts(job.result, fixed, start, go));
      announce(`The plan takes about ${roughly(job.result.seconds)}.`);
    } else {
      result.replaceChildren(errorBox(job.error ?? ENDED));
    }
  }

  return { element, update };
}

function planParts(plan, fixed, start, go) {
  const folds = plan.folds > 1 ? ` × ${plan.folds} folds` : "";
  const formula = `${plural(plan.arms.length, "arm")} × ${plural(plan.seeds.length, "seed")}${folds} × ` +
    `${plan.budgets.map(count).join(", ")} labels`;
  const facts = [`${plural(plan.trainings, "training")}: ${formula}.`];
  if (plan.pretrain_tokens) facts.push(`One pretraining of ${count(plan.pretrain_tokens)} tokens comes first.`);
  facts.push(plan.jobs > 1 ? `${plan.jobs} trainings run at the same time.` : "One training runs at a time.");
  return [
    el("p", { className: "more" }, el("strong", {}, `About ${roughly(plan.seconds)}`), " on this machine."),
    el("p", {}, facts.join(" ")),
    plan.cuts.length ? el("div", {}, el("h3", {}, "Reduced to fit the minutes"), el("ul", {}, plan.cuts.map((cut) => el("li", {}, sentence(cut))))) : null,
    el("p", { className: "actions unless-changed" }, fixed
      ? el("button", { type: "button", onclick: () => go("watch") }, "Watch the study")
      : el("button", { type: "button", id: "start", className: "primary", onclick: start }, "Start the study")),
    fixed ? null : el("p", { className: "note unless-changed" }, "The study continues when this page is closed. It can be stopped and resumed."),
    plan.warnings.length ? el("details", {}, el("summary", {}, `${plural(plan.warnings.length, "note")} about the data`), notes(plan.warnings)) : null,
  ].filter(Boolean);
}

function choiceForm(study, fixed, make, onChange) {
  const { settings } = study;
  const field = (id, label, note, box) => el("div", { className: "field" },
    el("label", { htmlFor: id }, label), box, el("span", { className: "note", id: `${id}-note` }, note));
  const minutes = el("input", { id: "minutes", type: "number", min: 0.1, step: "any", inputMode: "decimal", value: settings.minutes ?? "", placeholder: "no limit", "aria-describedby": "minutes-note", disabled: fixed });
  const labels = el("input", { id: "labels", type: "text", value: (settings.labels ?? []).join(", "), placeholder: "100, 400, all", "aria-describedby": "labels-note", disabled: fixed });
  const seeds = el("input", { id: "seeds-count", type: "number", min: 1, max: 50, value: settings.seeds ?? 3, "aria-describedby": "seeds-count-note", disabled: fixed });
  const chosen = (settings.objectives ?? ["causal"]).join(",");
  const objective = el("select", { id: "objective", disabled: fixed },
    [["causal", "the next word"], ["masked", "hidden words"], ["contrastive", "which passages are from the same text"],
      ["masked+contrastive", "hidden words and passages"], ["causal,contrastive", "the next word, and passages: compared"]]
      .map(([value, words]) => el("option", { value, selected: value === chosen }, words)));
  const checked = (arm) => (settings.arms ? settings.arms.includes(arm.name) : arm.usual);
  const boxes = new Map(study.arms.map((arm) => [arm.name, el("input", { type: "checkbox", id: `arm-${arm.name}`, checked: checked(arm), disabled: fixed })]));
  const armLine = (arm) => el("label", { className: "arm" }, boxes.get(arm.name),
    el("span", {}, el("strong", {}, arm.label), " ", el("span", { className: "note" }, arm.description)));
  const others = study.arms.filter((arm) => !arm.usual);
  return el("form", { className: "choices", oninput: onChange, onsubmit: (event) => {
    event.preventDefault();
    make({
      minutes: minutes.value ? Number(minutes.value) : null,
      seeds: Number(seeds.value) || null,
      labels: labels.value,
      arms: [...boxes].filter(([, box]) => box.checked).map(([name]) => name),
      objectives: objective.value.split(","),
    });
  } },
    el("h3", {}, "Change the plan"),
    el("div", { className: "fields" },
      field("minutes", "Time limit in minutes", "Tuning, seeds, pretraining and budgets are reduced until it fits.", minutes),
      field("labels", "Label budgets", "How many labels each arm gets: numbers, and “all”.", labels),
      field("seeds-count", "Seeds", "Number of repetitions of each training.", seeds),
      field("objective", "Pretraining objective", "What the base learns to predict.", objective)),
    el("fieldset", {}, el("legend", {}, "Arms: ways to get a classifier"),
      study.arms.filter((arm) => arm.usual).map(armLine),
      others.length ? el("details", { open: others.some(checked) }, el("summary", {}, "More arms"), others.map(armLine)) : null),
    fixed ? null : el("p", { className: "actions only-changed" }, el("button", { type: "submit", className: "primary" }, "Update the plan")));
}
