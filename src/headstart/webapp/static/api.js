// Requests to our own server: errors as it words them, uploads with progress, polling.

const token = document.querySelector('meta[name="headstart-token"]').content;

export class AppError extends Error {
  constructor(error) {
    super(error.what);
    Object.assign(this, error);
  }
}

const unreachable = {
  what: "the app does not answer", where: null,
  fix: "it may have been ended: start it again with `headstart app`; a study goes on meanwhile",
};

function errorOf(status, text) {
  try {
    return new AppError(JSON.parse(text).error);
  } catch {
    return new AppError({ what: text.trim() || `the app answered with ${status}`, where: null, fix: null });
  }
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new AppError(unreachable);
  }
  if (!response.ok && response.status !== 304) throw errorOf(response.status, await response.text());
  return response;
}

export const get = async (path) => (await request(path)).json();
export const getText = async (path) => (await request(path)).text();

export async function send(method, path, body) {
  const response = await request(path, {
    method,
    headers: { "x-headstart-token": token, "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return response.status === 204 ? null : response.json();
}

// `onProgress` gets the share that is sent; fetch cannot say that, an XMLHttpRequest can.
export function upload(method, path, file, onProgress = () => {}) {
  return new Promise((resolve, reject) => {
    const sent = new XMLHttpRequest();
    sent.open(method, path);
    sent.setRequestHeader("x-headstart-token", token);
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
// that needs long for an answer is asked less often: its processor has better things to do.
export function watch(path, onNews, onTrouble, pace = () => 1000) {
  let version = null, timer = null, stopped = false;
  const look = async () => {
    clearTimeout(timer);
    const began = Date.now();
    try {
      const response = await request(path, { headers: version ? { "if-none-match": version } : {}, cache: "no-store" });
      if (response.status !== 304) {
        version = response.headers.get("etag");
        const found = await response.json();
        if (!stopped) onNews(found);
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
