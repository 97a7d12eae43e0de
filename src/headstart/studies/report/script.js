// Three small things: the switch for single seeds, light or dark, and values under the pointer
// (hover.js, which stands before this in the page).
const root = document.documentElement;

document.getElementById("seeds").addEventListener("change", (event) => {
  document.body.classList.toggle("show-seeds", event.target.checked);
});

document.getElementById("theme").addEventListener("click", () => {
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
});

showValues(document);
