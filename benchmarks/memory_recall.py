"""Measure recall and latency of a memory's search for the paragraph of a question.

    python benchmarks/memory_recall.py SQUAD --memory squad.db [--embedder reader]
        [--questions 1000] [--lexical 0.3 0.5] [--part held] [--remember held dev] [--whole]

SQUAD is a folder with train-v1.1.json.gz and dev-v1.1.json.gz. The memory, a file or an address,
contains every paragraph of both, or of the splits that --remember names; it is made once and
reused. Questions are sampled from dev with a fixed seed; --part held samples them from articles of
train that the reader was not trained on, to choose the weight of BM25: --lexical may name several.
--whole uses only the vectors of whole passages, not those of sentences. A question counts as found
at rank k if one of the first k passages is part of its paragraph. ``sentence``, which is measured
only for a single weight and with sentence vectors, is how often the sentence that ``ask`` quotes
without a reader contains a right answer.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import squad_memory
from squad_memory import SPLITS, normalize_spaces

from mnemic import Memory
from mnemic.data.text_tasks.examples import QuestionExample
from mnemic.store.retrieve.hybrid import Candidates, choose_bm25_weight, retrieve_candidates

TOP_K = 5


def score_by_passage_vectors(memory: Memory, candidates: Candidates) -> Candidates:
    """Score the same slots by passage vectors only, without sentence vectors."""
    assert memory.embedder is not None
    assert candidates.cosine is not None
    products = memory.store.get_vectors(candidates.slot_ids) @ memory.embedder.embed([candidates.query])[0]
    scores = dict(zip(candidates.slot_ids, products.tolist()))
    return candidates._replace(cosine=candidates.cosine._replace(scores=scores))


def measure_recall(
    memory: Memory, questions: list[QuestionExample], bm25_weights: Sequence[float | None], passage_vectors_only: bool
) -> dict[float | None, dict[str, float]]:
    """Measure recall per weight of BM25, and search latency, which is the same for all."""
    ranks: dict[float | None, list[int]] = {bm25_weight: [] for bm25_weight in bm25_weights}
    times = []
    for question in questions:
        started = time.perf_counter()
        candidates = retrieve_candidates(memory.store, memory.embedder, question.question)
        times.append(1000 * (time.perf_counter() - started))
        if passage_vectors_only:
            candidates = score_by_passage_vectors(memory, candidates)
        for bm25_weight in bm25_weights:
            best = candidates.fuse(choose_bm25_weight(memory.embedder, bm25_weight)).top_slots(TOP_K)
            is_in_paragraph = [
                normalize_spaces(slot.passage.text) in normalize_spaces(question.text)
                for slot in memory.store.get_slots(best)
            ]
            ranks[bm25_weight].append(is_in_paragraph.index(True) if any(is_in_paragraph) else TOP_K)
    times.sort()
    count = len(questions)
    latencies = {"search p50 ms": times[count // 2], "search p95 ms": times[int(count * 0.95)]}
    return {
        bm25_weight: {
            "recall@1": 100 * sum(rank < 1 for rank in weight_ranks) / count,
            "recall@5": 100 * sum(rank < TOP_K for rank in weight_ranks) / count,
        }
        | latencies
        for bm25_weight, weight_ranks in ranks.items()
    }


def measure_sentences(memory: Memory, questions: list[QuestionExample], lexical: float | None) -> dict[str, float]:
    """Measure how often the quoted sentence contains a right answer."""
    answers_and_targets = (
        (memory.ask(question.question, lexical=lexical).text, question.answers) for question in questions
    )
    num_right = sum(any(text in answer for text in answers) for answer, answers in answers_and_targets)
    return {"sentence": 100 * num_right / len(questions)}


def main() -> None:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("squad", type=Path)
    parser.add_argument("--memory", required=True)
    parser.add_argument("--embedder", default=None)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--lexical", type=float, nargs="+", default=[None])
    parser.add_argument("--part", choices=list(SPLITS), default="dev")
    parser.add_argument("--remember", choices=list(SPLITS), nargs="+", default=list(SPLITS))
    parser.add_argument("--whole", action="store_true")
    args = parser.parse_args()
    squad = squad_memory.read_squad(args.squad)
    questions = squad.sample(args.part, args.questions)
    with Memory(args.memory, embedder=args.embedder, reader=None) as memory:
        squad_memory.fill_memory(memory, squad, args.remember)
        for bm25_weight, metrics in measure_recall(memory, questions, args.lexical, args.whole).items():
            if len(args.lexical) == 1:
                metrics |= measure_sentences(memory, questions, bm25_weight)
            print(f"\n{len(questions)} questions of {args.part}, lexical {bm25_weight}")
            for name, value in metrics.items():
                print(f"{name:14} {value:6.1f}", flush=True)


if __name__ == "__main__":
    main()
