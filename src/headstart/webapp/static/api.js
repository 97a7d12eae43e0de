// Requests to our server, with the key of this launch; errors as documents; uploads with progress; polling.

const KEY = "headstart-key";
const UPLOAD_MB = Number(document.querySelector('meta[name="upload-mb"]').content);
const tabs = new BroadcastChannel("headstart"); // reaches tabs of this address and port only
let key = null;

export class AppError extends Error {
  constructor(error) {
    super(error.what);
    Object.assign(this, error);
  }
}

// The key comes with the printed address, from this tab's storage, or from another tab of the app.
async function findKey() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (given.has("key") || given.has("ticket")) history.replaceState(null, "", location.pathname + location.search);
  if (given.has("key")) return given.get("key");
  if (given.has("ticket")) {
    const response = await fetch("/session", { method: "POST", headers: { "x-headstart-ticket": given.get("ticket") } });
    if (response.ok) return (await response.json()).token;
  }
  return sessionStorage.getItem(KEY) ?? askOtherTabs();
}

function askOtherTabs() {
  return new Promise((resolve) => {
    const listen = (event) => { if (event.data.key) { tabs.removeEventListener("message", listen); resolve(event.data.key); } };
    tabs.addEventListener("message", listen);
    tabs.postMessage({ wanted: true });
    setTimeout(() => resolve(""), 500);
  });
}

key = await findKey();
if (key) sessionStorage.setItem(KEY, key);
tabs.addEventListener("message", (event) => { if (event.data.wanted && key) tabs.postMessage({ key }); });

const unreachable = {
  what: "the app does not respond", where: null, code: "unreachable",
  fix: "it may have been stopped: start it again and open the address that it prints. A running study continues",
};

function errorOf(status, text) {
  try {
    const { error, ...more } = JSON.parse(text);
    return new AppError({ what: error, ...more });
  } catch {
    return new AppError({ what: text.trim() || `the app answered with ${status}`, where: null, fix: null });
  }
}

async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", ...options, headers: { authorization: `Bearer ${key}`, ...options.headers } });
  } catch {
    throw new AppError(unreachable);
  }
  if (!response.ok) throw errorOf(response.status, await response.text());
  return response;
}

export const get = async (path) => (await request(path)).json();
export const getText = async (path) => (await request(path)).text();

export async function send(method, path, body = {}) {
  const response = await request(path, {
    method, headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  });
  return response.status === 204 ? null : response.json();
}

// A link could not send the key: the file is fetched, then saved.
export async function download(path, name) {
  const response = await request(path);
  const named = /filename="?([^";]+)/.exec(response.headers.get("content-disposition") ?? "");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = named ? named[1] : name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// `onProgress` gets the share that is sent; fetch cannot say that, an XMLHttpRequest can.
export function upload(method, path, file, onProgress = () => {}) {
  return new Promise((resolve, reject) => {
    if (file.size > UPLOAD_MB * 1e6) {
      reject(new AppError({ what: `the file is larger than ${UPLOAD_MB.toLocaleString("en")} MB`, where: file.name, fix: "give a smaller file" }));
      return;
    }
    const sent = new XMLHttpRequest();
    sent.open(method, path);
    sent.setRequestHeader("authorization", `Bearer ${key}`);
    sent.setRequestHeader("x-file-name", encodeURIComponent(file.name));
    sent.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) onProgress(event.loaded / event.total);
    });
    sent.addEventListener("load", () => {
      if (sent.status < 300) resolve(JSON.parse(sent.responseText));
      else reject(errorOf(sent.status, sent.responseText));
    });
    sent.addEventListener("error", () => reject(new AppError(unreachable)));
    sent.send(file);
  });
}

// Calls `onNews` whenever the document changed; `pace` says how many milliseconds to wait. A server
// that needs long for a response is asked less often: its processor has better things to do.
export function watch(path, onNews, onTrouble, pace = () => 1000) {
  let known = null, timer = null, stopped = false;
  const look = async () => {
    clearTimeout(timer);
    const began = Date.now();
    try {
      const text = await getText(path);
      if (text !== known && !stopped) {
        known = text;
        onNews(JSON.parse(text));
      }
      onTrouble(null);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      onTrouble(error);
    }
    clearTimeout(timer);
    const pause = Math.max(document.hidden ? 10000 : pace(), 10 * (Date.now() - began));
    if (!stopped) timer = setTimeout(look, pause);
  };
  document.addEventListener("visibilitychange", () => { if (!document.hidden && !stopped) look(); });
  look();
  return { now: look, stop: () => { stopped = true; clearTimeout(timer); } };
}
