// Long text: BERT-MASS reads a text of any length into slots, and answers from the slots alone.

import { get, post, remove } from "./api.js";
import { announce, el, icon, markSpans, show, toUnits } from "./dom.js";
import { heatLegend, positionLegend, slotGrid, weightStrip } from "./charts.js";
import { followJob } from "./jobs.js";
import { formatNumber, t } from "./language.js";
import { problemBox } from "./problems.js";
import { goTo, linkTo } from "./router.js";

const READ_METHODS = ["remember", "ask"];
const MAX_SLOTS = 40; // rows of the table
const MAX_READ = 8; // rows that an answer shows
const TEXT_VIEW = 6000; // characters around a place

const texts = new Map();

const isReader = (model) => READ_METHODS.every((method) => model.methods.includes(method)) || model.methods.includes("load_state");

function waitForJob(job, onProgress) {
  return new Promise((resolve, reject) => {
    const follow = (event) => {
      if (event.detail.id !== job.id) return;
      onProgress(event.detail);
      if (["queued", "running"].includes(event.detail.state)) return;
      window.removeEventListener("mnemic:job", follow);
      if (event.detail.state === "done") resolve(event.detail);
      else reject(Object.assign(new Error(event.detail.message || t(`job.${event.detail.state}`)), { status: 1 }));
    };
    window.addEventListener("mnemic:job", follow);
    followJob(job);
  });
}

function drawForm(models) {
  const status = el("div", { role: "status", class: "reading-status" });
  const field = el("textarea", { id: "long-text", rows: 8, required: true, placeholder: t("text.placeholder") });
  const name = el("input", { id: "text-name", maxlength: 200, autocomplete: "off", placeholder: t("text.untitled") });
  const model = models.length > 1 ? el("select", { id: "text-model" }, models.map((item) => el("option", { value: item.name, selected: item.name === "bert-mass" }, item.name))) : null;
  const button = el("button", { class: "primary" }, t("text.read"));
  const form = el("form", { class: "text-form" },
    el("label", { for: "long-text" }, t("text.label")), field,
    el("div", { class: "row wrap" }, el("div", { class: "field grow" }, el("label", { for: "text-name" }, t("text.name")), name),
      model && el("div", { class: "field" }, el("label", { for: "text-model" }, t("networks.model")), model), button), status);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    const bar = el("progress", { max: 1, "aria-label": t("text.reading") });
    const words = el("span", null, t("text.reading"));
    let current = null;
    const stop = el("button", { type: "button", class: "small", onclick: () => current && remove(`/v1/jobs/${encodeURIComponent(current.id)}`).catch(() => {}) }, t("job.stop"));
    show(status, el("div", { class: "progress-row" }, words, bar, stop));
    try {
      const text = field.value;
      const answer = await post("/v1/texts", { text, name: name.value.trim() || t("text.untitled"), model: model?.value ?? models[0]?.name });
      current = answer.job ?? answer;
      const done = await waitForJob(current, (job) => {
        if (!job.total) return;
        bar.value = job.done / job.total;
        words.textContent = t("text.tokens", { seen: job.done, total: job.total });
      });
      const id = done.result?.text ?? (await get(`/v1/jobs/${encodeURIComponent(done.id)}`)).result.text;
      keepText(id, text);
      goTo(linkTo("text", id));
    } catch (problem) {
      show(status, problemBox(problem));
      button.disabled = false;
    }
  });
  form.addEventListener("dragover", (event) => event.preventDefault());
  form.addEventListener("drop", async (event) => {
    const file = event.dataTransfer.files[0];
    if (!file) return;
    event.preventDefault();
    field.value = await file.text();
    name.value = file.name;
    field.focus();
  });
  return form;
}

function drawIntroduction(texts, models) {
  return [el("h1", { tabindex: "-1" }, t("nav.text")), el("p", { class: "lead" }, t("text.lead")),
    models.length ? drawForm(models) : el("p", { class: "empty" }, t("text.no-model")),
    texts.length ? el("section", null, el("h2", null, t("text.earlier")), el("ul", { class: "texts" }, texts.map((item) => el("li", null,
      el("a", { href: linkTo("text", item.id) }, item.name || t("text.untitled")), el("span", { class: "help" }, ` ${t("text.size", { n: item.tokens_total })}`))))) : null];
}

/** The text around a place, with the units that were read marked. */
function drawText(state, marks, center) {
  const { text } = state;
  const half = TEXT_VIEW / 2;
  const first = Math.max(0, Math.min(center - half, text.length - TEXT_VIEW));
  const last = Math.min(text.length, first + TEXT_VIEW);
  const spans = marks.filter((mark) => mark.first < last && mark.last > first).map((mark) => ({ start: Math.max(0, mark.first - first), end: Math.min(mark.last, last) - first, class: mark.class }));
  return [el("p", { class: "help" }, t("text.showing", { first: first + 1, last, total: text.length })), el("div", { class: "long-text" }, first ? "… " : "", markSpans(text.slice(first, last), spans), last < text.length ? " …" : "")];
}

function drawSlotTable(slots, isRead) {
  const limit = isRead ? MAX_READ : MAX_SLOTS;
  const rows = slots.slice(0, limit);
  return el("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": t("text.slots") },
    el("table", { class: "heat slots-table" }, el("caption", null, isRead ? t("text.slots.read") : t("text.slots")),
      el("thead", null, el("tr", null, el("th", { scope: "col" }, t("text.slot")), el("th", { scope: "col" }, isRead ? t("text.read-weight") : t("text.weight")), el("th", { scope: "col" }, t("text.content")))),
      el("tbody", null, rows.map((slot) => el("tr", null, el("th", { scope: "row" }, String(slot.slot)),
        el("td", { class: "heat-cell", vars: { "--w": Math.min(1, slot.weight).toFixed(3) } }, formatNumber(slot.weight, 2)),
        el("td", { class: "slot-text" }, slot.text))))),
    slots.length > limit ? el("p", { class: "help" }, t("text.slots.more", { n: slots.length - limit })) : null);
}

/** The ends of the scale of weights: from 0, unless all of them are high. */
function scaleOf(units) {
  const weights = units.map((unit) => unit.weight);
  const [least, most] = [weights.reduce((left, right) => Math.min(left, right), 1), weights.reduce((left, right) => Math.max(left, right), 0)];
  return [least > most / 2 && least < most ? least : 0, Math.max(most, 0.001)];
}

/** What the view needs: units in one list, the text if this tab has it, offsets in UTF-16 units. */
function prepareState(raw) {
  const text = readText(raw.id);
  const convert = (item) => ({ ...item, first: toUnits(text, item.first), last: toUnits(text, item.last) });
  const units = raw.segments.flatMap((segment) => segment.units);
  const steps = raw.history.map((snapshot) => snapshot.units);
  return { ...raw, text, units: units.map(convert), slots: raw.slots.map(convert), steps };
}

/** The server keeps no copy of a text for the page: this tab does, also over a reload. */
function keepText(id, text) {
  texts.set(id, text);
  try {
    sessionStorage.setItem(`mnemic.text.${id}`, text);
  } catch { /* too long: it is there until the page is loaded again */ }
}

function dropText(id) {
  texts.delete(id);
  try {
    sessionStorage.removeItem(`mnemic.text.${id}`);
  } catch { /* then it was not kept either */ }
}

function readText(id) {
  try {
    return texts.get(id) ?? sessionStorage.getItem(`mnemic.text.${id}`) ?? "";
  } catch {
    return texts.get(id) ?? "";
  }
}

function drawState(place, raw) {
  const state = prepareState(raw);
  const length = Math.max(1, state.characters, state.units.at(-1)?.last ?? 0);
  const textPlace = el("div");
  const answerPlace = el("div", { class: "text-answer", role: "status" });
  const reads = el("div", { class: "strip-marks", "aria-hidden": "true" });
  const showAt = (unit) => {
    const slot = state.slots.find((item) => item.first <= unit.first && item.last >= unit.last);
    if (state.text) show(textPlace, drawText(state, [{ ...unit, class: "found" }], unit.first));
    else show(textPlace, slot ? el("div", { class: "long-text" }, el("mark", { class: "found" }, slot.text)) : el("p", { class: "help" }, t("text.not-stored")));
  };
  const { steps } = state;
  const [low, high] = scaleOf(state.units);
  const slider = el("input", { type: "range", id: "sentence", min: 0, max: Math.max(0, state.units.length - 1), value: 0 });
  const pick = (index) => {
    slider.value = index;
    slider.setAttribute("aria-valuetext", t("text.sentence.value", { n: index + 1, weight: formatNumber(state.units[index].weight, 2) }));
    showAt(state.units[index]);
  };
  slider.addEventListener("input", () => pick(Number(slider.value)));
  const numSlots = Math.max(1, steps.reduce((most, step) => Math.max(most, step.findLastIndex((unit) => unit >= 0) + 1), 0));
  const question = el("input", { id: "text-question", required: true, placeholder: t("text.ask.placeholder"), autocomplete: "off" });
  const ask = async (event) => {
    event.preventDefault();
    show(answerPlace, el("p", { class: "help" }, t("ask.searching")));
    try {
      const answer = await post(`/v1/texts/${encodeURIComponent(state.id)}/ask`, { question: question.value.trim() });
      const read = answer.slots.map((slot) => ({ ...slot, first: toUnits(state.text, slot.first), last: toUnits(state.text, slot.last) }));
      show(answerPlace, el("p", { class: "answer-words answer-text-medium" }, answer.answer || t("text.no-words")),
        el("p", { class: "confidence" }, el("span", { class: "meter", "aria-hidden": "true", vars: { "--level": answer.probability.toFixed(3) } }), t("confidence.number", { percent: Math.round(answer.probability * 100) })),
        drawSlotTable(read, true));
      show(reads, read.slice(0, 12).map((slot) => el("span", { vars: { "--at": (slot.first / length).toFixed(4), "--w": Math.min(1, 0.25 + slot.weight).toFixed(3) } })));
      if (read.length && state.text) show(textPlace, drawText(state, read.slice(0, 6).map((slot) => ({ first: slot.first, last: slot.last, class: "found" })), read[0].first));
    } catch (problem) {
      show(answerPlace, problemBox(problem));
    }
  };
  const forget = async () => {
    try {
      await remove(`/v1/texts/${encodeURIComponent(state.id)}`);
    } catch (problem) {
      if (problem.status !== 404) return show(answerPlace, problemBox(problem)); // it is still there
    }
    dropText(state.id);
    announce(t("text.forgotten"));
    return goTo("#/text");
  };
  show(place,
    el("header", { class: "document-head" },
      el("p", { class: "back" }, el("a", { class: "button quiet", href: "#/text" }, icon("back"), t("text.another"))),
      el("h1", { tabindex: "-1" }, state.name || t("text.untitled")),
      el("p", { class: "help" }, t("text.facts", { model: state.model, seen: state.tokens_seen, total: state.tokens_total, slots: state.num_filled, most: state.num_slots }))),
    el("form", { class: "ask-box text-ask", onsubmit: ask }, el("label", { class: "hidden", for: "text-question" }, t("text.ask.label")), question, el("button", { class: "primary" }, t("ask.button"))),
    answerPlace,
    el("section", { class: "panel" }, el("h2", null, t("text.strip")), el("p", { class: "help" }, t("text.strip.help")),
      el("div", { class: "strip-frame" }, weightStrip(state.units, length, [low, high], t("text.strip.label", { n: state.units.length }), pick), reads),
      el("div", { class: "strip-axis" }, el("span", null, t("text.begin")), el("span", null, t("text.end"))), el("div", { class: "field" }, el("label", { for: "sentence" }, t("text.sentence")), slider), heatLegend(t("legend.store.low", { low: formatNumber(low, 2) }), t("legend.store.high", { high: formatNumber(high, 2) }), "store")),
    steps.length > 1 ? el("section", { class: "panel" }, el("h2", null, t("text.slots-time")), el("p", { class: "help" }, t("text.slots-time.help")),
      slotGrid(steps, numSlots, (unit) => (state.units[unit]?.first ?? 0) / length, t("text.slots-time.label", { n: numSlots, steps: steps.length })),
      el("div", { class: "strip-axis" }, el("span", null, t("text.segment.first")), el("span", null, t("text.segment.last"))), positionLegend(t("text.begin"), t("text.end"))) : null,
    el("section", { class: "panel" }, el("h2", null, t("document.text")), textPlace),
    el("details", { class: "more" }, el("summary", null, t("text.slots")), drawSlotTable(state.slots, false)),
    el("p", null, el("button", { type: "button", class: "quiet small", onclick: forget }, t("text.forget"))));
  show(textPlace, state.text ? drawText(state, [], 0) : el("p", { class: "help" }, t("text.elsewhere")));
}

/** Mount the view. */
export async function mount(place, route) {
  async function update(next) {
    show(place, el("p", { class: "loading" }, t("loading")));
    try {
      if (next.id) drawState(place, await get(`/v1/texts/${encodeURIComponent(next.id)}`));
      else {
        const [{ models }, texts] = await Promise.all([get("/v1/models"), get("/v1/texts").then((answer) => answer.texts, () => [])]);
        show(place, drawIntroduction(texts, models.filter(isReader)));
      }
    } catch (problem) {
      show(place, el("h1", { tabindex: "-1" }, t("nav.text")), problem.status === 404 ? el("p", { class: "empty" }, t("text.missing"), " ", el("a", { href: "#/text" }, t("text.another"))) : problemBox(problem, () => update(next)));
    }
    place.querySelector("h1")?.focus({ preventScroll: true });
  }
  await update(route);
  return { update };
}
