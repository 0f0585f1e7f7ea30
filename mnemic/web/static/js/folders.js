// Folders of the server: read them now, or watch them.

import { get, post, putJson } from "./api.js";
import { announce, el, show } from "./dom.js";
import { t } from "./language.js";
import { followJob } from "./jobs.js";
import { memoryPath } from "./memories.js";
import { describeProblem } from "./problems.js";

function drawFolder(folder) {
  const message = el("p", { class: "field-error", role: "alert" });
  const path = memoryPath(`/folders/${encodeURIComponent(folder.id)}`);
  const read = async () => {
    message.textContent = "";
    try {
      const answer = await post(path);
      followJob(answer.job ?? answer);
    } catch (problem) {
      message.textContent = describeProblem(problem);
    }
  };
  const toggle = el("button", { type: "button", class: "switch", role: "switch", "aria-checked": String(Boolean(folder.watching)) }, el("span", { class: "switch-knob", "aria-hidden": "true" }), t("folders.watch"));
  get(`${path}/watch`).then((state) => toggle.setAttribute("aria-checked", String(state.watching)), () => {});
  toggle.addEventListener("click", async () => {
    const wish = toggle.getAttribute("aria-checked") !== "true";
    message.textContent = "";
    try {
      const state = await putJson(`${path}/watch`, { on: wish });
      toggle.setAttribute("aria-checked", String(state.watching));
      announce(t(state.watching ? "folders.watching" : "folders.not-watching", { name: folder.name }));
    } catch (problem) {
      message.textContent = describeProblem(problem);
    }
  });
  return el("li", { class: "folder" }, el("span", { class: "folder-name" }, folder.name),
    el("div", { class: "row" }, el("button", { type: "button", class: "small", onclick: read }, t("folders.read")), toggle), message);
}

/** Draw the folders that the server was started with. */
export async function drawFolders(place) {
  try {
    const { folders } = await get("/v1/folders");
    if (!folders.length) show(place, el("p", { class: "help" }, t("folders.none"), " ", el("code", null, "mnemic serve --folder DIR")));
    else show(place, el("ul", { class: "folders" }, folders.map(drawFolder)));
  } catch {
    show(place);
  }
}
