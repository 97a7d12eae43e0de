// Try the classifier: a text, its label, the words that moved it; a file, its predictions.
import { get, send, upload } from "./api.js";
import { announce, bar, duration, el, errorBox, percent } from "./dom.js";

const METHODS = {
  occlusion: "Each word was left out in turn; marked is how much the answer’s odds change without it.",
};

export function tryPanel({ path, refresh }) {
  const answer = el("div", { id: "answer", "aria-live": "polite" });
  const boxes = el("div");
  const go = el("button", { type: "submit", className: "primary" }, "Classify");
  const form = el("form", { className: "try", onsubmit: submit }, boxes, el("p", { className: "actions" }, go,
    el("span", { className: "note" }, " Ctrl + Enter does the same.")));
  const files = fileForm(path, refresh);
  const element = el("section", { className: "panel" }, el("h2", {}, "Try the classifier"), form, answer, files.element);
  let texts = [];

  function arrange(about) {
    texts = Array.from({ length: about.texts }, (_, place) => el("textarea", { id: `text-${place}`, rows: 4, maxLength: 20000, onkeydown: keys }));
    boxes.replaceChildren(...texts.map((box, place) => el("div", { className: "field" },
      el("label", { htmlFor: box.id }, about.texts === 1 ? "A text" : place ? "The second text" : "The first text"), box)));
    boxes.append(el("p", { className: "note" }, `It knows ${about.labels.length} labels: ${about.labels.slice(0, 12).join(", ")}${about.labels.length > 12 ? ", …" : ""}`));
    texts[0].focus({ preventScroll: true });
  }

  function keys(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  }

  async function submit(event) {
    event.preventDefault();
    go.disabled = true;
    try {
      const found = await send("POST", `${path}/answer`, { texts: texts.map((box) => box.value) });
      answer.replaceChildren(...answerParts(found));
    } catch (error) {
      answer.replaceChildren(errorBox(error));
    }
    go.disabled = false;
  }

  boxes.append(el("p", { className: "note" }, "Opening the classifier …"), bar(null, "Opening the classifier"));
  get(`${path}/classifier`).then(arrange).catch((error) => element.replaceChildren(errorBox(error)));
  return { element, update: files.update };
}

function answerParts(given) {
  const several = given.labels && { label: given.labels.join(", "), probability: Math.max(...Object.values(given.probabilities)) };
  const found = { ...given, ...several };
  if (found.label === undefined) return [fieldTable(found)];
  const named = Object.entries(found.probabilities || {}).sort((a, b) => b[1] - a[1]);
  const parts = [
    el("p", { className: "verdict" }, el("strong", {}, found.label || "none of the labels"), el("span", {}, percent(found.probability))),
    el("ul", { className: "bars", "aria-label": "Probability of each label" }, named.slice(0, 12).map(([name, p]) => el("li", {},
      el("span", { className: "name" }, name),
      el("span", { className: "track", "aria-hidden": "true" }, el("span", { className: "fill", style: { width: `${100 * p}%` } })),
      el("span", { className: "value" }, percent(p))))),
  ];
  if (found.explanation) parts.push(explanation(found));
  return parts;
}

function explanation(found) {
  const { pieces, method } = found.explanation;
  const moved = pieces.filter((piece) => piece.effect !== undefined).sort((a, b) => Math.abs(b.effect) - Math.abs(a.effect));
  const strongest = (sign) => moved.filter((piece) => Math.sign(piece.effect) === sign && Math.abs(piece.share) >= 0.15).slice(0, 6).map((piece) => piece.text);
  const side = (name, words) => words.length ? el("p", { className: "note" }, `${name}: ${words.join(", ")}.`) : null;
  return el("div", { className: "explanation" },
    el("h3", {}, "The words that moved it"),
    el("p", { className: "marked" }, pieces.map((piece) => {
      if (piece.share === undefined || Math.abs(piece.share) < 0.15) return piece.text;
      const kind = piece.share > 0 ? "for" : "against";
      return el("mark", { className: kind, title: `${kind} ${found.label}: ${piece.effect > 0 ? "+" : "−"}${Math.abs(piece.effect).toFixed(2)}`,
        "data-strength": Math.ceil(Math.abs(piece.share) * 4) }, piece.text);
    })),
    side(`For “${found.label}”`, strongest(1)), side("Against it", strongest(-1)),
    el("p", { className: "note" }, METHODS[method] || ""));
}

function fieldTable(found) {
  const rows = Object.entries(found).filter(([name]) => name !== "explanation");
  return el("table", { className: "facts" }, el("tbody", {}, rows.map(([name, value]) => el("tr", {},
    el("td", {}, name), el("td", {}, typeof value === "string" ? value : JSON.stringify(value))))));
}

function fileForm(path, refresh) {
  const input = el("input", { type: "file", id: "file", accept: ".csv,.tsv,.tab,.jsonl,.ndjson,.json,.parquet,.txt,.text,.gz" });
  const status = el("div", { className: "status" });
  let shown = null;
  input.addEventListener("change", async () => {
    if (!input.files[0]) return;
    const progress = bar(0, "Upload");
    status.replaceChildren(el("p", { className: "note" }, `Copying ${input.files[0].name} …`), progress);
    try {
      await upload("POST", `${path}/predictions`, input.files[0], (share) => { progress.value = share; });
      shown = null;
      await refresh();
    } catch (error) {
      status.replaceChildren(errorBox(error));
    }
    input.value = "";
  });
  const element = el("div", { className: "file" }, el("h3", {}, "A whole file"),
    el("p", {}, "Upload a file of texts and download it with a label and probabilities for every row."),
    el("div", { className: "field" }, el("label", { htmlFor: "file" }, "File of texts"), input), status);
  const update = (study) => {
    const job = study.jobs.predict;
    const state = JSON.stringify([job?.state, job?.error, job?.progress]);
    if (!job || (state === shown && job.state !== "running")) return;
    shown = state;
    if (job.state === "running") status.replaceChildren(el("p", { className: "note" }, job.progress || `Predicting … ${duration(job.seconds)}`), bar(null, "Predicting"));
    else if (job.state === "failed") status.replaceChildren(errorBox(job.error));
    else {
      status.replaceChildren(el("p", {}, el("a", { id: "download", className: "button primary", href: `${path}/predictions`, download: "" }, "Download the predictions")));
      announce("The predictions are ready.");
    }
  };
  return { element, update };
}
