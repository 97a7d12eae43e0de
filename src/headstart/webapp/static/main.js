// Which page this is, by its address; and the switch for light and dark.
import { el, errorBox, page } from "./dom.js";
import { showHome } from "./home.js";
import { showStudy } from "./study.js";

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
  localStorage.setItem("headstart-theme", root.dataset.theme);
});

const study = location.pathname.match(/^\/study\/([0-9a-f]{12})$/);
try {
  if (study) await showStudy(study[1]);
  else await showHome();
} catch (error) {
  page().replaceChildren(
    el("h1", {}, "Something went wrong"),
    errorBox(error.what ? error : { what: String(error) }),
    el("p", {}, el("a", { href: "/" }, "All studies")),
  );
}
