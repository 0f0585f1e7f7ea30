// Tables: what papers report, and what the same systems reach here.

import { get } from "./api.js";
import { announce, el, show } from "./dom.js";
import { formatNumber, t } from "./language.js";

const COLUMNS = ["system", "published", "ours", "unit", "note"];
const NUMBERS = new Set(["published", "ours"]);

const format = (value) => (typeof value === "number" ? formatNumber(Math.round(value * 100) / 100) : value ?? "");

function compare(left, right) {
  if (left === right) return 0;
  if (left === null || left === undefined || left === "") return 1;
  if (right === null || right === undefined || right === "") return -1;
  if (typeof left === "number" && typeof right === "number") return left - right;
  return String(left).localeCompare(String(right), undefined, { numeric: true });
}

/** A table whose columns sort when their heading is pressed. */
function drawTable(table) {
  const columns = COLUMNS.filter((name) => table.rows.some((row) => row[name] !== null && row[name] !== undefined && row[name] !== ""));
  const body = el("tbody");
  let order = { column: "", isUp: true };
  const fillBody = () => {
    const rows = [...table.rows];
    if (order.column) rows.sort((left, right) => compare(left[order.column], right[order.column]) * (order.isUp ? 1 : -1));
    show(body, rows.map((row) => el("tr", null, columns.map((name, index) => {
      const cell = index ? el("td", { class: NUMBERS.has(name) ? "number-cell" : null }) : el("th", { scope: "row" });
      show(cell, format(row[name]), index === 0 && row.command ? el("code", { class: "command" }, row.command) : null);
      return cell;
    }))));
  };
  const heads = columns.map((name) => {
    const head = el("th", { scope: "col", class: NUMBERS.has(name) ? "number-cell" : null, "aria-sort": "none" });
    const button = el("button", { type: "button", class: "sort", onclick: () => {
      order = { column: name, isUp: order.column === name ? !order.isUp : true };
      for (const other of heads) other.setAttribute("aria-sort", other === head ? (order.isUp ? "ascending" : "descending") : "none");
      fillBody();
      announce(t(order.isUp ? "tables.sorted-up" : "tables.sorted-down", { column: t(`tables.${name}`) }));
    } }, t(`tables.${name}`), el("span", { class: "sort-mark", "aria-hidden": "true" }));
    head.append(button);
    return head;
  });
  fillBody();
  const title = table.title || table.name;
  return el("section", { class: "panel", id: `table-${table.name}` },
    el("h2", null, title),
    el("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": title }, el("table", { class: "figures" }, el("caption", { class: "hidden" }, title), el("thead", null, el("tr", null, heads)), body)));
}

/** Mount the view. */
export async function mount(place) {
  const { tables } = await get("/v1/tables");
  show(place, el("h1", { tabindex: "-1" }, t("nav.tables")), el("p", { class: "lead" }, t("tables.lead")),
    tables.length ? tables.map(drawTable) : el("p", { class: "empty" }, t("tables.none")));
  return {};
}
