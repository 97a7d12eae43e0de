// Elements and words. Whatever a user wrote becomes text, never markup.

export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "style") Object.assign(made.style, value);
    else if (key in made && key !== "list" && key !== "form") made[key] = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export const page = () => document.getElementById("main");

// For screen readers: what just happened.
export function announce(words) {
  const place = document.getElementById("announce");
  if (place.textContent !== words) place.textContent = words;
}

export function errorBox(error) {
  const box = el("div", { className: "error", role: "alert" }, el("p", {}, el("strong", {}, sentence(error.what))));
  if (error.where) box.append(el("p", { className: "note" }, `Where: ${error.where}`));
  if (error.fix) box.append(el("p", {}, `How to fix it: ${error.fix}`));
  return box;
}

// What is worth knowing, and is not an error.
export const notes = (lines) => el("ul", { className: "notes" }, lines.map((words) => el("li", {}, sentence(words))));

// Pictures and report, made and escaped by our server; scripts in it would not run.
export function trusted(html) {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  return [...parsed.body.childNodes].map((node) => document.adoptNode(node));
}

export function sentence(words) {
  const text = String(words);
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?:…]$/.test(text) ? "" : ".");
}

export const count = (number) => Number(number).toLocaleString("en");
export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;

export function duration(seconds) {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  if (whole < 5400) return `${Math.round(whole / 60)} minutes`;
  return `${Math.floor(whole / 3600)} h ${String(Math.round((whole % 3600) / 60)).padStart(2, "0")} min`;
}

// For what is only estimated: no seconds where there are minutes.
export const roughly = (seconds) =>
  seconds >= 90 && seconds < 5400 ? `${Math.round(seconds / 60)} minutes` : duration(seconds);

export function bytes(size) {
  if (size < 1e6) return `${Math.max(1, Math.round(size / 1e3))} kB`;
  return size < 1e9 ? `${(size / 1e6).toFixed(1)} MB` : `${(size / 1e9).toFixed(2)} GB`;
}

export const when = (seconds) =>
  new Date(seconds * 1000).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });

// A bar that fills; without a share it only says that something is going on.
export function bar(share, label) {
  const made = el("progress", { max: 1, "aria-label": label });
  if (share !== null && share !== undefined) made.value = share;
  return made;
}

export function table(head, rows, attributes = {}) {
  return el("div", { className: "scroll" }, el("table", attributes,
    el("thead", {}, el("tr", {}, head.map((cell) => el("th", { scope: "col" }, cell)))),
    el("tbody", {}, rows.map((row) => el("tr", {},
      row.map((cell, place) => el(place ? "td" : "th", place ? {} : { scope: "row" }, cell)))))));
}
