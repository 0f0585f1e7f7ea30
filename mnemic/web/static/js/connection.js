// Notice a server that is gone and one that is back; ask for the token when it is missing.

import { get, post } from "./api.js";
import { el, icon, show } from "./dom.js";
import { t } from "./language.js";

const PAUSE_S = 15; // between two looks while all is well
const RETRY_S = 1; // while the server is gone
let isGone = false;
let timer;

function showNotice(kind, text) {
  const notice = document.getElementById("notice");
  notice.hidden = !text;
  notice.className = `notice notice-${kind}`;
  if (text) show(notice, el("p", null, icon(kind === "good" ? "check" : "alert"), text));
}

async function look() {
  clearTimeout(timer);
  let isThere = false;
  try {
    const response = await fetch("/v1/health", { cache: "no-store", signal: AbortSignal.timeout(5000) });
    isThere = response.ok;
  } catch { /* still gone */ }
  if (isThere && isGone) {
    isGone = false;
    showNotice("good", t("connection.back"));
    setTimeout(() => { if (!isGone) showNotice("good", ""); }, 4000);
    window.dispatchEvent(new CustomEvent("mnemic:back"));
  } else if (!isThere && !isGone) {
    isGone = true;
    showNotice("bad", t("connection.gone"));
  }
  timer = setTimeout(look, (isGone ? RETRY_S : PAUSE_S) * 1000);
}

/** Begin to watch the connection. */
export function watchConnection() {
  window.addEventListener("mnemic:unreachable", look);
  window.addEventListener("online", look);
  window.addEventListener("offline", look);
  window.addEventListener("mnemic:language", () => { if (isGone) showNotice("bad", t("connection.gone")); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
  timer = setTimeout(look, PAUSE_S * 1000);
}

/** Exchange the code of a one-time link for a session; return an error's text or "". */
export async function useLink() {
  const code = decodeURIComponent(location.hash.slice(1));
  history.replaceState(null, "", "/#/ask");
  try {
    await post("/v1/session", { code });
    return "";
  } catch (problem) {
    return problem.message || t("token.link");
  }
}

/** Read the session; a server that does not answer counts as authenticated until it says otherwise. */
export async function readSession() {
  try {
    return await get("/v1/session");
  } catch {
    return { authenticated: true, version: "" };
  }
}

/** Show the form that asks for the token; `onDone` runs when the server accepts it. */
export function askToken(main, error, onDone) {
  const message = el("p", { class: "field-error", id: "token-error", role: "alert" }, error);
  const field = el("input", { id: "token", type: "password", autocomplete: "current-password", required: true, spellcheck: "false",
    "aria-describedby": "token-help token-error" });
  const submit = async (event) => {
    event.preventDefault();
    message.textContent = "";
    try {
      await post("/v1/session", { token: field.value.trim() });
      onDone();
    } catch (problem) {
      message.textContent = problem.status === 401 || problem.status === 403 ? t("token.wrong") : problem.message || t("connection.gone");
      field.focus();
    }
  };
  show(main, el("section", { class: "narrow token" },
    el("h1", null, t("token.title")),
    el("p", { id: "token-help" }, t("token.help"), " ", el("code", null, "mnemic serve")),
    el("form", { onsubmit: submit },
      el("label", { for: "token" }, t("token.label")),
      el("div", { class: "row" }, field, el("button", { class: "primary" }, t("token.open"))),
      message)));
  field.focus();
}
