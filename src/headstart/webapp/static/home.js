// The first page: drop a table of labelled texts; earlier studies.
import { get, send, upload } from "./api.js";
import { announce, bar, bytes, el, errorBox, page, percent, when } from "./dom.js";

const KINDS = ".csv,.tsv,.tab,.jsonl,.ndjson,.json,.parquet,.conll,.conllu,.bio,.iob,.gz";
const STATES = {
  new: "not inspected", inspected: "inspected", planned: "planned", running: "running",
  stopping: "stopping", stopped: "stopped", failed: "failed", finished: "finished",
};

export async function showHome() {
  document.title = "Headstart";
  const studies = el("section", { id: "studies" });
  page().replaceChildren(
    el("h1", {}, "Does pretraining help your task?"),
    el("p", { className: "more" },
      "Drop a table of labelled texts. Headstart checks it, plans a fair comparison, trains several kinds of ",
      "classifier on this machine, and reports with confidence intervals which one to use. Then you can try it."),
    uploadForm(),
    studies,
  );
  await showStudies(studies);
}

function uploadForm() {
  const chosen = { data: null, corpus: null };
  const status = el("div");
  const go = el("button", { type: "submit", className: "primary", disabled: true }, "Look at the data");
  const pick = (role) => (file) => {
    chosen[role] = file;
    go.disabled = !chosen.data;
  };
  // A file that misses the places must not replace the page.
  for (const kind of ["dragover", "drop"]) addEventListener(kind, (event) => event.preventDefault());
  const form = el("form", { className: "upload", onsubmit: submit },
    el("div", { className: "drops" },
      drop("data", "Labelled texts", "CSV, TSV, JSON or Parquet with a column for the text and one for the label; CoNLL for tags; SQuAD’s JSON for answers.",
        KINDS, pick("data")),
      drop("corpus", "Text without labels", "Optional, but it often helps most: one file with more text of the same kind, one text per line.",
        `${KINDS},.txt,.text`, pick("corpus"))),
    el("p", {}, go), status);
  return form;

  async function submit(event) {
    event.preventDefault();
    if (!chosen.data) return;
    go.disabled = true;
    try {
      const study = await sendFile("POST", "/api/studies", chosen.data);
      if (chosen.corpus) await sendFile("PUT", `/api/studies/${study.id}/corpus`, chosen.corpus);
      location.assign(`/study/${study.id}`);
    } catch (error) {
      status.replaceChildren(errorBox(error));
      go.disabled = false;
    }
  }

  async function sendFile(method, path, file) {
    const began = Date.now();
    const progress = bar(0, `Upload of ${file.name}`);
    const words = el("p", { className: "note" }, `Copying ${file.name} …`);
    status.replaceChildren(words, progress);
    return upload(method, path, file, (share) => {
      progress.value = share;
      const left = (Date.now() - began) / share * (1 - share) / 1000;
      words.textContent = `Copying ${file.name}: ${percent(share, 0)}` + (left > 2 ? `, about ${Math.round(left)} s left` : "");
    });
  }
}

function drop(id, title, words, kinds, onPick) {
  const input = el("input", { type: "file", id, accept: kinds });
  const name = el("span", { className: "chosen" }, "Drop a file here, or choose one");
  const zone = el("label", { className: "drop", htmlFor: id },
    el("strong", {}, title), el("span", { className: "note" }, words), name, input);
  const show = (file) => {
    if (!file) return;
    name.textContent = `${file.name} · ${bytes(file.size)}`;
    zone.classList.add("full");
    onPick(file);
  };
  input.addEventListener("change", () => show(input.files[0]));
  for (const kind of ["dragenter", "dragover"]) {
    zone.addEventListener(kind, (event) => { event.preventDefault(); zone.classList.add("over"); });
  }
  for (const kind of ["dragleave", "drop"]) zone.addEventListener(kind, () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => { event.preventDefault(); show(event.dataTransfer.files[0]); });
  return zone;
}

async function showStudies(place) {
  const studies = await get("/api/studies");
  if (!studies.length) return place.replaceChildren();
  const rows = studies.map((study) => el("li", { className: "row", "data-id": study.id },
    el("div", { className: "what" },
      el("a", { href: `/study/${study.id}` }, study.name),
      el("span", { className: "note" }, when(study.created), study.files.corpus ? ` · with ${study.files.corpus}` : ""),
      study.recommendation.length ? el("span", { className: "note" }, study.recommendation[0]) : null),
    el("span", { className: `state ${study.state}` }, STATES[study.state]),
    deleteButton(study, () => showStudies(place))));
  place.replaceChildren(
    el("h2", {}, "Studies"),
    el("ul", { className: "rows" }, rows));
  return undefined;
}

// Asked twice: the first click asks, the second one, within eight seconds, deletes.
function deleteButton(study, done) {
  let timer = null;
  const button = el("button", { type: "button", className: "quiet", "aria-label": `Delete ${study.name}` }, "Delete");
  const calm = () => {
    clearTimeout(timer);
    timer = null;
    button.textContent = "Delete";
    button.classList.remove("danger");
    button.setAttribute("aria-label", `Delete ${study.name}`);
  };
  button.addEventListener("click", async () => {
    if (timer === null) {
      button.textContent = "Delete it with its data?";
      button.classList.add("danger");
      button.setAttribute("aria-label", `Really delete ${study.name} with its data?`);
      announce(`Press again to delete ${study.name} with its data.`);
      timer = setTimeout(calm, 8000);
      return;
    }
    calm();
    try {
      await send("DELETE", `/api/studies/${study.id}`);
      announce(`${study.name} is deleted.`);
      await done();
    } catch (error) {
      button.closest("li").append(errorBox(error));
    }
  });
  button.addEventListener("blur", calm);
  return button;
}
