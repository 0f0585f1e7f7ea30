// Add documents: files, folders and pasted text; by drag and drop, picker or keyboard.

import { post, upload } from "./api.js";
import { announce, el, icon, openDialog, show } from "./dom.js";
import { formatBytes, formatNumber, t } from "./language.js";
import { followJob } from "./jobs.js";
import { loadMemories, memoryPath } from "./memories.js";
import { problemBox, describeProblem } from "./problems.js";

const MAX_FILES = 1000; // of one request; the server takes more
const MAX_BYTES = 500_000_000;
const MAX_ENTRIES = 5000; // of one read of a dropped folder

/** Group files into uploads that are not too large. */
export function groupFiles(files) {
  const groups = [];
  let bytes = 0;
  for (const item of files) {
    if (!groups.length || groups.at(-1).length >= MAX_FILES || bytes + item.file.size > MAX_BYTES) {
      groups.push([]);
      bytes = 0;
    }
    groups.at(-1).push(item);
    bytes += item.file.size;
  }
  return groups;
}

async function readEntry(entry, files) {
  if (files.length >= MAX_ENTRIES || entry.name.startsWith(".")) return;
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => { entry.file(resolve, reject); });
    files.push({ file, path: entry.fullPath.replace(/^\//, "") });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const entries = await new Promise((resolve, reject) => { reader.readEntries(resolve, reject); });
    if (!entries.length) return;
    for (const child of entries) await readEntry(child, files);
  }
}

async function readDropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files].map((file) => ({ file, path: file.name }));
  const files = [];
  for (const entry of entries) await readEntry(entry, files);
  return files;
}

/** The panel that takes documents; anything may be dropped on the whole view. */
export function drawAdding(view) {
  const status = el("div", { class: "adding-status", role: "status" });
  const fileInput = el("input", { type: "file", multiple: true, id: "pick-files", class: "hidden", tabindex: "-1", "aria-hidden": "true" });
  const folderInput = el("input", { type: "file", webkitdirectory: true, id: "pick-folder", class: "hidden", tabindex: "-1", "aria-hidden": "true" });

  async function addFiles(files) {
    if (!files.length) return;
    const total = files.reduce((sum, item) => sum + item.file.size, 0);
    const bar = el("progress", { max: 1, value: 0, "aria-label": t("adding.progress") });
    show(status, el("p", null, t("adding.sending", { n: files.length, size: formatBytes(total) })), bar);
    let sent = 0;
    try {
      for (const group of groupFiles(files)) {
        const form = new FormData();
        for (const item of group) form.append("files", item.file, item.path);
        const answer = await upload(memoryPath("/documents"), form, (loaded) => { bar.value = total ? Math.min(1, (sent + loaded) / total) : 1; });
        sent += group.reduce((sum, item) => sum + item.file.size, 0);
        followJob(answer.job ?? answer);
      }
      show(status);
      announce(t("adding.sent", { n: files.length }));
    } catch (problem) {
      show(status, problemBox(problem, () => addFiles(files)));
    }
  }

  fileInput.addEventListener("change", () => {
    addFiles([...fileInput.files].map((file) => ({ file, path: file.name })));
    fileInput.value = "";
  });
  folderInput.addEventListener("change", () => {
    addFiles([...folderInput.files].filter((file) => !/(^|\/)\./.test(file.webkitRelativePath)).map((file) => ({ file, path: file.webkitRelativePath || file.name })));
    folderInput.value = "";
  });

  const zone = el("section", { class: "dropzone", "aria-label": t("documents.add") },
    el("p", { class: "dropzone-words" }, icon("down"), t("adding.drop")),
    el("div", { class: "row" },
      el("button", { type: "button", class: "primary", onclick: () => fileInput.click() }, t("adding.files")),
      el("button", { type: "button", onclick: () => folderInput.click() }, t("adding.folder")),
      el("button", { type: "button", onclick: () => writeNote("") }, t("adding.note"))),
    fileInput, folderInput, status);

  let depth = 0;
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const mark = (isOver) => zone.classList.toggle("is-over", isOver);
  view.addEventListener("dragenter", (event) => { if (hasFiles(event)) mark((depth += 1) > 0); });
  view.addEventListener("dragleave", (event) => { if (hasFiles(event)) mark((depth = Math.max(0, depth - 1)) > 0); });
  view.addEventListener("dragover", (event) => { if (hasFiles(event)) event.preventDefault(); });
  view.addEventListener("drop", async (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    mark((depth = 0) > 0);
    addFiles(await readDropped(event.dataTransfer));
  });
  view.addEventListener("paste", (event) => {
    if (event.target.closest("input, textarea, dialog")) return;
    const files = [...(event.clipboardData?.files ?? [])];
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (files.length) addFiles(files.map((file) => ({ file, path: file.name })));
    else if (text.trim()) writeNote(text);
  });
  return zone;
}

/** Write a note, or save what was pasted as one. */
export function writeNote(text) {
  openDialog(t("note.title"), t("close"), (dialog) => {
    const message = el("div", { role: "alert" });
    const title = el("input", { id: "note-name", maxlength: 200, autocomplete: "off" });
    const body = el("textarea", { id: "note-text", rows: 10, required: true, autofocus: true, value: text });
    const count = el("p", { class: "help" });
    const recount = () => { count.textContent = t("note.characters", { n: formatNumber(body.value.length) }); };
    body.addEventListener("input", recount);
    recount();
    const button = el("button", { class: "primary" }, t("note.save"));
    const submit = async (event) => {
      event.preventDefault();
      button.disabled = true;
      try {
        await post(memoryPath("/notes"), { text: body.value, title: title.value.trim() });
        dialog.close();
        await loadMemories().catch(() => {});
        window.dispatchEvent(new CustomEvent("mnemic:changed"));
        announce(t("note.saved"));
      } catch (problem) {
        show(message, el("p", { class: "field-error" }, describeProblem(problem)));
        button.disabled = false;
      }
    };
    return el("form", { onsubmit: submit },
      el("label", { for: "note-text" }, t("note.text")), body, count,
      el("label", { for: "note-name" }, t("note.name")), title, message,
      el("div", { class: "row end" }, button));
  });
}
