// Questions that were asked in this browser; they stay in this browser.

import { announce, el, icon, show } from "./dom.js";
import { recall, remember, t } from "./language.js";
import { memoryId, memoryValue } from "./memories.js";
import { linkTo } from "./router.js";

const KEY = "mnemic.questions";
const MAX_QUESTIONS = 50;

function read() {
  try {
    const questions = JSON.parse(recall(KEY) ?? "[]");
    return Array.isArray(questions) ? questions : [];
  } catch {
    return [];
  }
}

/** Put a question at the beginning of the list. */
export function addQuestion(memory, question) {
  const isSame = (item) => item.question === question && item.memory === memory;
  const questions = read();
  const entry = questions.find(isSame) ?? { memory, question };
  remember(KEY, JSON.stringify([entry, ...questions.filter((item) => !isSame(item))].slice(0, MAX_QUESTIONS)));
}

/** Note the answer to a question, unless the question was deleted meanwhile. */
export function noteAnswer(memory, question, answer) {
  const questions = read().map((item) => (item.question === question && item.memory === memory ? { ...item, answer: answer ?? "" } : item));
  remember(KEY, JSON.stringify(questions));
}

/** Drop the answers of this memory: they may quote what was forgotten. The questions stay. */
export function dropAnswers() {
  remember(KEY, JSON.stringify(read().map((item) => (item.memory === memoryId() ? { ...item, answer: null } : item))));
}

/** Draw the questions of this memory with buttons that delete them. */
export function drawHistory(place) {
  const questions = read().filter((item) => item.memory === memoryId());
  if (!questions.length) {
    show(place);
    return;
  }
  const forget = (question) => {
    remember(KEY, JSON.stringify(read().filter((item) => item.memory !== memoryId() || (question !== null && item.question !== question))));
    drawHistory(place);
    announce(t("history.deleted"));
    (place.querySelector("a") ?? document.getElementById("question"))?.focus();
  };
  show(place,
    el("div", { class: "history-head" }, el("h2", null, t("history.title")),
      el("button", { type: "button", class: "quiet small", onclick: () => forget(null) }, t("history.clear"))),
    el("ul", null, questions.map((item) => el("li", null,
      el("a", { href: linkTo("ask", "", { q: item.question, m: memoryValue() }) }, el("span", { class: "history-question" }, item.question),
        item.answer === null ? null : el("span", { class: "help" }, item.answer === undefined ? "…" : item.answer || t("answer.none.short"))),
      el("button", { type: "button", class: "tool tool-icon small", "aria-label": t("history.delete", { question: item.question }), onclick: () => forget(item.question) }, icon("close"))))),
    el("p", { class: "help" }, t("history.local")));
}
