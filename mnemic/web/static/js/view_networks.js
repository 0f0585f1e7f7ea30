// Networks: a story, a question, and what a trained memory network read at each hop.

import { get, post, withQuery } from "./api.js";
import { announce, el, show } from "./dom.js";
import { heatCell, heatLegend } from "./charts.js";
import { formatNumber, t } from "./language.js";
import { problemBox } from "./problems.js";

const MAX_SLOT_COLUMNS = 30;

/** The sentences of the story, one a line. */
const splitStory = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

function drawHops(sentences, hops) {
  return el("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": t("networks.attention") },
    el("table", { class: "heat" }, el("caption", { class: "hidden" }, t("networks.attention")),
      el("thead", null, el("tr", null, el("th", { scope: "col" }, t("networks.sentence")), hops.map((hop, index) => el("th", { scope: "col" }, hop.label || t("networks.hop", { n: index + 1 }))))),
      el("tbody", null, sentences.map((sentence, row) => el("tr", null, el("th", { scope: "row" }, el("span", { class: "row-number" }, String(row + 1)), sentence),
        hops.map((hop) => heatCell(hop.weights[row] ?? 0)))))));
}

function drawSlots(sentences, slots) {
  const names = slots.names.slice(0, MAX_SLOT_COLUMNS);
  const most = slots.read?.length ? slots.read.indexOf(Math.max(...slots.read)) : -1;
  return el("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": t("networks.slots") },
    el("table", { class: "heat heat-slots" }, el("caption", { class: "hidden" }, t("networks.slots")),
      el("thead", null, el("tr", null, el("th", { scope: "col" }, t("networks.sentence")), names.map((name, index) => el("th", { scope: "col", class: index === most ? "is-most" : null }, name)))),
      el("tbody", null,
        sentences.map((sentence, row) => el("tr", null, el("th", { scope: "row" }, el("span", { class: "row-number" }, String(row + 1)), sentence),
          names.map((_, slot) => heatCell(slots.steps[row]?.[slot] ?? 0, { digits: 1, family: "gate" })))),
        slots.read?.length ? el("tr", { class: "read-row" }, el("th", { scope: "row" }, t("networks.read")), names.map((_, slot) => heatCell(slots.read[slot] ?? 0, { digits: 1 }))) : null)));
}

function drawResult(sentences, result, expected) {
  const best = result.candidates?.[0];
  return [
    el("div", { class: "network-answer" },
    el("div", { class: "answer" }, el("p", { class: "answer-words" }, result.answer),
      best && el("ul", { class: "candidates", "aria-label": t("networks.candidates") }, result.candidates.slice(0, 5).map((item) => el("li", null,
        el("span", { class: "candidate-text" }, item.text), el("span", { class: "meter", "aria-hidden": "true", vars: { "--level": item.probability.toFixed(3) } }), el("span", { class: "candidate-number" }, formatNumber(item.probability, 2)))))),
    (result.notes ?? []).map((note) => el("p", { class: "help note" }, note)),
    el("section", { class: "panel" }, el("h2", null, t("networks.attention")), el("p", { class: "help" }, t("networks.attention.help")), drawHops(sentences, result.hops ?? []), heatLegend(t("legend.weight.low"), t("legend.weight.high"))),
    expected ? el("p", { class: "help" }, t("networks.expected", { answer: expected })) : null),
    result.slots ? el("section", { class: "panel" }, el("h2", null, t("networks.slots")), el("p", { class: "help" }, t("networks.slots.help")), drawSlots(sentences, result.slots), heatLegend(t("legend.gate.low"), t("legend.gate.high"), "gate")) : null,
  ];
}

/** Mount the view. */
export async function mount(place, route) {
  const { models } = await get("/v1/models");
  const names = models.filter((model) => model.methods.includes("ask_story"));
  const results = el("div", { class: "network-results" });
  const heading = [el("h1", { tabindex: "-1" }, t("nav.networks")), el("p", { class: "lead" }, t("networks.lead"))];
  if (!names.length) {
    show(place, heading, el("p", { class: "empty" }, t("networks.none")));
    return {};
  }
  const clearResults = () => show(results, el("p", { class: "network-answer help network-hint" }, t("networks.hint")));
  const wish = route.values.get("model");
  const about = el("p", { class: "help" });
  const task = el("select", { id: "story-task" });
  const model = el("select", { id: "network" }, names.map((item) => el("option", { value: item.name, selected: item.name === wish }, item.name)));
  const describe = () => {
    const item = names.find((candidate) => candidate.name === model.value);
    about.textContent = item.description;
    const tasks = item.tasks.length ? item.tasks : Array.from({ length: 20 }, (_, index) => index + 1);
    show(task, tasks.map((number) => el("option", { value: number }, `${number}. ${t(`task.${number}`)}`)));
  };
  model.addEventListener("change", () => {
    describe();
    clearResults();
  });
  describe();
  const story = el("textarea", { id: "story", rows: 8, required: true, value: t("networks.example.story") });
  const question = el("input", { id: "story-question", required: true, autocomplete: "off", value: t("networks.example.question") });
  const message = el("div", { role: "alert" });
  let seed = 0;
  let expected = "";
  const generate = async () => {
    show(message);
    try {
      const example = await get(withQuery("/v1/stories/example", { model: model.value, task: task.value, seed: (seed += 1) }));
      story.value = example.sentences.join("\n");
      question.value = example.question;
      expected = example.answer;
      clearResults();
      announce(t("networks.generated"));
    } catch (problem) {
      show(message, problemBox(problem));
    }
  };
  const ask = async (event) => {
    event.preventDefault();
    show(message);
    const sentences = splitStory(story.value);
    results.setAttribute("aria-busy", "true");
    try {
      const result = await post("/v1/stories/ask", { model: model.value, sentences, question: question.value.trim() });
      show(results, drawResult(sentences, result, expected));
      announce(t("networks.answered", { answer: result.answer }));
    } catch (problem) {
      show(message, problemBox(problem));
    } finally {
      results.removeAttribute("aria-busy");
    }
  };
  const clear = () => { expected = ""; };
  story.addEventListener("input", clear);
  question.addEventListener("input", clear);
  clearResults();
  show(place, heading, el("div", { class: "network" }, el("form", { class: "network-form", onsubmit: ask },
    el("div", { class: "row wrap" },
      el("div", { class: "field" }, el("label", { for: "network" }, t("networks.model")), model),
      el("div", { class: "field grow" }, el("label", { for: "story-task" }, t("networks.task")), task),
      el("button", { type: "button", onclick: generate }, t("networks.generate"))),
    about,
    el("label", { for: "story" }, t("networks.story")), story,
    el("label", { for: "story-question" }, t("networks.question")),
    el("div", { class: "ask-box" }, question, el("button", { class: "primary" }, t("ask.button"))), message), results));
  return {};
}
