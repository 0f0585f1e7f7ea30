// Forget a document: ask first, then show the proof.

import { remove } from "./api.js";
import { el, icon, openDialog, show } from "./dom.js";
import { dropAnswers } from "./history.js";
import { t } from "./language.js";
import { loadMemories, memoryPath } from "./memories.js";
import { problemBox } from "./problems.js";

function drawProof(result) {
  const traces = result.traces ?? [];
  const rows = [
    [t("proof.documents"), t("count.plain", { n: (result.documents ?? []).length })],
    [t("proof.passages"), t("count.plain", { n: result.passages ?? 0 })],
    [t("proof.files"), t("count.plain", { n: result.files_removed ?? 0 })],
    [t("proof.traces"), result.verified ? t("count.plain", { n: traces.length }) : t("proof.unverified")],
  ];
  const isClean = result.verified && !traces.length;
  return el("div", { class: "proof", tabindex: "-1" },
    el("p", { class: isClean ? "proof-good" : "proof-bad" }, icon(isClean ? "check" : "alert"), t(isClean ? "proof.clean" : "proof.unclean")),
    el("dl", { class: "facts" }, rows.map(([name, value]) => el("div", null, el("dt", null, name), el("dd", null, value)))),
    el("p", { class: "help" }, t("proof.help")));
}

/** Ask whether to forget a document; `onDone` runs after it is gone. */
export function askForget(item, onDone) {
  let isGone = false;
  const dialog = openDialog(t("forget.title"), t("close"), (self) => {
    const body = el("div");
    const act = async (event) => {
      event.target.disabled = true;
      show(status, el("p", { role: "status" }, t("forget.working")));
      try {
        const result = await remove(`${memoryPath(`/documents/${encodeURIComponent(item.id)}`)}?verify=true`);
        isGone = true;
        dropAnswers();
        show(body, drawProof(result), el("div", { class: "row end" }, el("button", { type: "button", class: "primary", onclick: () => self.close() }, t("close"))));
        body.firstChild.focus();
        await loadMemories().catch(() => {});
      } catch (problem) {
        event.target.disabled = false;
        show(status, problemBox(problem));
      }
    };
    const status = el("div");
    show(body, el("p", null, t("forget.question", { name: item.name || item.title })), el("p", { class: "help" }, t("forget.help")), status,
      el("div", { class: "row end" },
        el("button", { type: "button", onclick: () => self.close(), autofocus: true }, t("cancel")),
        el("button", { type: "button", class: "danger", onclick: act }, t("forget.button"))));
    return body;
  });
  dialog.addEventListener("close", () => {
    if (!isGone) return;
    window.dispatchEvent(new CustomEvent("mnemic:changed"));
    onDone?.();
  });
}
