// Pictures of weights: tables and strips whose numbers can be read as well as seen.

import { el, svg } from "./dom.js";
import { formatNumber } from "./language.js";

/** A cell of a heat map: the color says the weight, and so does the number. */
export function heatCell(weight, { digits = 2, label = "", family = "heat" } = {}) {
  const value = Math.max(0, Math.min(1, weight));
  return el("td", { class: `${family}-cell`, title: label || undefined, vars: { "--w": value.toFixed(3) } },
    formatNumber(weight, digits));
}

/** The legend of a color scale. */
export const heatLegend = (low, high, family = "heat") =>
  el("p", { class: "legend" }, el("span", null, low), el("span", { class: `legend-bar legend-${family}`, "aria-hidden": "true" }), el("span", null, high));

/** The color of a position in the text, from early to late, for SVG; safe for color-blind eyes. */
export function positionClass(share) {
  return `tone-${Math.max(0, Math.min(9, Math.floor(share * 10)))}`;
}

/** A strip: one bar per unit over the length of the text; height and color say the weight. */
export function weightStrip(units, length, [low, high], label, onPick) {
  const [width, height] = [1000, 90];
  const bars = units.map((unit, index) => {
    const share = 0.06 + 0.94 * ((unit.weight - low) / (high - low));
    const x = (unit.first / length) * width;
    const bar = svg("rect", { x: x.toFixed(2), y: (height * (1 - share)).toFixed(2), width: Math.max(0.8, ((unit.last - unit.first) / length) * width - 0.4).toFixed(2),
      height: Math.max(1, height * share).toFixed(2), class: `bar-${Math.min(4, Math.floor(share * 5))}`, "data-unit": index });
    return bar;
  });
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", class: "strip", role: "img", "aria-label": label }, bars);
  picture.addEventListener("click", (event) => {
    const index = event.target.dataset?.unit;
    if (index !== undefined) onPick(Number(index));
  });
  return picture;
}

/** The slots over time: one column per step, one row per slot, colored by the place in the text. */
export function slotGrid(steps, numSlots, positionOf, label) {
  const [width, height] = [1000, Math.max(60, Math.min(320, numSlots * 6))];
  const [dx, dy] = [width / Math.max(1, steps.length), height / Math.max(1, numSlots)];
  const cells = [];
  for (let slot = 0; slot < numSlots; slot += 1) {
    let begin = 0;
    for (let step = 1; step <= steps.length; step += 1) {
      if (step < steps.length && steps[step][slot] === steps[begin][slot]) continue;
      const unit = steps[begin][slot];
      if (unit >= 0) {
        cells.push(svg("rect", { x: (begin * dx).toFixed(2), y: (slot * dy).toFixed(2), width: ((step - begin) * dx).toFixed(2), height: Math.max(0.6, dy - 0.4).toFixed(2),
          class: positionClass(positionOf(unit)) }));
      }
      begin = step;
    }
  }
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", class: "slot-grid", role: "img", "aria-label": label }, cells);
}

/** The legend of positions in a text. */
export const positionLegend = (early, late) =>
  el("p", { class: "legend" }, el("span", null, early), el("span", { class: "legend-tones", "aria-hidden": "true" }, Array.from({ length: 10 }, (_, tone) => el("span", { class: `tone-${tone}` }))), el("span", null, late));
