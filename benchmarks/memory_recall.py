"""How well, and how fast, a lasting memory finds the paragraph that a question is about.

    python benchmarks/memory_recall.py SQUAD --memory squad.db [--embedder reader]
        [--questions 1000] [--lexical 0.3 0.5] [--part held] [--remember held dev] [--whole]

SQUAD is a folder with train-v1.1.json.gz and dev-v1.1.json.gz. The memory, a file or an address,
holds every paragraph of both, or of the parts that --remember names; it is made once and kept.
Questions are drawn from dev, by dice that always fall alike; --part held draws them from articles
of train that the reader was not trained on, which is where a share is to be chosen: --lexical may
name several. --whole takes the vectors of whole passages alone, without their keys. A question is
answered by rank k if one of the first k passages is part of its paragraph. ``sentence``, which is
measured for one share alone and with keys, is how often the sentence that ``ask`` quotes without a
reader holds a right answer.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import squad_memory
from squad_memory import PARTS, flat

from mnemic import Memory
from mnemic.data.text_tasks.examples import Asked
from mnemic.store.retrieve.hybrid import Sought, seek, share

MOST = 5  # passages that are looked at


def by_vectors(memory: Memory, sought: Sought) -> Sought:
    """The same slots, but the vector of each is its only key."""
    assert memory.embedder is not None
    assert sought.vectors is not None
    products = memory.store.vectors(sought.slots) @ memory.embedder.embed([sought.query])[0]
    scores = dict(zip(sought.slots, products.tolist()))
    return sought._replace(vectors=sought.vectors._replace(scores=scores))


def measure(
    memory: Memory, questions: list[Asked], shares: Sequence[float | None], whole: bool
) -> dict[float | None, dict[str, float]]:
    """Recall for each share, and how long looking takes, which is the same for all."""
    ranks: dict[float | None, list[int]] = {lexical: [] for lexical in shares}
    times = []
    for one in questions:
        began = time.perf_counter()
        sought = seek(memory.store, memory.embedder, one.question)
        times.append(1000 * (time.perf_counter() - began))
        if whole:
            sought = by_vectors(memory, sought)
        for lexical in shares:
            best = sought.mixed(share(memory.embedder, lexical)).best(MOST)
            inside = [
                flat(slot.passage.text) in flat(one.text) for slot in memory.store.slots(best)
            ]
            ranks[lexical].append(inside.index(True) if any(inside) else MOST)
    times.sort()
    count = len(questions)
    spent = {"search p50 ms": times[count // 2], "search p95 ms": times[int(count * 0.95)]}
    return {
        lexical: {
            "recall@1": 100 * sum(rank < 1 for rank in own) / count,
            "recall@5": 100 * sum(rank < MOST for rank in own) / count,
        }
        | spent
        for lexical, own in ranks.items()
    }


def sentences(memory: Memory, questions: list[Asked], lexical: float | None) -> dict[str, float]:
    said = ((memory.ask(one.question, lexical=lexical).text, one.answers) for one in questions)
    quoted = sum(any(text in answer for text in answers) for answer, answers in said)
    return {"sentence": 100 * quoted / len(questions)}


def main() -> None:
    how = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=how)
    parser.add_argument("squad", type=Path)
    parser.add_argument("--memory", required=True)
    parser.add_argument("--embedder", default=None)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--lexical", type=float, nargs="+", default=[None])
    parser.add_argument("--part", choices=list(PARTS), default="dev")
    parser.add_argument("--remember", choices=list(PARTS), nargs="+", default=list(PARTS))
    parser.add_argument("--whole", action="store_true")
    given = parser.parse_args()
    squad = squad_memory.read(given.squad)
    questions = squad.sample(given.part, given.questions)
    with Memory(given.memory, embedder=given.embedder, reader=None) as memory:
        squad_memory.fill(memory, squad, given.remember)
        for lexical, found in measure(memory, questions, given.lexical, given.whole).items():
            if len(given.lexical) == 1:
                found |= sentences(memory, questions, lexical)
            print(f"\n{len(questions)} questions of {given.part}, lexical {lexical}")
            for name, value in found.items():
                print(f"{name:14} {value:6.1f}", flush=True)


if __name__ == "__main__":
    main()
