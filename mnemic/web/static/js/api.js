// Requests to the server on this address, and nowhere else.

/** An error that the server explained (RFC 9457), or that the connection is gone (status 0). */
export class Problem extends Error {
  constructor(status, title, detail, errors = []) {
    super(detail || title);
    this.status = status;
    this.title = title;
    this.errors = errors;
  }
}

const tell = (name, detail) => window.dispatchEvent(new CustomEvent(`mnemic:${name}`, { detail }));

async function readProblem(response, path) {
  let body = {};
  try {
    body = await response.json();
  } catch { /* a proxy's page, or nothing */ }
  if (response.status === 401 && path !== "/v1/session") tell("signed-out");
  const detail = typeof body.detail === "string" ? body.detail : "";
  return new Problem(response.status, body.title ?? response.statusText, detail, body.errors ?? []);
}

/** Send a request; a dropped connection and an unauthorized answer are announced to the page. */
export async function send(method, path, { body, headers = {}, signal } = {}) {
  const isForm = body instanceof FormData;
  const options = { method, signal, credentials: "same-origin", headers: { "X-Mnemic": "1", Accept: "application/json", ...headers } };
  if (body !== undefined) options.body = isForm ? body : JSON.stringify(body);
  if (body !== undefined && !isForm) options.headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    tell("unreachable");
    throw new Problem(0, "", "");
  }
  if (!response.ok) throw await readProblem(response, path);
  return response;
}

async function sendForJson(method, path, options) {
  const response = await send(method, path, options);
  return response.status === 204 ? null : response.json();
}

export const get = (path, options) => sendForJson("GET", path, options);
export const post = (path, body, options) => sendForJson("POST", path, { body, ...options });
export const putJson = (path, body) => sendForJson("PUT", path, { body });
export const remove = (path) => sendForJson("DELETE", path);

/** A path with its parameters; empty ones are left out. */
export function withQuery(path, values) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  return query.size ? `${path}?${query}` : path;
}

/** Parse server-sent events from a stream of bytes. */
async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    buffer = (buffer + value).replaceAll("\r\n", "\n");
    for (let end = buffer.indexOf("\n\n"); end >= 0; end = buffer.indexOf("\n\n")) {
      const event = { name: "message", data: "" };
      for (const line of buffer.slice(0, end).split("\n")) {
        if (line.startsWith("event:")) event.name = line.slice(6).trim();
        if (line.startsWith("data:")) event.data += line.slice(5).trim();
      }
      buffer = buffer.slice(end + 2);
      if (event.data) yield { name: event.name, data: JSON.parse(event.data) };
    }
  }
}

/** Post a question and yield events as they come; a server without streams gives one `answer`. */
export async function* streamEvents(path, body, signal) {
  const response = await send("POST", path, { body, signal, headers: { Accept: "text/event-stream, application/json" } });
  if (!response.headers.get("Content-Type")?.startsWith("text/event-stream")) {
    yield { name: "answer", data: await response.json() };
    return;
  }
  try {
    yield* readEvents(response.body);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    tell("unreachable");
    throw new Problem(0, "", "");
  }
}

/** Upload a form with progress; the browser tells how many bytes have left. */
export function upload(path, form, onProgress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    request.setRequestHeader("X-Mnemic", "1");
    request.setRequestHeader("Accept", "application/json");
    request.responseType = "json";
    request.upload.onprogress = (event) => onProgress(event.loaded, event.total);
    request.onload = () => {
      const body = request.response ?? {};
      if (request.status < 300) resolve(body);
      else {
        if (request.status === 401) tell("signed-out");
        reject(new Problem(request.status, body.title ?? request.statusText, body.detail ?? "", body.errors ?? []));
      }
    };
    request.onerror = () => {
      tell("unreachable");
      reject(new Problem(0, "", ""));
    };
    request.send(form);
  });
}
