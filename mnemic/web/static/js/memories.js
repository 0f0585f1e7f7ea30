// Which memory the page shows, and the switch for it.

import { get, post } from "./api.js";
import { announce, el, openDialog, show } from "./dom.js";
import { recall, remember, t } from "./language.js";
import { describeProblem } from "./problems.js";
import { goTo, readRoute } from "./router.js";

let memories = [];
let current = null;

export const memoryId = () => current?.id ?? "default";
export const memory = () => current;
export const memoryPath = (path = "") => `/v1/memories/${encodeURIComponent(memoryId())}${path}`;
/** The memory for an address: only where it is not the default one. */
export const memoryValue = () => (current && !current.is_default ? current.id : undefined);

/** Read the list of memories, and choose the one of the address, of last time, or the default. */
export async function loadMemories() {
  memories = (await get("/v1/memories")).memories;
  const wishes = [readRoute().values.get("m"), current?.id, recall("mnemic.memory")];
  const wish = wishes.find((id) => id && memories.some((item) => item.id === id));
  current = memories.find((item) => item.id === wish) ?? memories.find((item) => item.is_default) ?? memories[0] ?? null;
  drawSwitch();
}

/** Follow the memory of the address. */
export function followMemory() {
  const wish = readRoute().values.get("m");
  const item = memories.find((candidate) => (wish ? candidate.id === wish : false));
  if (item && item !== current) {
    current = item;
    drawSwitch();
  }
}

function choose(id) {
  current = memories.find((item) => item.id === id) ?? current;
  remember("mnemic.memory", current.id);
  drawSwitch();
  announce(t("memory.now", { name: current.name }));
  const { view } = readRoute();
  const address = ["documents", "ask"].includes(view) ? view : view === "document" ? "documents" : null;
  if (address) goTo(`#/${address}${current.is_default ? "" : `?m=${encodeURIComponent(current.id)}`}`);
}

/** Draw the switch of memories in the header. */
export function drawSwitch() {
  const place = document.getElementById("memory-switch");
  if (!current) return;
  const choices = memories.map((item) => el("option", { value: item.id, selected: item.id === current.id }, item.name));
  const select = el("select", { id: "memory", onchange: (event) => {
    if (event.target.value === "+new") {
      event.target.value = current.id;
      createMemory();
    } else choose(event.target.value);
  } }, choices, el("option", { value: "+new" }, t("memory.new")));
  show(place, el("label", { class: "hidden", for: "memory" }, t("memory.label")), select);
}

function createMemory() {
  openDialog(t("memory.create"), t("close"), (dialog) => {
    const field = el("input", { id: "memory-name", required: true, maxlength: 60, autofocus: true, autocomplete: "off",
      "aria-describedby": "memory-help memory-error" });
    const message = el("p", { class: "field-error", id: "memory-error", role: "alert" });
    const submit = async (event) => {
      event.preventDefault();
      try {
        const made = await post("/v1/memories", { name: field.value.trim() });
        await loadMemories();
        dialog.close();
        choose((made.memory ?? made).id);
        goTo(`#/documents?m=${encodeURIComponent(memoryId())}`);
      } catch (problem) {
        message.textContent = describeProblem(problem);
      }
    };
    return el("form", { onsubmit: submit },
      el("label", { for: "memory-name" }, t("memory.name")),
      field, el("p", { class: "help", id: "memory-help" }, t("memory.help")), message,
      el("div", { class: "row end" }, el("button", { class: "primary" }, t("memory.create"))));
  });
}
