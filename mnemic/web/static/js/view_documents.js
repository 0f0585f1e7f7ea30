// Documents: what the memory holds, what could not be read, and how to add and forget.

import { get, post, withQuery } from "./api.js";
import { drawAdding } from "./adding.js";
import { debounce, el, icon, show } from "./dom.js";
import { drawFolders } from "./folders.js";
import { askForget } from "./forget.js";
import { followJob, mountJobs } from "./jobs.js";
import { formatBytes, formatDay, t } from "./language.js";
import { memory, memoryPath, memoryValue } from "./memories.js";
import { splitName, titleOf } from "./names.js";
import { problemBox } from "./problems.js";
import { goTo, linkTo } from "./router.js";
import { KINDS, kindName } from "./view_ask.js";

const PAGE_SIZE = 50;

function drawRow(item, onGone) {
  const { base, folder } = splitName(item);
  const facts = [kindName(item.kind), formatBytes(item.bytes), item.pages ? t("documents.pages", { n: item.pages }) : "", t("documents.passages", { n: item.passages }), item.versions > 1 ? t("documents.versions", { n: item.versions }) : ""];
  return el("li", { class: `document ${item.is_active === false ? "is-retired" : ""}` },
    el("div", { class: "document-words" },
      el("a", { href: linkTo("document", item.id, { m: memoryValue() }), class: "document-name" }, base),
      el("p", { class: "help" }, [titleOf(item), folder, ...facts].filter(Boolean).join(" · ")),
      item.is_active === false && el("span", { class: "badge" }, t("documents.retired"))),
    el("time", { class: "document-time", datetime: item.remembered_at }, formatDay(item.remembered_at)),
    el("button", { type: "button", class: "quiet small", "aria-label": t("forget.of", { name: base }), onclick: () => askForget(item, onGone) }, t("forget.short")));
}

function drawEmpty(isFiltered) {
  if (isFiltered) return el("div", { class: "empty" }, el("p", null, t("documents.none-found")));
  return el("div", { class: "empty" }, el("h2", null, t("documents.empty")), el("p", null, t("documents.empty.help")));
}

/** Say that the vectors of a memory are of another model, and offer to make them anew. */
function drawReindex() {
  if (memory()?.model_is_current !== false) return null;
  const status = el("div", { role: "status" });
  const start = async (event) => {
    event.target.disabled = true;
    try {
      const answer = await post(memoryPath("/reindex"));
      followJob(answer.job ?? answer);
      status.parentElement.remove();
    } catch (problem) {
      show(status, problemBox(problem));
      event.target.disabled = false;
    }
  };
  return el("section", { class: "problem reindex", "aria-label": t("reindex.button") }, el("p", null, t("reindex.help")),
    el("button", { type: "button", class: "primary", onclick: start }, t("reindex.button")), status);
}

/** Mount the view. */
export async function mount(place, route) {
  const values = { query: route.values.get("query") ?? "", kind: route.values.get("kind") ?? "", since: "", until: "", retired: "" };
  const list = el("ul", { class: "documents", "aria-label": t("nav.documents") });
  const summary = el("p", { class: "help", role: "status" });
  const more = el("div", { class: "row center" });
  const jobs = el("section", { class: "jobs-panel", "aria-label": t("jobs.title"), hidden: true });
  const folders = el("div");
  let turn = 0;

  async function load(after) {
    const mine = (turn += 1);
    try {
      const page = await get(withQuery(memoryPath("/documents"), { ...values, limit: PAGE_SIZE, after }));
      if (mine !== turn) return;
      const rows = page.documents.map((item) => drawRow(item, () => heading.focus()));
      if (after) list.append(...rows);
      else list.replaceChildren(...rows);
      const isFiltered = Object.values(values).some(Boolean);
      summary.textContent = t("documents.total", { n: page.total ?? list.children.length });
      if (list.children.length) show(more, page.next && el("button", { type: "button", onclick: () => load(page.next) }, t("documents.more")));
      else show(more, drawEmpty(isFiltered));
    } catch (problem) {
      if (mine === turn) show(more, problemBox(problem, () => load(after)));
    }
  }
  const reload = debounce(() => {
    goTo(linkTo("documents", "", { query: values.query, kind: values.kind, m: memoryValue() }), { replace: true });
    load();
  });
  const set = (name) => (event) => {
    values[name] = event.target.type === "checkbox" ? (event.target.checked ? "true" : "") : event.target.value;
    reload();
  };
  const heading = el("h1", { tabindex: "-1" }, t("nav.documents"));
  const search = el("search", { class: "document-filters" },
    el("div", { class: "field grow" }, el("label", { for: "document-search" }, t("documents.search")), el("div", { class: "with-icon" }, icon("search"), el("input", { id: "document-search", type: "search", value: values.query, oninput: set("query"), autocomplete: "off" }))),
    el("div", { class: "field" }, el("label", { for: "document-kind" }, t("filter.kind")),
      el("select", { id: "document-kind", onchange: set("kind") }, el("option", { value: "" }, t("filter.any")), KINDS.map((kind) => el("option", { value: kind, selected: kind === values.kind }, kindName(kind))))),
    el("label", { class: "check" }, el("input", { type: "checkbox", onchange: set("retired") }), t("documents.show-retired")));
  const onChange = () => load();
  show(place,
    el("div", { class: "head-row" }, heading, el("p", { class: "help" }, memory() ? memory().name : "")),
    drawReindex(), drawAdding(place), jobs,
    el("section", { "aria-label": t("documents.list") }, search, summary, list, more),
    el("section", { class: "server-folders" }, el("h2", null, t("folders.title")), folders));
  mountJobs(jobs);
  drawFolders(folders);
  window.addEventListener("mnemic:changed", onChange);
  await load();
  const update = (next) => {
    const m = next.values.get("m") ?? "";
    if (m !== (route.values.get("m") ?? "") || next.values.get("query") !== null) {
      route = next;
      values.query = next.values.get("query") ?? "";
    }
    place.querySelector(".head-row .help").textContent = memory()?.name ?? "";
    load();
  };
  return { update, unmount: () => window.removeEventListener("mnemic:changed", onChange) };
}
