// The data: how it is read, and what `headstart inspect` found.
import { send } from "./api.js";
import { announce, bar, count, duration, el, errorBox, notes, percent, plural, table } from "./dom.js";

const TASKS = {
  classification: "one label for each text", pairs: "one label for two texts together",
  "multi-label": "several labels for each text", tagging: "a tag for each word", spans: "answers in the text",
};
const PARTS = { train: "for training", validation: "for selection", test: "for the results", corpus: "no labels" };
const ENDED = { what: "the command ended without a result", where: null, fix: "try again; it may have run out of memory" };
const COLUMN_TASKS = ["classification", "pairs", "multi-label"];

export function dataPanel({ path, go, refresh }) {
  const element = el("section", { className: "panel" });
  const reading = el("div"), found = el("div");
  element.append(el("h2", {}, "The data"), reading, found);
  let shownReading = null, shownFound = null, asked = false;

  async function look(settings) {
    try {
      await send("POST", `${path}/inspect`, settings);
      await refresh();
    } catch (error) {
      found.replaceChildren(errorBox(error));
    }
  }

  function update(study) {
    const job = study.jobs.inspect, done = job?.state === "done";
    const fixed = !["new", "inspected", "planned"].includes(study.state);
    const clear = !COLUMN_TASKS.includes(study.settings.task) || Boolean(study.preview.label_column);
    const key = JSON.stringify([study.settings, study.files, fixed, done, Boolean(job)]);
    if (key !== shownReading) {
      shownReading = key;
      reading.replaceChildren(readingForm(study, { fixed, done, clear: clear || Boolean(job), look }));
    }
    if (!job && !fixed) {
      if (clear && !asked) look({});
      asked = true; // a fresh upload
      found.replaceChildren();
      return;
    }
    const state = JSON.stringify(job);
    if (state === shownFound) return;
    shownFound = state;
    if (job.state === "running") {
      found.replaceChildren(el("p", { className: "note" }, `Looking at every text … ${duration(job.seconds)}`), bar(null, "Looking at the data"));
    } else if (done) {
      found.replaceChildren(...inspectionParts(job.result));
      if (!fixed) found.append(el("p", { className: "actions" }, el("button", {
        type: "button", className: "primary", onclick: () => go("plan"),
      }, "Continue to the plan")));
      announce("The data has been inspected.");
    } else {
      found.replaceChildren(errorBox(job.error ?? ENDED));
      announce("The data cannot be used as it is.");
    }
  }

  return { element, update };
}

function readingForm(study, { fixed, done, clear, look }) {
  const { preview, settings } = study;
  const chosen = { ...preview, ...settings };
  const field = (id, label, options) => el("div", { className: "field" }, el("label", { htmlFor: id }, label),
    el("select", { id, name: id, disabled: fixed }, options));
  const columns = (id) => [el("option", { value: "", selected: !chosen[id] }, "choose …"),
    ...preview.columns.map((name) => el("option", { value: name, selected: name === chosen[id] }, name))];
  const task = field("task", "Task", preview.tasks.map((name) => el("option", { value: name, selected: name === settings.task }, TASKS[name])));
  const fields = {
    text_column: field("text_column", "Text", columns("text_column")),
    second_column: field("second_column", "Second text", columns("second_column")),
    label_column: field("label_column", "Label", columns("label_column")),
  };
  const value = (one) => one.querySelector("select").value;
  const used = () => Object.entries(fields).filter(([name]) => COLUMN_TASKS.includes(value(task)) && (name !== "second_column" || value(task) === "pairs"));
  const arrange = () => {
    const shown = used().map(([name]) => name);
    for (const [name, one] of Object.entries(fields)) one.hidden = !shown.includes(name);
  };
  task.addEventListener("change", arrange);
  arrange();
  const form = el("form", { onsubmit: (event) => {
    event.preventDefault();
    look({ task: value(task), ...Object.fromEntries(used().map(([name, one]) => [name, value(one)])) });
  } },
    el("h3", {}, "How to read it"),
    clear ? null : notes(["The names do not say which columns contain the text and the label: choose them here."]),
    el("div", { className: "columns" }, ...Object.values(fields), task,
      fixed ? null : el("button", { type: "submit", className: done ? null : "primary" }, done ? "Look again" : "Look at the data")));
  const head = preview.columns.slice(0, preview.rows[0]?.length ?? 0);
  return el("div", {}, form,
    el("details", { open: !clear }, el("summary", {}, `The first rows of ${study.files.data}`),
      el("div", { className: "scroll" }, el("table", { className: "preview" },
        el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, preview.rows.map((row) => el("tr", {}, row.map((cell) => el("td", {}, cell)))))))));
}

function inspectionParts(seen) {
  const parts = seen.parts, labelled = parts.filter((part) => part.labels);
  const texts = labelled.reduce((sum, part) => sum + part.documents, 0);
  const names = labelled.length ? Object.keys(labelled[0].labels) : [];
  const corpus = parts.find((part) => part.name === "corpus");
  const lead = plural(texts, "text") + (names.length ? ` with ${plural(names.length, "label")}` : "") +
    (corpus ? `, and ${plural(corpus.documents, "text")} without labels.` : ".");
  return [
    el("p", { className: "more" }, lead),
    seen.warnings.length ? el("h3", {}, "Notes") : null,
    notes(seen.warnings),
    names.length ? el("h3", {}, "Labels") : null,
    names.length ? balance(labelled[0]) : null,
    el("h3", {}, "Texts"),
    sizes(parts),
    overlapTable(seen.overlaps),
    el("details", {}, el("summary", {}, "How the files were read"), el("ul", {}, seen.found.map((line) => el("li", {}, line)))),
  ].filter(Boolean);
}

function balance(train) {
  const names = Object.keys(train.labels).sort((a, b) => train.labels[b] - train.labels[a]);
  const most = train.labels[names[0]], shown = names.slice(0, 30);
  const rows = shown.map((name) => el("li", {},
    el("span", { className: "name" }, name),
    el("span", { className: "track", "aria-hidden": "true" },
      el("span", { className: "fill", style: { width: `${100 * train.labels[name] / most}%` } })),
    el("span", { className: "value" }, `${count(train.labels[name])} · ${percent(train.labels[name] / Math.max(1, train.labelled), 0)}`)));
  return el("div", {}, el("ul", { className: "bars", "aria-label": "Labels of the training texts" }, rows),
    names.length > shown.length ? el("p", { className: "note" }, `… and ${count(names.length - shown.length)} more.`) : null);
}

function sizes(parts) {
  const head = ["", ...parts.map((part) => el("span", {}, part.name, el("small", {}, PARTS[part.name] || "")))];
  const line = (name, value) => [name, ...parts.map(value)];
  return table(head, [
    line("texts", (part) => count(part.documents)),
    line("words", (part) => count(part.words)),
    line("words per text, median", (part) => count(part.percentiles["50"] || 0)),
    line("words in the longest text", (part) => count(part.percentiles.max || 0)),
    line("repeated", (part) => count(part.duplicates)),
  ]);
}

function overlapTable(overlaps) {
  const there = overlaps.filter((one) => Object.values(one.counts).some(Boolean));
  if (!there.length) return null;
  return el("div", {}, el("h3", {}, "The same text in two places"), table(
    ["", "equal", "nearly equal", "inside a longer text", "around a shorter text", "of"],
    there.map((one) => [`${one.part} texts in ${one.other}`, count(one.counts.equal),
      count(one.counts.similar), count(one.counts.inside), count(one.counts.contains), count(one.texts)])));
}
