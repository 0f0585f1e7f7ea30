// Draw an answer: its words, how sure it is, and the sentences it was read from.

import { el, icon, markSpans, toUnits } from "./dom.js";
import { formatNumber, t, translateNote } from "./language.js";
import { memoryValue } from "./memories.js";
import { linkTo } from "./router.js";
import { splitName } from "./names.js";
import { heatCell, heatLegend } from "./charts.js";

const NEAREST = 3; // passages that are shown at first
const REACH = 1; // sentences of a passage that a card shows on either side of the best one
const ROWS = new Set(["table", "sheets", "records", "mail", "mbox", "code", "log", "settings"]); // a sentence is a line
const PLACES = { sheets: "place.sheet", pptx: "place.slide" }; // what a page is
const LEVELS = [[0.85, "sure"], [0.6, "likely"], [0.35, "unsure"], [0, "guess"]];

const levelOf = (score) => LEVELS.find(([least]) => score >= least)[1];
/** Where in the document a sentence stands, in words. */
export function placeOf(item) {
  const parts = [];
  if (item.page !== null && item.page !== undefined) parts.push(t(PLACES[item.kind] ?? "place.page", { n: item.page }));
  if (item.line) parts.push(t("place.line", { n: item.line }));
  return parts.join(", ");
}

/** The address of the document, with the sentence and the answer to highlight. */
export function evidenceLink(item, answer) {
  return linkTo("document", item.document, {
    passage: item.passage, page: item.page, start: item.start, end: item.end,
    from: answer?.start, to: answer?.end, m: memoryValue(),
  });
}

/** Draw the level of confidence: words, a number and a bar. */
function drawConfidence(score) {
  const level = levelOf(score);
  return el("p", { class: `confidence confidence-${level}` },
    el("span", { class: "meter", "aria-hidden": "true", vars: { "--level": score.toFixed(3) } }),
    el("span", { class: "confidence-words" }, t(`confidence.${level}`)),
    el("span", { class: "confidence-number" }, t("confidence.number", { percent: formatNumber(Math.round(score * 100)) })));
}

/** The sentence of evidence as text, with the answer marked in it. */
function quoteSentence(item, answer) {
  const text = item.sentence ?? item.text ?? "";
  if (!answer) return [text];
  const [start, end] = [answer.start - item.start, answer.end - item.start];
  if (start >= text.length || end <= 0) return [text];
  return markSpans(text, [{ start: toUnits(text, Math.max(0, start)), end: toUnits(text, end), class: "said" }]);
}

/** Group evidence by passage, in the order of the best sentence of each. */
function groupByPassage(evidence) {
  const groups = new Map();
  for (const item of evidence) {
    const key = `${item.document}/${item.passage}`;
    if (!groups.has(key)) groups.set(key, { best: item, items: [] });
    groups.get(key).items.push(item);
  }
  return [...groups.values()];
}

/** What stands between two sentences; Chinese has no spaces. */
function gapBetween(left, right) {
  if (right.start > left.end + 2) return " … ";
  return /[\u3000-\u9fff\uff00-\uffef]$/.test(left.sentence ?? "") ? "" : " ";
}

/** The sentences of a group as they follow each other; what stands beside the best one is softer. */
function drawSentences(group, answer) {
  const items = [...group.items].sort((left, right) => left.start - right.start);
  const place = items.indexOf(group.best);
  const near = items.slice(Math.max(0, place - REACH), place + REACH + 1);
  return near.map((item, index) => [
    index ? (ROWS.has(item.kind) ? "\n" : gapBetween(near[index - 1], item)) : null,
    item === group.best ? el("span", null, quoteSentence(item, answer)) : el("span", { class: "beside" }, quoteSentence(item, null)),
  ]);
}

/** A card: a passage's sentences and their place; the whole card opens the document. */
function drawCard(group, answer, number) {
  const item = group.best;
  const { base, folder } = splitName(item);
  return el("li", null, el("article", { class: `card ${number === 1 && answer ? "card-first" : ""} ${item.kind === "code" ? "card-code" : ""}` },
    el("blockquote", null, drawSentences(group, answer)),
    el("p", { class: "card-place" },
      el("a", { href: evidenceLink(item, answer), class: "card-link" },
        el("span", { class: "card-name" }, base),
        el("span", { class: "card-where" }, placeOf(item) || item.place || "")),
      el("span", { class: "card-folder" }, folder))));
}

/** Draw the cards; beyond the first few they wait behind a button. */
function drawCards(evidence, answer) {
  const cards = groupByPassage(evidence).map((group, index) => drawCard(group, index === 0 ? answer : null, index + 1));
  const list = el("ol", { class: "cards" }, cards.slice(0, NEAREST));
  const rest = cards.slice(NEAREST);
  if (!rest.length) return list;
  const button = el("button", { type: "button", class: "quiet small", onclick: () => {
    list.append(...rest);
    button.remove();
    rest[0].querySelector("a").focus();
  } }, t("answer.more", { n: rest.length }));
  return [list, el("p", null, button)];
}

/** Draw what was found while it is still being read; null: still searching. */
export function drawFound(found) {
  const head = el("div", { class: "answer answer-waiting" },
    el("p", { class: "answer-words waiting", "aria-hidden": "true" }, el("span", { class: "bone" })),
    el("p", { class: "confidence" }, el("span", { class: "pulse", "aria-hidden": "true" }), found ? t("ask.reading", { n: found.length }) : t("ask.searching")));
  if (!found) return [head];
  return [head, el("h2", { class: "cards-title" }, t("answer.found")), drawCards(found, null)];
}

/** Draw a list of answers, where the question asks for several; each opens at its place. */
function drawItems(items) {
  return el("ul", { class: "answer-items" }, items.map((item) => el("li", null, el("a", { href: evidenceLink(item.evidence, item) }, item.answer))));
}

/** Draw the date of a relative time, and the date that it is counted from. */
function drawDate(date) {
  if (!date) return null;
  const anchor = date.anchor_evidence && el("a", { href: evidenceLink(date.anchor_evidence, { start: date.anchor_start, end: date.anchor_end }) }, date.anchor);
  return el("p", { class: "resolved" }, t("answer.resolved", { date: date.text }),
    anchor ? el("span", { class: "help" }, ` ${t("answer.counted", { words: date.words })} `, anchor) : null);
}

function drawOthers(answer) {
  const others = (answer.ranked ?? []).filter((candidate) => candidate.answer !== answer.answer).slice(0, 4);
  if (!others.length) return null;
  return el("details", { class: "more" }, el("summary", null, t("answer.others")),
    el("ul", { class: "others" }, others.map((candidate) => el("li", null,
      el("a", { href: evidenceLink(candidate.evidence, candidate) }, candidate.answer),
      el("span", { class: "help" }, ` ${t("confidence.number", { percent: Math.round(candidate.score * 100) })} · ${splitName(candidate.evidence).base}`)))));
}

/** A table of read weights: evidence by hop. */
function drawWeights(answer) {
  const rows = (answer.evidence ?? []).filter((item) => item.weights?.length);
  if (!rows.length) return null;
  const hops = Math.max(...rows.map((item) => item.weights.length));
  return el("details", { class: "more" }, el("summary", null, t("answer.how")),
    el("p", { class: "help" }, t("answer.looked", { looked: answer.looked ?? 0, read: answer.read ?? 0 })),
    el("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": t("answer.weights") },
      el("table", { class: "heat" }, el("caption", null, t("answer.weights")),
        el("thead", null, el("tr", null, el("th", { scope: "col" }, t("answer.sentence")),
          Array.from({ length: hops }, (_, hop) => el("th", { scope: "col" }, t("networks.hop", { n: hop + 1 }))))),
        el("tbody", null, rows.map((item) => el("tr", null, el("th", { scope: "row" }, (item.sentence ?? "").slice(0, 160)), item.weights.map((weight) => heatCell(weight))))))),
    heatLegend(t("legend.weight.low"), t("legend.weight.high")));
}

/** Draw the whole answer; without one, what came nearest. */
export function drawAnswer(answer) {
  const evidence = answer.evidence ?? [];
  const notes = (answer.notes ?? []).map((note) => el("p", { class: "help note" }, translateNote(note)));
  const hasAnswer = answer.answer !== null && answer.answer !== undefined;
  if (!hasAnswer) {
    return [
      el("div", { class: "answer answer-none" }, el("p", { class: "answer-words" }, t("answer.none")), el("p", { class: "confidence" }, t("answer.none.help")), notes),
      evidence.length ? el("h2", { class: "cards-title" }, t("answer.nearest")) : null,
      evidence.length ? drawCards(evidence, null) : null,
      drawWeights(answer),
    ];
  }
  const first = evidence[0];
  const size = answer.answer.length > 160 ? "answer-text-long" : answer.answer.length > 60 ? "answer-text-medium" : "";
  return [
    el("div", { class: "answer" },
      el("p", { class: `answer-words ${size}` }, answer.answer),
      drawDate(answer.date),
      answer.items?.length > 1 ? drawItems(answer.items) : null,
      drawConfidence(answer.score), notes),
    el("h2", { class: "cards-title" }, t("answer.evidence")),
    drawCards(evidence, { start: answer.start, end: answer.end }),
    el("div", { class: "answer-more" }, drawOthers(answer), drawWeights(answer)),
    first ? null : el("p", { class: "help" }, icon("alert"), t("answer.no-evidence")),
  ];
}
