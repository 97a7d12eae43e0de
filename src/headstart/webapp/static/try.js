// Try the classifier: a text, what is predicted, the words that mattered; a file, its predictions.
import { download, get, send, upload } from "./api.js";
import { announce, bar, duration, el, errorBox, percent } from "./dom.js";

const INPUTS = { text: "Text", second_text: "Second text", question: "Question" };
const ENDED = { what: "the command ended without predictions", where: null, fix: "try again; it may have run out of memory" };

export function tryPanel({ path, refresh }) {
  const answer = el("div", { id: "answer", "aria-live": "polite" });
  const boxes = el("div"), about = el("div");
  const go = el("button", { type: "submit", className: "primary" }, "Predict");
  const form = el("form", { className: "try", onsubmit: submit }, boxes, el("p", { className: "actions" }, go,
    el("span", { className: "note" }, " Ctrl + Enter does the same.")));
  const files = fileForm(path, refresh);
  const element = el("section", { className: "panel" }, el("h2", {}, "Try the classifier"), about, form, answer, files.element);
  let texts = [];

  function arrange(found) {
    texts = found.inputs.map((name) => el("textarea", { id: `input-${name}`, rows: name === "question" ? 2 : 4, maxLength: 20000, onkeydown: keys }));
    boxes.replaceChildren(...texts.map((box, place) => el("div", { className: "field" },
      el("label", { htmlFor: box.id }, INPUTS[found.inputs[place]] ?? found.inputs[place]), box)));
    if (found.labels.length) boxes.append(el("p", { className: "note" }, `Labels (${found.labels.length}): ${found.labels.slice(0, 12).join(", ")}${found.labels.length > 12 ? ", …" : ""}`));
    texts[0].focus({ preventScroll: true });
  }

  function keys(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  }

  async function submit(event) {
    event.preventDefault();
    go.disabled = true;
    try {
      const given = texts.map((box) => box.value);
      const found = await send("POST", `${path}/classifier`, { texts: given });
      answer.replaceChildren(...predictionParts(found, given));
    } catch (error) {
      answer.replaceChildren(errorBox(error));
    }
    go.disabled = false;
  }

  boxes.append(el("p", { className: "note" }, "Opening the classifier …"), bar(null, "Opening the classifier"));
  get(`${path}/classifier`).then(arrange).catch((error) => element.replaceChildren(errorBox(error)));
  return { element, update: (study) => {
    if (about.textContent === "") about.replaceChildren(...study.recommendation.map((line) => el("p", { className: "expected" }, line)),
      el("p", { className: "note" }, "Predictions on this page come from this classifier."));
    files.update(study);
  } };
}

function predictionParts(found, given) {
  if (found.tags) return [taggedWords(found)];
  if (found.answer !== undefined) return answerParts(found, given[1]);
  const several = found.labels && { label: found.labels.join(", "), probability: Math.max(...Object.values(found.probabilities)) };
  const one = { ...found, ...several };
  const named = Object.entries(one.probabilities).sort((a, b) => b[1] - a[1]);
  return [
    headline(one.label || "none of the labels", one.probability),
    el("ul", { className: "bars", "aria-label": "Probability of each label" }, named.slice(0, 12).map(([name, p]) => el("li", {},
      el("span", { className: "name" }, name),
      el("span", { className: "track", "aria-hidden": "true" }, el("span", { className: "fill", style: { width: `${100 * p}%` } })),
      el("span", { className: "value" }, percent(p))))),
    one.explanation ? explanation(one) : "",
  ];
}

const headline = (words, probability) =>
  el("p", { className: "verdict" }, el("strong", {}, words), el("span", {}, percent(probability)));

function taggedWords(found) {
  return el("p", { className: "marked" }, found.words.map((word, place) => {
    const tag = found.tags[place];
    return [tag === "O" ? word : el("mark", { className: "for", "data-strength": 3, title: percent(found.probabilities[place]) }, word, " ", el("small", {}, tag)), " "];
  }).flat());
}

function answerParts(found, context) {
  if (!found.answer) return [headline("no answer in the text", found.probability)];
  return [headline(found.answer, found.probability), el("p", { className: "marked" }, context.slice(0, found.start),
    el("mark", { className: "for", "data-strength": 4 }, context.slice(found.start, found.end)), context.slice(found.end))];
}

function explanation(found) {
  const pieces = found.explanation;
  const moved = pieces.filter((piece) => piece.effect !== undefined).sort((a, b) => Math.abs(b.effect) - Math.abs(a.effect));
  const strongest = (sign) => moved.filter((piece) => Math.sign(piece.effect) === sign && Math.abs(piece.share) >= 0.15).slice(0, 6).map((piece) => piece.text);
  const side = (name, words) => words.length ? el("p", { className: "note" }, `${name}: ${words.join(", ")}.`) : null;
  return el("div", { className: "explanation" },
    el("h3", {}, "The most important words"),
    el("p", { className: "marked" }, pieces.map((piece) => {
      if (piece.share === undefined || Math.abs(piece.share) < 0.15) return piece.text;
      const kind = piece.share > 0 ? "for" : "against";
      return el("mark", { className: kind, title: `${kind} ${found.label}: ${piece.effect > 0 ? "+" : "−"}${Math.abs(piece.effect).toFixed(2)}`,
        "data-strength": Math.ceil(Math.abs(piece.share) * 4) }, piece.text);
    })),
    side(`For “${found.label}”`, strongest(1)), side("Against it", strongest(-1)),
    el("p", { className: "note" }, "Each word was removed in turn; the mark shows how much the odds of the label change without it."));
}

function fileForm(path, refresh) {
  const input = el("input", { type: "file", id: "file", accept: ".csv,.tsv,.tab,.jsonl,.ndjson,.json,.parquet,.txt,.text,.conll,.gz" });
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
  const save = () => download(`${path}/predictions`, "predictions").catch((error) => status.append(errorBox(error)));
  const element = el("div", { className: "file" }, el("h3", {}, "A whole file"),
    el("p", {}, "Upload a file of texts and download it with predictions and probabilities for every row."),
    el("div", { className: "field" }, el("label", { htmlFor: "file" }, "File of texts"), input), status);
  const update = (study) => {
    const job = study.jobs.predict, state = JSON.stringify(job);
    if (!job || state === shown) return;
    shown = state;
    if (job.state === "running") status.replaceChildren(el("p", { className: "note" }, `Predicting … ${duration(job.seconds)}`), bar(null, "Predicting"));
    else if (job.state === "done") {
      status.replaceChildren(el("p", {}, el("button", { type: "button", id: "download", onclick: save }, "Download the predictions")));
      announce("The predictions are ready.");
    } else status.replaceChildren(errorBox(job.error ?? ENDED));
  };
  return { element, update };
}
