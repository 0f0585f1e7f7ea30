// What went wrong, said so that a person can act.

import { el, icon } from "./dom.js";
import { t } from "./language.js";

/** The sentence of an error. */
export function describeProblem(problem) {
  if (problem.status === 0) return t("connection.gone");
  const fields = (problem.errors ?? []).map((error) => `${error.field}: ${error.message}`).join("; ");
  return [problem.message || problem.title || t("problem.unknown"), fields].filter(Boolean).join(" ");
}

/** A box with an error and, if there is one, a button to try again. */
export function problemBox(problem, retry) {
  return el("div", { class: "problem", role: "alert" }, icon("alert"),
    el("div", null,
      el("p", null, describeProblem(problem)),
      retry && el("button", { type: "button", class: "quiet", onclick: retry }, t("problem.retry"))));
}
