// Work that goes on in the server: its progress, its end, and what could not be read.

import { get, post, remove } from "./api.js";
import { announce, el, icon, show } from "./dom.js";
import { formatNumber, recall, remember, t } from "./language.js";
import { loadMemories, memoryId } from "./memories.js";
import { describeProblem } from "./problems.js";

const RUNNING = new Set(["queued", "running"]);
const COUNTS = ["new", "changed", "moved", "copied", "unchanged", "gone", "broken", "skipped"];
const MAX_JOBS = 8; // that are shown
const MAX_UNREAD = 200; // rows at once
const CLOSED = "mnemic.closed-reports";
const MAX_CLOSED = 100;
const jobs = new Map();
const sources = new Map();
const dismissed = new Set(JSON.parse(recall(CLOSED) ?? "[]"));
const places = new Set();

/** A job that ended early: a retry reads what is left. */
const hasRest = (job) => job.kind === "remember" && ["stopped", "failed"].includes(job.state);
const isRunning = (job) => RUNNING.has(job.state);
const emit = (job) => window.dispatchEvent(new CustomEvent("mnemic:job", { detail: job }));

/** The jobs that this page knows, newest first. */
export const listJobs = () => [...jobs.values()].filter((job) => !dismissed.has(job.id)).sort((left, right) => (left.started_at < right.started_at ? 1 : -1));

function keep(job) {
  const before = jobs.get(job.id);
  const next = { ...before, ...job };
  jobs.set(job.id, next);
  emit(next);
  for (const place of places) drawJobs(place);
  if (before && isRunning(before) && !isRunning(next)) finish(next);
}

async function finish(job) {
  sources.get(job.id)?.close();
  sources.delete(job.id);
  await loadMemories().catch(() => {});
  window.dispatchEvent(new CustomEvent("mnemic:changed"));
  announce(`${t(`job.${job.state}`)} ${describeCounts(job)}`);
}

function dismiss(job) {
  dismissed.add(job.id);
  remember(CLOSED, JSON.stringify([...dismissed].slice(-MAX_CLOSED)));
  for (const place of places) drawJobs(place);
}

/** Follow a job by its events; after a broken connection the browser resumes by itself. */
export function followJob(job) {
  keep(job);
  if (!isRunning(job) || sources.has(job.id)) return;
  const source = new EventSource(`/v1/jobs/${encodeURIComponent(job.id)}/events`);
  sources.set(job.id, source);
  source.addEventListener("progress", (event) => keep({ id: job.id, ...JSON.parse(event.data) }));
  source.addEventListener("end", (event) => keep({ id: job.id, ...JSON.parse(event.data) }));
  source.onerror = () => {
    window.dispatchEvent(new CustomEvent("mnemic:unreachable"));
    if (source.readyState === EventSource.CLOSED) setTimeout(() => recover(job.id), 1500);
  };
}

async function recover(id) {
  sources.get(id)?.close();
  sources.delete(id);
  try {
    followJob(await get(`/v1/jobs/${encodeURIComponent(id)}`));
  } catch (problem) {
    if (problem.status === 0) setTimeout(() => recover(id), 1500);
    else if (problem.status === 404) keep({ id, state: "lost" });
  }
}

/** Find the jobs that the server has, also those that were started before a reload. */
export async function watchJobs() {
  const before = [...jobs.values()].filter(isRunning); // one that begins meanwhile is in no list yet
  let list;
  try {
    list = (await get("/v1/jobs")).jobs;
  } catch {
    return;
  }
  for (const job of list) {
    const known = jobs.get(job.id);
    if (isRunning(job) && (!known || isRunning(known))) followJob(job);
    else if (!known && job.kind !== "text" && (job.unread.length || hasRest(job))) keep(job);
  }
  const listed = new Set(list.map((job) => job.id));
  for (const job of before) if (!listed.has(job.id)) keep({ id: job.id, state: "lost" });
}

/** The counts of a job's outcomes in words: "3 new, 1 unchanged". */
export function describeCounts(job) {
  const counts = job.counts ?? {};
  return COUNTS.filter((name) => counts[name]).map((name) => t(`count.${name}`, { n: counts[name] })).join(", ");
}

function drawProgress(job) {
  const share = job.total ? Math.min(1, job.done / job.total) : null;
  const percent = share === null ? "" : `${formatNumber(Math.floor(share * 100))} %`;
  return el("div", { class: "progress-row" },
    el("progress", share === null ? { "aria-label": t("job.progress") } : { value: share, max: 1, "aria-label": t("job.progress") }),
    el("span", { class: "progress-number" }, percent));
}

function drawRetry(job) {
  const needsPassword = (job.unread ?? []).some((item) => item.needs_password || /password/i.test(`${item.reasons?.join(" ")} ${item.advice ?? ""}`));
  const message = el("p", { class: "field-error", role: "alert" });
  const id = `password-${job.id}`;
  const field = needsPassword ? el("input", { id, type: "password", autocomplete: "off" }) : null;
  const retry = async (event) => {
    event.preventDefault();
    try {
      const body = field?.value ? { password: field.value } : {};
      const answer = await post(`/v1/jobs/${encodeURIComponent(job.id)}/retry`, body);
      dismiss(job);
      followJob(answer.job ?? answer);
    } catch (problem) {
      message.textContent = describeProblem(problem);
    }
  };
  return el("form", { class: "retry", onsubmit: retry },
    field && el("label", { for: id }, t("unread.password")),
    el("div", { class: "row" }, field, el("button", { class: field ? "primary" : "" }, t(hasRest(job) ? "job.rest" : "unread.retry"))), message);
}

function drawUnread(job) {
  const unread = job.unread ?? [];
  if (!unread.length || isRunning(job)) return null;
  return el("details", { class: "unread", open: true },
    el("summary", null, icon("alert"), t("unread.title", { n: unread.length })),
    el("ul", null, unread.slice(0, MAX_UNREAD).map((item) => el("li", null,
      el("p", { class: "unread-name" }, item.name),
      el("p", null, (item.reasons ?? []).join("; ")),
      item.advice && el("p", { class: "help" }, item.advice)))),
    unread.length > MAX_UNREAD && el("p", { class: "help" }, t("unread.more", { n: unread.length - MAX_UNREAD })),
    drawRetry(job));
}

function drawJob(job) {
  const stop = () => remove(`/v1/jobs/${encodeURIComponent(job.id)}`).then(() => announce(t("job.stopping")), () => {});
  const counts = describeCounts(job);
  const message = job.state === "lost" ? t("job.lost.help") : job.state === "done" ? "" : job.message;
  return el("li", { class: `job job-${job.state}`, "data-job": job.id },
    el("div", { class: "job-head" },
      el("p", null, el("strong", null, t(`job.${job.state}`)), counts && el("span", { class: "job-counts" }, ` ${counts}`)),
      isRunning(job)
        ? el("button", { type: "button", class: "small", onclick: stop }, t("job.stop"))
        : el("button", { type: "button", class: "tool tool-icon small", "aria-label": t("job.dismiss"), onclick: () => dismiss(job) }, icon("close"))),
    isRunning(job) && drawProgress(job),
    message && el("p", { class: "help job-message" }, message),
    drawUnread(job),
    hasRest(job) && !job.unread?.length && drawRetry(job));
}

/** Draw the jobs that concern documents; what is being typed stays. */
export function drawJobs(place) {
  if (!place.isConnected && places.has(place)) {
    places.delete(place);
    return;
  }
  const shown = listJobs().filter((job) => job.kind !== "text" && (!job.memory || job.memory === memoryId())).slice(0, MAX_JOBS);
  const list = place.querySelector("ul.jobs") ?? show(place, el("ul", { class: "jobs" })).firstChild;
  const before = new Map([...list.children].map((node) => [node.dataset.job, node]));
  const nodes = shown.map((job) => {
    const node = before.get(job.id);
    const mark = JSON.stringify(job);
    if (node?.jobState === mark) return node;
    const fresh = drawJob(job);
    fresh.jobState = mark;
    if (node?.contains(document.activeElement)) requestAnimationFrame(() => fresh.querySelector("button")?.focus());
    return fresh;
  });
  if (nodes.length !== list.children.length || nodes.some((node, index) => list.children[index] !== node)) list.replaceChildren(...nodes);
  place.hidden = !nodes.length;
}

/** Show jobs in a place until it leaves the page. */
export function mountJobs(place) {
  drawJobs(place);
  places.add(place);
}
