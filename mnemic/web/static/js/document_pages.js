// Pages as pictures, with the words of the evidence marked on them.

import { get, withQuery } from "./api.js";
import { el, show } from "./dom.js";
import { t } from "./language.js";
import { memoryPath } from "./memories.js";

const WIDTH = 1400; // of a picture, in pixels: sharp on dense screens
const NEAR = 3; // pages on either side of the target that are drawn at once; the others when they come near

async function readBoxes(info, target, start, end) {
  if (target.passage === null || start === null || end === null) return [];
  const path = memoryPath(`/documents/${info.id}/pages/${target.page}/highlight`);
  try {
    return (await get(withQuery(path, { passage: target.passage, start, end }))).boxes;
  } catch {
    return [];
  }
}

const drawBoxes = (boxes, name) => boxes.map(([left, top, right, bottom]) => el("span", { class: `box ${name}`,
  vars: { "--left": left, "--top": top, "--width": right - left, "--height": bottom - top } }));

function drawPage(info, page, boxes, isNear) {
  const path = withQuery(memoryPath(`/documents/${info.id}/pages/${page.number}/image`), { width: WIDTH });
  return el("figure", { class: "page", id: `page-${page.number}` },
    el("div", { class: "page-sheet", vars: { "--ratio": `${page.width} / ${page.height}` } },
      el("img", { src: path, alt: t("document.page-alt", { n: page.number }), loading: isNear ? "eager" : "lazy", decoding: "async" }),
      boxes),
    el("figcaption", null, t("place.page", { n: page.number })));
}

/** Draw the pages; each has its place before its picture is there. */
export async function drawPages(place, info, target) {
  const [{ pages }, found, said] = await Promise.all([
    get(memoryPath(`/documents/${info.id}/pages`)),
    target.page === null ? [] : readBoxes(info, target, target.start, target.end),
    target.page === null ? [] : readBoxes(info, target, target.from, target.to),
  ]);
  show(place, el("div", { class: "pages" }, pages.map((page) => {
    const isTarget = page.number === target.page;
    const boxes = isTarget ? [drawBoxes(found, "box-found"), drawBoxes(said, "box-said")] : [];
    return drawPage(info, page, boxes, target.page === null ? page.number <= NEAR : Math.abs(page.number - target.page) <= NEAR);
  })));
}
