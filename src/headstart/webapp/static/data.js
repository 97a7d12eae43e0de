// The data: the columns, what `headstart inspect` sees, and its warnings.
import { send } from "./api.js";
import { announce, bar, count, duration, el, errorBox, percent, plural, sentence, table } from "./dom.js";

const TASKS = [
  ["classification", "one label for each text"],
  ["pairs", "one label for two texts together"],
  ["multi-label", "several labels for each text"],
];
const PARTS = { train: "to learn from", validation: "to watch by", test: "to measure with", corpus: "without labels" };
const partHead = (name) => el("span", {}, name, el("small", {}, PARTS[name] || ""));

export function dataPanel({ path, go, refresh }) {
  const element = el("section", { className: "panel" });
  const columns = el("div"), found = el("div");
  element.append(el("h2", {}, "What is in the data"), columns, found);
  let shownColumns = null, shownFound = null, asked = false;

  async function look(reading) {
    try {
      await send("POST", `${path}/inspect`, reading);
      await refresh();
    } catch (error) {
      found.replaceChildren(errorBox(error));
    }
  }

  function update(study) {
    const job = study.jobs.inspect;
    const fixed = !["new", "inspected", "planned"].includes(study.state);
    const key = JSON.stringify([study.reading, study.preview, fixed]);
    if (key !== shownColumns) {
      shownColumns = key;
      columns.replaceChildren(columnForm(study, fixed, look));
    }
    if (!study.inspection && !job && !asked && !fixed) {
      asked = true; // a fresh upload, or a server that was restarted meanwhile
      const clear = study.reading.text_column && study.reading.label_column;
      if (clear) look(study.reading);
      else found.replaceChildren(el("p", {}, "Which columns hold the text and the label is not clear from their names. Choose them above."));
      return;
    }
    const state = JSON.stringify([study.inspection, job]);
    if (state === shownFound) return;
    shownFound = state;
    if (job?.state === "running") {
      found.replaceChildren(el("p", { className: "note" }, `Looking at every text … ${duration(job.seconds)}`),
        bar(null, "Looking at the data"), el("p", { className: "note" }, job.progress));
      shownFound = null;
    } else if (job?.state === "failed") {
      found.replaceChildren(errorBox(job.error));
      announce("The data cannot be used as it is.");
    } else if (study.inspection) {
      found.replaceChildren(...inspectionParts(study.inspection));
      if (!fixed) found.append(el("p", { className: "actions" }, el("button", {
        type: "button", className: "primary", onclick: () => go("plan"),
      }, "Make a plan")));
      announce("The data has been looked at.");
    }
  }

  return { element, update };
}

function columnForm(study, fixed, look) {
  const { preview, reading } = study;
  if (!preview?.columns.length) return el("p", { className: "note" }, study.files.data);
  const options = (chosen) => [el("option", { value: "", selected: !chosen }, "choose …"),
    ...preview.columns.map((name) => el("option", { value: name, selected: name === chosen }, name))];
  const select = (id, label, chosen) => {
    const box = el("select", { id, name: id, disabled: fixed }, options(chosen));
    return [el("div", { className: "field" }, el("label", { htmlFor: id }, label), box), box];
  };
  const task = el("select", { id: "task", disabled: fixed },
    TASKS.map(([name, words]) => el("option", { value: name, selected: name === reading.task }, words)));
  const [text, textBox] = select("text_column", "Text", reading.text_column);
  const [second, secondBox] = select("second_column", "Second text", reading.second_column);
  const [label, labelBox] = select("label_column", "Label", reading.label_column);
  const arrange = () => { second.hidden = task.value !== "pairs"; };
  task.addEventListener("change", arrange);
  arrange();
  const form = el("form", { className: "columns", onsubmit: (event) => {
    event.preventDefault();
    look({
      task: task.value, text_column: textBox.value, label_column: labelBox.value,
      second_column: task.value === "pairs" ? secondBox.value : "",
    });
  } },
    text, second, label,
    el("div", { className: "field" }, el("label", { htmlFor: "task" }, "There is"), task),
    fixed ? null : el("button", { type: "submit" }, "Look again"));
  const shown = preview.columns.slice(0, preview.rows[0]?.length ?? 0);
  return el("div", {}, form,
    el("details", { open: !reading.text_column || !reading.label_column },
      el("summary", {}, `The first rows of ${study.files.data}`),
      el("div", { className: "scroll" }, el("table", { className: "preview" },
        el("thead", {}, el("tr", {}, shown.map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, preview.rows.map((row) => el("tr", {}, row.map((cell) => el("td", {}, cell)))))))));
}

function inspectionParts(seen) {
  const parts = seen.parts, labelled = parts.filter((part) => part.labels);
  const texts = labelled.reduce((sum, part) => sum + part.documents, 0);
  const names = labelled.length ? Object.keys(labelled[0].labels) : [];
  const corpus = parts.find((part) => part.name === "corpus");
  const lead = `${plural(texts, "text")} with ${plural(names.length, "label")}` +
    (corpus ? `, and ${plural(corpus.documents, "text")} without.` : ".");
  return [
    el("p", { className: "more" }, lead),
    warningList(seen.warnings),
    names.length ? el("h3", {}, "Labels") : null,
    names.length ? balance(labelled) : null,
    el("h3", {}, "Texts"),
    sizes(parts, seen.unit),
    overlapTable(seen.overlaps),
    examples(seen),
    el("details", {}, el("summary", {}, "How the files were read"), el("ul", {}, seen.found.map((line) => el("li", {}, line)))),
  ].filter(Boolean);
}

export function warningList(warnings) {
  if (!warnings.length) return el("p", { className: "good" }, "Nothing to warn about.");
  return el("ul", { className: "warnings", "aria-label": "Warnings" },
    warnings.map((words) => el("li", {}, sentence(words))));
}

function balance(parts) {
  const train = parts[0], most = Math.max(...Object.values(train.labels));
  const names = Object.keys(train.labels).sort((a, b) => train.labels[b] - train.labels[a]);
  const shown = names.slice(0, 30);
  const rows = shown.map((name) => el("li", {},
    el("span", { className: "name" }, name),
    el("span", { className: "track", "aria-hidden": "true" },
      el("span", { className: "fill", style: { width: `${100 * train.labels[name] / most}%` } })),
    el("span", { className: "value" }, `${count(train.labels[name])} · ${percent(train.labels[name] / Math.max(1, train.documents), 0)}`)));
  return el("div", {}, el("ul", { className: "bars", "aria-label": "Labels of the training texts" }, rows),
    names.length > shown.length ? el("p", { className: "note" }, `… and ${count(names.length - shown.length)} more.`) : null);
}

function sizes(parts, unit) {
  const head = ["", ...parts.map((part) => partHead(part.name))];
  const line = (name, value) => [name, ...parts.map(value)];
  return table(head, [
    line("texts", (part) => count(part.documents)),
    line(unit, (part) => count(part.tokens)),
    line(`${unit} per text, median`, (part) => count(part.percentiles["50"] || 0)),
    line(`${unit} in the longest`, (part) => count(part.percentiles.max || 0)),
    line("repeated, or nearly", (part) => `${count(part.duplicates)}, ${count(part.near_duplicates)}`),
  ]);
}

function overlapTable(overlaps) {
  const there = overlaps.filter((one) => one.equal + one.similar + (one.inside || 0));
  if (!there.length) return null;
  return el("div", {}, el("h3", {}, "The same text in two places"), table(
    ["", "equal", "nearly", "inside a longer one", "of"],
    there.map((one) => [`${one.part} texts in ${one.other}`, count(one.equal), count(one.similar),
      one.inside === null ? "–" : count(one.inside), count(one.texts)])));
}

function examples(seen) {
  const conflicts = seen.conflict_examples.map((one) => `${one.labels.join(" / ")}: ${one.text}`);
  const odd = Object.entries(seen.odd_examples).map(([kind, text]) => `${kind}: …${text}…`);
  if (!conflicts.length && !odd.length) return null;
  return el("div", {}, el("h3", {}, "Worth a look"),
    [...conflicts, ...odd].slice(0, 8).map((words) => el("blockquote", {}, el("p", {}, words.slice(0, 240)))));
}
