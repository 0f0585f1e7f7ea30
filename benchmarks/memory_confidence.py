"""Fit what ``mnemic.store.answer.confidence`` knows: how sure an answer of the lasting memory is.

    python benchmarks/memory_confidence.py SQUAD --memory squad.db [--questions 800]
        [--kept gathered.jsonl]

SQUAD and the memory are those of memory_answers.py. Questions are drawn from the articles of train
that the reader's training held back, and asked of four memories: the whole one, a copy that has
forgotten these articles, and a small one of every second of these articles, which can answer the
questions of those and none of the others. Half of all questions thus have no answer. The weights
maximise the likelihood of the right choice: a span of F1 of at least one half, else none. The least
confidence is the smallest at which few of the questions without an answer (--wrong) get one, be the
memory large or small. Figures are of questions of articles that had no part in the weights (two
halves, in turn). --kept keeps what was gathered, the slow part, for the next time.
"""

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import squad_memory
import torch
from memory_answers import HALF, Judged, calibration
from squad_memory import Squad
from torch import Tensor

from mnemic import Memory
from mnemic.data.text_tasks.examples import Asked
from mnemic.evaluate.metrics import exact, overlap_f1
from mnemic.store.answer.ask import Asking, in_hops, offered, same_words
from mnemic.store.answer.confidence import Confidence, Features

GRID = [number / 100 for number in range(1, 100)]
STEPS = 200
Case = dict[str, Any]  # a question: its memory, whether it has an answer, its article, its offers


def gather(memory: Memory, questions: list[tuple[int, Asked]], of: str, there: bool) -> list[Case]:
    """What the reader offers for each question, and which of it is right."""
    cases = []
    for article, one in questions:
        hops, found = in_hops(memory.store, memory.embedder, one.question, Asking(), choose=False)
        offers = []
        for own in offered(memory.reader, one.question, found, hops) or []:
            text = own.slot.passage.text[own.span.start : own.span.end]
            figures = {"exact": exact(text, one.answers), "f1": overlap_f1(text, one.answers)}
            offers.append(own.known._asdict() | figures | {"text": same_words(text)})
        cases.append({"of": of, "there": there, "article": article, "offers": offers})
    print(f"gathered: {of}, {'with' if there else 'without'} an answer, {len(cases)}", flush=True)
    return cases


def gathered(path: Path, squad: Squad, count: int) -> Iterator[Case]:
    numbered = [(place, one) for place, own in enumerate(squad.parts["held"]) for one in own]
    drawn = random.Random(0).sample(numbered, min(count, len(numbered)))
    with Memory(path) as memory:
        squad_memory.fill(memory, squad)
        files = sorted(squad_memory.files_of(memory).glob("held-*.jsonl"))
        model = memory.store.model()
        yield from gather(memory, drawn, "large", True)
    with squad_memory.forgetful(path, "held") as memory:
        yield from gather(memory, drawn, "large", False)
    small = path.with_name(f"{path.stem}-small.db")
    with Memory(small, embedder=model.name if model else None) as memory:
        memory.remember(*files[::2])
        for rest in (0, 1):
            own = [pair for pair in drawn if pair[0] % 2 == rest]
            yield from gather(memory, own, "small", rest == 0)


def tensors(cases: list[Case]) -> tuple[Tensor, Tensor, Tensor]:
    """Features (q o f), which are there, and which are right (q o); a question that has none has
    as many as the others, which are not there."""
    most = max(len(case["offers"]) for case in cases)
    known = torch.zeros(len(cases), most, len(Features._fields), dtype=torch.float64)
    seen, right = (torch.zeros(len(cases), most, dtype=torch.bool) for _ in range(2))
    for row, case in enumerate(cases):
        for place, own in enumerate(case["offers"]):
            known[row, place] = torch.tensor([own[name] for name in Features._fields])
            seen[row, place] = True
            right[row, place] = case["there"] and own["f1"] >= HALF
    return known, seen, right


def fit(cases: list[Case]) -> Confidence:
    """The weights under which the right choices are likeliest."""
    known, seen, right = tensors(cases)
    weights = torch.zeros(len(Features._fields) + 1, dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([weights], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        search.zero_grad()
        sums = (known @ weights[:-1] + weights[-1]).masked_fill(~seen, -torch.inf)  # q o
        every = torch.cat([sums, torch.zeros(len(cases), 1, dtype=torch.float64)], 1).log_softmax(1)
        none = ~right.any(1, keepdim=True)
        chosen = torch.cat([right, none], 1)
        total = -every.masked_fill(~chosen, -torch.inf).logsumexp(1).mean()
        total.backward()
        return total

    search.step(loss)
    return Confidence(*weights.tolist())


def best(own: Confidence, case: Case) -> Judged:
    """The answer that would be given."""
    offers = case["offers"]
    chances = own.of([Features(*(one[name] for name in Features._fields)) for one in offers])
    sums: dict[str, float] = {}
    for one, chance in zip(offers, chances):
        sums[one["text"]] = sums.get(one["text"], 0.0) + chance
    if not sums:
        return Judged(0.0, 0.0, 0.0, 0, False, 0.0)
    most = max(sums, key=lambda text: sums[text])
    chosen = next(one for one in offers if one["text"] == most)
    return Judged(sums[most], chosen["exact"], chosen["f1"], 0, False, 0.0)


def judged(cases: list[Case]) -> list[tuple[Case, Judged]]:
    """Each question by weights that were fitted on other articles."""
    halves = [[case for case in cases if case["article"] // 2 % 2 == rest] for rest in (0, 1)]
    return [
        (case, best(weights, case))
        for weights, others in ((fit(halves[1]), halves[0]), (fit(halves[0]), halves[1]))
        for case in others
    ]


def share(found: list[tuple[Case, Judged]], least: float, of: str, there: bool) -> float:
    """How many get an answer."""
    own = [one.score >= least for case, one in found if (case["of"], case["there"]) == (of, there)]
    return sum(own) / max(len(own), 1)


def main() -> None:
    how = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=how)
    parser.add_argument("squad", type=Path)
    parser.add_argument("--memory", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=800)
    parser.add_argument("--wrong", type=float, default=0.1)
    parser.add_argument("--kept", type=Path, default=None)
    given = parser.parse_args()
    if given.kept is not None and given.kept.exists():
        lines = given.kept.read_text(encoding="utf-8").splitlines()
        cases = [json.loads(line) for line in lines]
    else:
        squad = squad_memory.read(given.squad)
        cases = list(gathered(given.memory, squad, given.questions))
        if given.kept is not None:
            told = "".join(json.dumps(case) + "\n" for case in cases)
            given.kept.write_text(told, encoding="utf-8")
    print(fit(cases))
    found = judged(cases)
    there, gone = ([own for case, own in found if case["there"] == side] for side in (True, False))
    for row in calibration(there, gone):
        print(json.dumps(row))
    enough = [
        x
        for x in GRID
        if max(share(found, x, of, False) for of in ("large", "small")) <= given.wrong
    ]
    least = min(enough)
    print(f"least confidence {least}")
    for of in ("large", "small"):
        right = [
            own.right
            for case, own in found
            if case["there"] and case["of"] == of and own.score >= least
        ]
        print(
            f"{of}: {share(found, least, of, True):.3f} of those with an answer get one, "
            f"{sum(right) / max(len(right), 1):.3f} of it right; "
            f"{share(found, least, of, False):.3f} of those without one"
        )


if __name__ == "__main__":
    main()
