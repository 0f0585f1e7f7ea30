// Ask: a question, its answer with the confidence, and the evidence as cards.

import { streamEvents, withQuery } from "./api.js";
import { announce, el, icon, show } from "./dom.js";
import { drawAnswer, drawFound } from "./answer.js";
import { t } from "./language.js";
import { loadMemories, memory, memoryId, memoryPath, memoryValue } from "./memories.js";
import { addQuestion, drawHistory, noteAnswer } from "./history.js";
import { problemBox } from "./problems.js";
import { goTo, linkTo, readRoute } from "./router.js";

export const KINDS = ["text", "markdown", "pdf", "docx", "odf", "pptx", "sheets", "table", "mail", "mbox", "html", "code", "note", "picture",
  "epub", "json", "records", "notebook", "calendar", "log", "settings", "rtf", "tex"];
const FILTERS = ["inside", "kind", "since", "until"];
const MAX_CACHE = 20;
const cache = new Map(); // answers by address, so that going back shows them at once

window.addEventListener("mnemic:changed", () => cache.clear());

/** Name a kind of document in the language of the interface. */
export const kindName = (kind) => {
  const name = t(`kind.${kind}`);
  return name === `kind.${kind}` ? kind : name;
};

/** A form for the question with its filters. */
function drawForm(route) {
  const value = (name) => route.values.get(name) ?? "";
  const question = el("textarea", { id: "question", name: "q", rows: 1, required: true, placeholder: t("ask.placeholder"), enterkeyhint: "search",
    autocomplete: "off", spellcheck: "true", value: value("q") });
  const fit = () => {
    question.style.height = "auto";
    question.style.height = `${question.scrollHeight}px`;
  };
  const kinds = el("select", { id: "kind", name: "kind" }, el("option", { value: "" }, t("filter.any")),
    KINDS.map((kind) => el("option", { value: kind, selected: kind === value("kind") }, kindName(kind))));
  const numFilters = FILTERS.filter((name) => value(name)).length;
  const field = (name, input) => el("div", { class: "field" }, el("label", { for: name }, t(`filter.${name}`)), input);
  const filters = el("details", { class: "filters", open: numFilters > 0 },
    el("summary", null, t("filter.title"), numFilters ? el("span", { class: "count" }, String(numFilters)) : null),
    el("div", { class: "filter-fields" },
      field("inside", el("input", { id: "inside", name: "inside", value: value("inside"), placeholder: t("filter.inside.example"), spellcheck: "false" })),
      field("kind", kinds),
      field("since", el("input", { id: "since", name: "since", type: "date", value: value("since") })),
      field("until", el("input", { id: "until", name: "until", type: "date", value: value("until") }))));
  const submit = (event) => {
    event?.preventDefault();
    const data = new FormData(form);
    const q = String(data.get("q")).trim();
    if (!q) return question.focus();
    const values = { q, m: memoryValue() };
    for (const name of FILTERS) values[name] = String(data.get(name) ?? "").trim();
    return goTo(linkTo("ask", "", values));
  };
  const form = el("form", { class: "ask-form", role: "search", onsubmit: submit },
    el("label", { for: "question", class: "ask-label" }, t("ask.label")),
    el("div", { class: "ask-box" }, question, el("button", { class: "primary", id: "ask" }, t("ask.button"))), filters);
  question.addEventListener("input", fit);
  question.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  });
  requestAnimationFrame(fit);
  return { form, question };
}

/** What to do when the memory is empty or nothing was asked yet. */
function drawEmpty() {
  const item = memory();
  if (item && item.documents === 0) {
    return el("div", { class: "empty" },
      el("h2", null, t("ask.no-documents")), el("p", null, t("ask.no-documents.help")),
      el("p", null, el("a", { class: "button primary", href: linkTo("documents", "", { m: memoryValue() }) }, icon("plus"), t("documents.add"))));
  }
  return el("div", { class: "empty quiet-empty" },
    el("p", null, item ? t("ask.ready", { n: item.documents, passages: item.passages }) : ""),
    el("p", { class: "help" }, t("ask.ready.help")));
}

/** Mount the view; `update` follows the address. */
export async function mount(main, route) {
  let running;
  const results = el("section", { class: "results", "aria-label": t("ask.results"), tabindex: "-1" });
  const history = el("aside", { class: "history", "aria-label": t("history.title") });
  const top = el("div", { class: "ask-top" });
  show(main, el("h1", { class: "hidden" }, t("nav.ask")), el("div", { class: "ask" }, el("div", { class: "ask-main" }, top, results), history));

  async function ask(address, question, values) {
    running?.abort();
    running = new AbortController();
    const { signal } = running;
    results.setAttribute("aria-busy", "true");
    show(results, drawFound(null));
    addQuestion(memoryId(), question);
    drawHistory(history);
    const body = { question };
    for (const name of FILTERS) if (values.get(name)) body[name] = values.get(name);
    try {
      for await (const event of streamEvents(memoryPath("/ask"), body, signal)) {
        if (event.name === "found") show(results, drawFound(event.data.evidence));
        if (event.name === "problem") throw Object.assign(new Error(event.data.detail ?? event.data.title), event.data);
        if (event.name === "answer") {
          cache.set(address, event.data);
          if (cache.size > MAX_CACHE) cache.delete(cache.keys().next().value);
          finish(question, event.data);
        }
      }
    } catch (problem) {
      if (problem.name === "AbortError") return;
      show(results, problemBox(problem, () => ask(address, question, values)));
    } finally {
      if (!signal.aborted) results.removeAttribute("aria-busy");
    }
  }

  function finish(question, answer) {
    show(results, drawAnswer(answer));
    noteAnswer(memoryId(), question, answer.answer);
    drawHistory(history);
    announce(answer.answer === null || answer.answer === undefined ? t("answer.none") : t("answer.said", { answer: answer.answer, percent: Math.round(answer.score * 100) }));
  }

  function update(next) {
    const address = withQuery(memoryId(), Object.fromEntries(next.values));
    const { form, question } = drawForm(next);
    const hadFocus = top.contains(document.activeElement);
    show(top, form);
    drawHistory(history);
    const q = next.values.get("q");
    document.title = q ? `${q} · mnemic` : "mnemic";
    if (!q) {
      running?.abort();
      show(results, drawEmpty());
      if (hadFocus || document.activeElement === document.body) question.focus({ preventScroll: true });
    } else if (cache.has(address)) {
      show(results, drawAnswer(cache.get(address)));
    } else ask(address, q, next.values);
    if (q && hadFocus) question.focus({ preventScroll: true });
  }

  update(route);
  const refresh = async () => {
    await loadMemories().catch(() => {});
    if (!readRoute().values.get("q")) show(results, drawEmpty());
  };
  window.addEventListener("mnemic:changed", refresh);
  const unmount = () => {
    running?.abort();
    window.removeEventListener("mnemic:changed", refresh);
  };
  return { update, unmount };
}

