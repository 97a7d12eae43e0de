// The plan: what will be trained and how long it takes; change it, start it.
import { send } from "./api.js";
import { announce, bar, count, duration, el, errorBox, plural, roughly, sentence } from "./dom.js";
import { warningList } from "./data.js";

export function planPanel({ path, go, refresh }) {
  const element = el("section", { className: "panel" });
  const result = el("div"), settings = el("div");
  element.append(el("h2", {}, "The plan"), result, settings);
  let shownForm = null, shownResult = null, asked = false, dirty = false;

  async function make(choices) {
    dirty = false;
    try {
      await send("POST", `${path}/plan`, choices);
      await refresh();
    } catch (error) {
      result.replaceChildren(errorBox(error));
    }
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
    if (!study.plan && !job && !asked && !fixed) {
      asked = true;
      make(usualChoices(study));
    }
    const key = JSON.stringify([study.choices, study.arms, fixed]);
    if (key !== shownForm && !dirty) {
      shownForm = key;
      settings.replaceChildren(choiceForm(study, fixed, make, () => {
        dirty = true;
        element.querySelector("#start")?.setAttribute("disabled", "");
      }));
    }
    const state = JSON.stringify([study.plan, job?.state, job?.error, study.state]);
    if (job?.state === "running") {
      result.replaceChildren(
        el("p", { className: "note" }, `Trying a few steps on this machine … ${duration(job.seconds)}`),
        bar(null, "Making the plan"));
    } else if (state !== shownResult && job?.state === "failed") {
      result.replaceChildren(errorBox(job.error));
    } else if (state !== shownResult && study.plan) {
      result.replaceChildren(...planParts(study, fixed, start, go));
      announce(`The plan takes about ${roughly(study.plan.seconds)}.`);
    }
    shownResult = state;
  }

  return { element, update };
}

function usualChoices(study) {
  if (Object.keys(study.choices).length) return study.choices;
  return { minutes: null, seeds: 3, labels: "", arms: study.arms.filter((arm) => arm.usual).map((arm) => arm.name), objective: "" };
}

function planParts(study, fixed, start, go) {
  const { plan } = study;
  const folds = plan.folds > 1 ? ` × ${plan.folds} folds` : "";
  const formula = `${plural(plan.arms.length, "arm")} × ${plural(plan.seeds.length, "seed")}${folds} × ` +
    `${plan.budgets.map(count).join(", ")} labels`;
  const facts = [`${plural(plan.trainings, "training")}: ${formula}.`];
  if (plan.pretrain_steps) facts.push(`One pretraining of ${count(plan.pretrain_steps)} steps comes first.`);
  facts.push(plan.jobs > 1 ? `${plan.jobs} trainings run side by side.` : "One training runs at a time.");
  return [
    el("p", { className: "more" }, el("strong", {}, `About ${roughly(plan.seconds)}`), " on this machine."),
    el("p", {}, facts.join(" ")),
    plan.cuts.length ? el("div", {}, el("h3", {}, "Cut to fit the minutes"), el("ul", {}, plan.cuts.map((cut) => el("li", {}, sentence(cut))))) : null,
    el("p", { className: "actions" }, fixed
      ? el("button", { type: "button", onclick: () => go("watch") }, "See how it goes")
      : el("button", { type: "button", id: "start", className: "primary", onclick: start }, "Start the study")),
    fixed ? null : el("p", { className: "note" }, "It goes on when this page is closed, and can be stopped and resumed."),
    plan.warnings.length ? el("details", {}, el("summary", {}, `${plural(plan.warnings.length, "note")} about the data`), warningList(plan.warnings)) : null,
  ].filter(Boolean);
}

function choiceForm(study, fixed, make, onChange) {
  const chosen = usualChoices(study);
  const field = (id, label, note, box) => el("div", { className: "field" },
    el("label", { htmlFor: id }, label), box, el("span", { className: "note", id: `${id}-note` }, note));
  const minutes = el("input", { id: "minutes", type: "number", min: 0.1, step: "any", inputMode: "decimal", value: chosen.minutes ?? "", placeholder: "as long as it takes", "aria-describedby": "minutes-note", disabled: fixed });
  const labels = el("input", { id: "labels", type: "text", value: chosen.labels, placeholder: "100, 400, all", pattern: "[\\w ,]*", "aria-describedby": "labels-note", disabled: fixed });
  const seeds = el("input", { id: "seeds-count", type: "number", min: 1, max: 50, value: chosen.seeds, "aria-describedby": "seeds-count-note", disabled: fixed });
  const objective = el("select", { id: "objective", disabled: fixed },
    [["", "causal: the next word"], ["masked", "masked: fill the gaps"], ["causal,masked", "both, beside each other"]]
      .map(([value, words]) => el("option", { value, selected: value === chosen.objective }, words)));
  const arms = study.arms.map((arm) => [arm.name, el("input", {
    type: "checkbox", id: `arm-${arm.name}`, checked: chosen.arms.includes(arm.name), disabled: fixed,
  })]);
  const boxOf = new Map(arms);
  const armLine = (arm) => el("label", { className: "arm" }, boxOf.get(arm.name),
    el("span", {}, el("strong", {}, arm.label), " ", el("span", { className: "note" }, arm.description)));
  const form = el("form", { className: "choices", onsubmit: (event) => {
    event.preventDefault();
    make({
      minutes: minutes.value ? Number(minutes.value) : null,
      seeds: Number(seeds.value) || 3,
      labels: labels.value.replaceAll(" ", ""),
      arms: arms.filter(([, box]) => box.checked).map(([name]) => name),
      objective: objective.value,
    });
  }, oninput: onChange },
    el("h3", {}, "Change what matters"),
    el("div", { className: "fields" },
      field("minutes", "Minutes at most", "Seeds, pretraining and label budgets are cut until it fits.", minutes),
      field("labels", "Label budgets", "How many labels each arm is given.", labels),
      field("seeds-count", "Seeds", "Each training is repeated; one seed shows no spread.", seeds),
      field("objective", "Pretraining learns", "What the base is pretrained on.", objective)),
    el("fieldset", {}, el("legend", {}, "Arms: ways to get a classifier"),
      study.arms.filter((arm) => arm.usual).map(armLine),
      el("details", { open: study.arms.some((arm) => !arm.usual && chosen.arms.includes(arm.name)) },
        el("summary", {}, "More arms"), study.arms.filter((arm) => !arm.usual).map(armLine))),
    fixed ? null : el("p", { className: "actions" }, el("button", { type: "submit" }, "Plan again")));
  return form;
}
