// Build elements without markup strings: text is always text.

const SVG = "http://www.w3.org/2000/svg";

function put(node, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
  else if (name === "class") node.setAttribute("class", value);
  else if (name === "vars") for (const [key, number] of Object.entries(value)) node.style.setProperty(key, number);
  else if (name === "value" || name === "checked" || name === "indeterminate") node[name] = value;
  else node.setAttribute(name, value === true ? "" : String(value));
}

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) put(node, name, value);
  node.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Make an HTML element: `el("p", { class: "x" }, "text", child)`. */
export const el = (name, properties, ...children) => fill(document.createElement(name), properties, children);

/** Make an SVG element. */
export const svg = (name, properties, ...children) => fill(document.createElementNS(SVG, name), properties, children);

const ICONS = {
  close: "M5 5l10 10M15 5L5 15",
  plus: "M10 4v12M4 10h12",
  search: "M9 3.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 1 1 0-11M13 13l4 4",
  back: "M12 4l-6 6l6 6",
  file: "M5 2.5h7l3.5 3.5v11.5h-10.5zM12 2.5v4h3.5",
  folder: "M2.5 5h5l2 2.5h8v8h-15z",
  check: "M4 10.5l4 4l8-9",
  alert: "M10 3l7.5 13.5h-15zM10 8v4M10 14v.5",
  down: "M10 3v10M5.5 9l4.5 4.5l4.5-4.5M4 17h12",
};

/** Make a small line icon; it is decoration and hidden from screen readers. */
export const icon = (name) =>
  svg("svg", { viewBox: "0 0 20 20", width: 18, height: 18, class: "icon", "aria-hidden": "true", focusable: "false" },
    svg("path", { d: ICONS[name], fill: "none", stroke: "currentColor", "stroke-width": 1.6, "stroke-linecap": "round",
      "stroke-linejoin": "round" }));

/** Replace the content of a node. */
export function show(node, ...children) {
  node.replaceChildren(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Say a sentence to a screen reader. */
export function announce(text) {
  const live = document.getElementById("live");
  live.textContent = "";
  requestAnimationFrame(() => { live.textContent = text; });
}

/** Run a function when calls have paused. */
export function debounce(run, pause = 250) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...values), pause);
  };
}

/** Open a dialog with a title and content; it closes with Escape, and the focus returns. */
export function openDialog(title, closeLabel, build) {
  const before = document.activeElement;
  const heading = el("h2", { id: "dialog-title", tabindex: "-1" }, title);
  const body = el("div", { class: "dialog-body" });
  const button = el("button", { type: "button", class: "tool tool-icon", "aria-label": closeLabel, onclick: () => dialog.close() }, icon("close"));
  const dialog = el("dialog", { "aria-labelledby": "dialog-title" }, el("div", { class: "dialog-head" }, heading, button), body);
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (before?.isConnected) before.focus();
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  show(body, build(dialog));
  document.body.append(dialog);
  dialog.showModal();
  (body.querySelector("[autofocus]") ?? heading).focus();
  return dialog;
}

/** Split a text around half-open spans; each span's text is passed to `wrap`. */
export function markSpans(text, spans) {
  const cuts = new Set([0, text.length]);
  for (const span of spans) {
    cuts.add(Math.max(0, Math.min(span.start, text.length)));
    cuts.add(Math.max(0, Math.min(span.end, text.length)));
  }
  const places = [...cuts].sort((left, right) => left - right);
  const pieces = [];
  for (let index = 0; index + 1 < places.length; index += 1) {
    const [start, end] = [places[index], places[index + 1]];
    const classes = spans.filter((span) => span.start <= start && span.end >= end).map((span) => span.class);
    const piece = text.slice(start, end);
    pieces.push(classes.length ? el("mark", { class: classes.join(" ") }, piece) : piece);
  }
  return pieces;
}

/** Convert an offset that counts characters, as Python does, to one that counts UTF-16 units. */
export function toUnits(text, offset) {
  if (!/[\ud800-\udbff]/.test(text)) return offset;
  return Array.from(text).slice(0, offset).join("").length;
}
