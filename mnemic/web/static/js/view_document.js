// A document: the text as it was read, its pages as pictures, its versions, its history.

import { get, putJson, withQuery } from "./api.js";
import { announce, el, icon, openDialog, show } from "./dom.js";
import { drawPassages } from "./document_text.js";
import { drawPages } from "./document_pages.js";
import { askForget } from "./forget.js";
import { formatBytes, formatTime, t } from "./language.js";
import { memoryPath, memoryValue } from "./memories.js";
import { splitName, titleOf } from "./names.js";
import { describeProblem, problemBox } from "./problems.js";
import { goTo, linkTo } from "./router.js";
import { kindName } from "./view_ask.js";

const PAGED = new Set(["pdf", "picture"]);
const EDITABLE = new Set(["note", "text", "markdown"]);
const LIMIT = 60; // passages at once
const NUMBERS = ["passage", "page", "start", "end", "from", "to"];

/** What the address asks to highlight. */
function readTarget(values) {
  const target = {};
  for (const name of NUMBERS) target[name] = values.has(name) && values.get(name) !== "" ? Number(values.get(name)) : null;
  return target;
}

function drawVersions(info) {
  const versions = info.versions ?? [];
  const events = info.events ?? [];
  if (versions.length < 2 && !events.length) return null;
  return el("details", { class: "more" }, el("summary", null, t("document.history")),
    versions.length > 1 && el("ol", { class: "versions" }, versions.map((version) => el("li", null,
      el("a", { href: linkTo("document", version.id, { m: memoryValue() }), "aria-current": version.id === info.id ? "true" : null }, t("document.version", { time: formatTime(version.remembered_at) })),
      version.is_active ? el("span", { class: "badge" }, t("document.current")) : null))),
    el("ul", { class: "events" }, events.map((event) => el("li", null, el("time", { datetime: event.time }, formatTime(event.time)), ` ${eventName(event.kind)}`, event.note ? ` · ${event.note}` : ""))));
}

const eventName = (kind) => {
  const name = t(`event.${kind}`);
  return name.startsWith("event.") ? kind : name;
};

function editText(info, text) {
  openDialog(t("document.edit"), t("close"), (dialog) => {
    const body = el("textarea", { id: "edit-text", rows: 14, required: true, autofocus: true, value: text });
    const message = el("p", { class: "field-error", role: "alert" });
    const submit = async (event) => {
      event.preventDefault();
      try {
        const made = await putJson(memoryPath(`/documents/${info.id}`), { text: body.value });
        dialog.close();
        window.dispatchEvent(new CustomEvent("mnemic:changed"));
        announce(t("note.saved"));
        goTo(linkTo("document", made.id, { m: memoryValue() }));
      } catch (problem) {
        message.textContent = describeProblem(problem);
      }
    };
    return el("form", { onsubmit: submit }, el("label", { for: "edit-text" }, t("note.text")), body,
      el("p", { class: "help" }, t("document.edit.help")), message, el("div", { class: "row end" }, el("button", { class: "primary" }, t("document.edit.save"))));
  });
}

async function readWholeText(info) {
  const pieces = [];
  let after;
  do {
    const page = await get(withQuery(memoryPath(`/documents/${info.id}/passages`), { limit: LIMIT, after }));
    pieces.push(...page.passages.map((passage) => passage.text));
    after = page.next;
  } while (after);
  return pieces.join("\n\n");
}

function drawHead(info) {
  const facts = [kindName(info.kind), formatBytes(info.bytes), info.pages ? t("documents.pages", { n: info.pages }) : "", t("documents.passages", { n: info.passages })];
  const { base, folder } = splitName(info);
  return el("header", { class: "document-head" },
    el("p", { class: "back" }, el("button", { type: "button", class: "quiet", onclick: () => (document.documentElement.dataset.hasMoved ? window.history.back() : goTo("#/documents")) }, icon("back"), t("back"))),
    el("h1", { tabindex: "-1" }, base),
    titleOf(info) && el("p", { class: "document-title" }, titleOf(info)),
    el("p", { class: "help" }, folder ? `${folder} · ` : "", facts.filter(Boolean).join(" · "), info.remembered_at ? ` · ${t("document.remembered", { time: formatTime(info.remembered_at) })}` : ""),
    info.is_active === false && el("p", { class: "badge" }, t("document.superseded")),
    (info.notes ?? []).length ? el("ul", { class: "document-notes" }, info.notes.map((note) => el("li", null, note))) : null,
    el("div", { class: "row" },
      info.has_original && el("a", { class: "button small", href: memoryPath(`/documents/${info.id}/original`), download: "" }, t("document.original")),
      EDITABLE.has(info.kind) && info.is_active !== false && el("button", { type: "button", class: "small", onclick: async () => editText(info, await readWholeText(info)) }, t("document.edit")),
      el("button", { type: "button", class: "small quiet", onclick: () => askForget(info, () => goTo(linkTo("documents", "", { m: memoryValue() }))) }, t("forget.button"))));
}

/** Show the passages, from the one that is asked for; earlier and later ones follow on demand. */
async function showText(place, info, target) {
  const path = memoryPath(`/documents/${info.id}/passages`);
  const first = await get(withQuery(path, { limit: LIMIT, around: target.passage }));
  const body = el("div", { class: "reading-body" });
  const top = el("div", { class: "row center" });
  const bottom = el("div", { class: "row center" });
  let passages = first.passages;
  let [next, previous] = [first.next, first.previous];
  const redraw = () => {
    show(body, drawPassages(info, passages, target));
    show(top, previous ? el("button", { type: "button", onclick: earlier }, t("document.earlier")) : null);
    show(bottom, next ? el("button", { type: "button", onclick: later }, t("document.later")) : null);
  };
  const later = async () => {
    const page = await get(withQuery(path, { limit: LIMIT, after: next }));
    passages = [...passages, ...page.passages];
    next = page.next;
    redraw();
  };
  const earlier = async () => {
    const page = await get(withQuery(path, { limit: LIMIT, after: previous === "0" ? undefined : previous }));
    const known = new Set(passages.map((passage) => passage.id));
    const height = document.documentElement.scrollHeight;
    passages = [...page.passages.filter((passage) => !known.has(passage.id)), ...passages];
    previous = page.previous;
    redraw();
    window.scrollBy(0, document.documentElement.scrollHeight - height);
  };
  redraw();
  show(place, top, body, bottom);
}

function goToMark(place) {
  const mark = place.querySelector("mark.said, .cell-said") ?? place.querySelector("mark, .box, .is-found");
  if (!mark) return;
  mark.setAttribute("tabindex", "-1");
  mark.scrollIntoView({ block: "center", behavior: "instant" });
  mark.focus({ preventScroll: true });
  announce(t("document.at-mark"));
}

/** Mount the view. */
export async function mount(place, route) {
  let isGone = false;
  async function draw(next) {
    show(place, el("p", { class: "loading" }, t("loading")));
    let info;
    try {
      info = await get(memoryPath(`/documents/${encodeURIComponent(next.id)}`));
    } catch (problem) {
      const message = problem.status === 404 ? el("div", { class: "empty" }, el("h1", { tabindex: "-1" }, t("document.missing")), el("p", null, t("document.missing.help")),
        el("p", null, el("a", { class: "button", href: "#/documents" }, t("nav.documents")))) : problemBox(problem, () => draw(next));
      show(place, message);
      return;
    }
    if (isGone) return;
    const target = readTarget(next.values);
    const body = el("section", { class: `reading reading-${info.kind}`, "aria-label": t("document.text") });
    const hasPages = PAGED.has(info.kind) && info.has_original !== false;
    const modes = ["pages", "text"].map((mode) => el("button", { type: "button", class: "segment", "data-mode": mode, "aria-pressed": "false", onclick: () => setMode(mode) }, t(`document.${mode}`)));
    async function setMode(mode) {
      for (const button of modes) button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
      try {
        if (mode === "pages") await drawPages(body, info, target);
        else await showText(body, info, target);
      } catch (problem) {
        if (mode === "pages" && problem.status !== 0) await setMode("text");
        else show(body, problemBox(problem, () => setMode(mode)));
        return;
      }
      if (target.passage !== null) goToMark(body);
    }
    document.title = `${info.name || info.title} · mnemic`;
    show(place, drawHead(info), hasPages && el("div", { class: "segments", role: "group", "aria-label": t("document.view") }, modes), body, drawVersions(info));
    if (target.passage === null) place.querySelector("h1").focus({ preventScroll: true });
    await setMode(hasPages ? "pages" : "text");
  }
  await draw(route);
  return { update: draw, unmount: () => { isGone = true; } };
}
