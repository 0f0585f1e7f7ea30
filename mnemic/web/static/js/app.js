// The page itself: language, theme, session, and the view that the address names.

import { el, show } from "./dom.js";
import { askToken, readSession, useLink, watchConnection } from "./connection.js";
import { language, remember, setLanguage, t, translateShell } from "./language.js";
import { drawSwitch, followMemory, loadMemories } from "./memories.js";
import { problemBox } from "./problems.js";
import { readRoute } from "./router.js";
import * as askView from "./view_ask.js";

const VIEWS = {
  ask: () => Promise.resolve(askView),
  documents: () => import("./view_documents.js"),
  document: () => import("./view_document.js"),
  text: () => import("./view_text.js"),
  networks: () => import("./view_networks.js"),
  tables: () => import("./view_tables.js"),
};
const SCROLLS = new Map();
const main = document.getElementById("main");
let active = { name: "", handle: null };
let address = location.hash;
let turn = 0;

function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function drawTheme() {
  const button = document.getElementById("theme");
  button.setAttribute("aria-label", t("theme.dark"));
  button.setAttribute("aria-pressed", String(isDark()));
}

function markTab(name) {
  const shown = name === "document" ? "documents" : name;
  for (const link of document.querySelectorAll("#tabs a")) {
    if (link.dataset.view === shown) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

async function draw({ isNew = true, fresh = false } = {}) {
  const mine = (turn += 1);
  const route = readRoute();
  const name = route.view in VIEWS ? route.view : "ask";
  followMemory();
  markTab(name);
  if (!fresh && active.name === name && active.handle?.update) {
    active.handle.update(route);
    return;
  }
  active.handle?.unmount?.();
  active = { name, handle: null };
  const place = el("div", { class: `view view-${name}` });
  try {
    const view = await VIEWS[name]();
    if (mine !== turn) return;
    show(main, place);
    if (name !== "ask") document.title = `${t(`nav.${name}`)} · mnemic`;
    const handle = await view.mount(place, route);
    if (mine !== turn) {
      handle?.unmount?.();
      return;
    }
    active.handle = handle;
    if (isNew && name !== "ask") {
      const heading = place.querySelector("h1");
      heading?.setAttribute("tabindex", "-1");
      if (!place.contains(document.activeElement)) heading?.focus({ preventScroll: true });
    }
  } catch (problem) {
    if (mine === turn) show(main, problemBox(problem, () => draw({ fresh: true })));
  }
}

async function onAddress() {
  document.documentElement.dataset.hasMoved = "true"; // "back" stays within the page
  SCROLLS.set(address, window.scrollY);
  address = location.hash;
  const wasAt = SCROLLS.get(address);
  await draw();
  if (wasAt !== undefined) window.scrollTo(0, wasAt);
  else if (!readRoute().values.has("passage")) window.scrollTo(0, 0);
}

function signOut(message = "") {
  turn += 1;
  active.handle?.unmount?.();
  active = { name: "", handle: null };
  if (document.getElementById("token")) return;
  askToken(main, message, () => start(false));
}

async function start(isFirst) {
  const linkError = isFirst && location.pathname === "/link" ? await useLink() : "";
  const load = () => loadMemories().then(() => null, (error) => error);
  const early = linkError ? null : load(); // beside the session: one way to the server less before the first view
  const session = await readSession();
  document.getElementById("version").textContent = session.version ?? "";
  if (!session.authenticated) return signOut(linkError);
  const problem = await (early ?? load());
  if (problem?.status === 401) return signOut(); // the session ended meanwhile
  if (problem) return show(main, problemBox(problem, () => start(false)));
  await draw({ isNew: false, fresh: true });
  const jobs = await import("./jobs.js");
  return jobs.watchJobs();
}

document.getElementById("language").addEventListener("click", () => setLanguage(language() === "zh" ? "en" : "zh"));
document.getElementById("theme").addEventListener("click", () => {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  remember("mnemic.theme", theme);
  drawTheme();
});
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", onAddress);
window.addEventListener("mnemic:signed-out", () => signOut());
window.addEventListener("mnemic:back", () => start(false));
window.addEventListener("mnemic:language", () => {
  drawTheme();
  drawSwitch();
  draw({ isNew: false, fresh: true });
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawTheme);

translateShell();
drawTheme();
watchConnection();
start(true);
