// The text of a document as it was read: lines with numbers, mails with headers, tables, code.

import { el, markSpans, toUnits } from "./dom.js";
import { t } from "./language.js";
import { placeOf } from "./answer.js";

const TABLES = new Set(["table", "sheets", "records"]);
const MAIL = new Set(["mail", "mbox"]);
const MONO = new Set(["code", "log", "settings", "json", "xml", "yaml"]);
const HEADER = /^(From|To|Cc|Bcc|Date|Subject|Reply-To): /;

/** The spans of the target in one passage, in UTF-16 units. */
function spansOf(passage, target) {
  if (passage.id !== target.passage) return [];
  const spans = [];
  const add = (start, end, name) => {
    if (start !== null && end !== null) spans.push({ start: toUnits(passage.text, start), end: toUnits(passage.text, end), class: name });
  };
  add(target.start, target.end, "found");
  add(target.from, target.to, "said");
  return spans;
}

const shiftSpans = (spans, start, end) =>
  spans.filter((span) => span.start < end && span.end > start).map((span) => ({ ...span, start: Math.max(0, span.start - start), end: Math.min(span.end, end) - start }));

/** The lines of a passage: {text, start, number}; the number is that of the original. */
function linesOf(passage) {
  const sentences = passage.sentences.map((sentence) => ({ ...sentence, start: toUnits(passage.text, sentence.start) }));
  const lines = [];
  let start = 0;
  for (const text of passage.text.split("\n")) {
    const end = start + text.length;
    const sentence = sentences.find((item) => item.start >= start && item.start <= end);
    if (text.trim() || lines.length) lines.push({ text, start, end, number: sentence?.line || null });
    start = end + 1;
  }
  return lines;
}

function drawLines(passage, spans) {
  return linesOf(passage).map((line) => el("div", { class: `line ${line.text.trim() ? "" : "line-blank"}` },
    el("span", { class: "line-number", "aria-hidden": "true" }, line.number ? String(line.number) : ""),
    el("span", { class: "line-text" }, markSpans(line.text, shiftSpans(spans, line.start, line.end)))));
}

/** The fields of a row, `Name: value; Name: value`, with offsets; null if it is no such row. */
function fieldsOf(text, start) {
  const fields = [];
  const pattern = /(?:^|; )([^:;]{1,80}): ((?:(?!; [^:;]{1,80}: ).)*)/gsy;
  let end = 0;
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    const first = start + match.index + match[0].length - match[2].length;
    fields.push({ name: match[1], value: match[2], start: first, end: first + match[2].length });
    end = pattern.lastIndex;
  }
  return fields.length && end === text.length ? fields : null;
}

/** Rows of all passages with the same columns become one table. */
function drawTable(info, passages, target) {
  const groups = [];
  for (const passage of passages) {
    const spans = spansOf(passage, target);
    for (const sentence of passage.sentences) {
      const [start, end] = [toUnits(passage.text, sentence.start), toUnits(passage.text, sentence.end)];
      const text = passage.text.slice(start, end);
      const fields = fieldsOf(text, start);
      const row = { line: sentence.line, text, start, end, fields, spans, page: passage.page, isFound: spans.some((span) => span.class === "found" && span.start < end && span.end > start) };
      const last = groups.at(-1);
      if (last && Boolean(last.fields) === Boolean(fields) && last.page === passage.page) {
        last.rows.push(row);
        if (fields) for (const field of fields) if (!last.columns.includes(field.name)) last.columns.push(field.name);
      } else groups.push({ fields, page: passage.page, rows: [row], columns: (fields ?? []).map((field) => field.name) });
    }
  }
  return groups.filter((group, index) => group.fields || !isHeaderOf(group, groups[index + 1])).map((group) => (group.fields ? drawGrid(info, group) : el("div", { class: "lines" }, group.rows.map((row) => el("div", { class: "line" },
    el("span", { class: "line-number", "aria-hidden": "true" }, row.line ? String(row.line) : ""),
    el("span", { class: "line-text" }, markSpans(row.text, shiftSpans(row.spans, row.start, row.end))))))));
}

/** A line that only names the columns of the next table says nothing new. */
function isHeaderOf(group, next) {
  if (!next?.fields || group.rows.length !== 1 || group.rows[0].isFound) return false;
  return group.rows[0].text.split("; ").every((name) => next.columns.includes(name));
}

function drawGrid(info, group) {
  const caption = placeOf({ page: group.page, kind: info.kind }) || t("document.table");
  return el("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", { class: "sheet" }, el("caption", null, caption),
      el("thead", null, el("tr", null, el("th", { scope: "col" }, t("document.row")), group.columns.map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", null, group.rows.map((row) => el("tr", { class: row.isFound ? "is-found" : null },
        el("th", { scope: "row" }, row.line ? String(row.line) : ""),
        group.columns.map((name) => {
          const field = row.fields.find((item) => item.name === name);
          if (!field) return el("td");
          const said = row.spans.filter((span) => span.class === "said" && span.start < field.end && span.end > field.start);
          return el("td", { class: said.length ? "cell-said" : null }, markSpans(field.value, shiftSpans(said, field.start, field.end)));
        }))))));
}

/** The headers of a mail as a list; what is not a header stays text. */
function drawMail(passage, spans) {
  const lines = linesOf(passage);
  const isHead = lines.length && lines.every((line) => HEADER.test(line.text) || !line.text.trim());
  if (!isHead) return el("div", { class: "lines prose" }, drawLines(passage, spans));
  return el("dl", { class: "mail-head" }, lines.filter((line) => line.text.trim()).map((line) => {
    const name = line.text.match(HEADER)[1];
    const start = line.start + name.length + 2;
    const label = t(`mail.${name.toLowerCase()}`);
    return el("div", null, el("dt", null, label.startsWith("mail.") ? name : label), el("dd", null, markSpans(line.text.slice(name.length + 2), shiftSpans(spans, start, line.end))));
  }));
}

function drawPassage(info, passage, target) {
  const spans = spansOf(passage, target);
  const id = `passage-${passage.id}`;
  if (MAIL.has(info.kind)) return el("div", { class: "passage", id }, drawMail(passage, spans));
  const isMono = MONO.has(info.kind);
  return el("div", { class: `passage lines ${isMono ? "mono" : "prose"}`, id }, drawLines(passage, spans));
}

/** Draw passages in their order; a new page begins with its number. */
export function drawPassages(info, passages, target) {
  if (!passages.length) return el("p", { class: "empty" }, t("document.no-text"));
  if (TABLES.has(info.kind)) return drawTable(info, passages, target);
  let page = null;
  return passages.map((passage) => {
    const isNew = passage.page !== null && passage.page !== undefined && passage.page !== page;
    page = passage.page;
    return [isNew ? el("h2", { class: "page-title" }, placeOf({ page, kind: info.kind })) : null, drawPassage(info, passage, target)];
  });
}
