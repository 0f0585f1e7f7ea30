"""Measure what questions written ahead do for recall, and what they cost.

    python benchmarks/question_keys.py SQUAD --memory squad.db [--model runs/questions]
        [--embedder none] [--questions 1000] [--part dev] [--weights 0.25 0.5 1]

SQUAD is a folder with train-v1.1.json.gz and dev-v1.1.json.gz. The memory is made anew, of every
paragraph of the part; the questions that are asked are sampled with a fixed seed, one of a
paragraph. --model is the folder of a network that writes questions. Without it the keys are the
other questions that people asked about the same paragraph, at most five of each passage: what a
perfect generator would write. --part held, of articles of train, is for choosing the weight.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import squad_memory
from squad_memory import SPLITS, normalize_spaces

from mnemic import Memory
from mnemic.data.text_tasks.examples import QuestionExample
from mnemic.store.ingest.questions import MAX_QUESTIONS, NetworkWriter, QuestionWriter
from mnemic.store.retrieve import hybrid

TOP_K = 5


class OtherQuestions:
    """Write the questions that people asked about a passage, but for those that are asked."""

    def __init__(self, questions: Sequence[QuestionExample], asked: Sequence[QuestionExample]) -> None:
        asked_ids = {question.question_id for question in asked}
        self.by_text: dict[str, list[QuestionExample]] = {}
        for question in questions:
            if question.question_id not in asked_ids:
                self.by_text.setdefault(normalize_spaces(question.text), []).append(question)

    def write(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the questions whose answer is in each passage."""
        return [list(dict.fromkeys(self.find(normalize_spaces(text))))[:MAX_QUESTIONS] for text in texts]

    def find(self, passage: str) -> Iterator[str]:
        """Find the questions of the paragraph that a passage is of."""
        for text, questions in self.by_text.items():
            if passage in text:
                yield from (question.question for question in questions if question.answers[0] in passage)


def sample_questions(questions: Sequence[QuestionExample], count: int) -> list[QuestionExample]:
    """Sample questions, at most one of a paragraph, with a fixed seed."""
    by_text: dict[str, list[QuestionExample]] = {}
    for question in questions:
        by_text.setdefault(question.text, []).append(question)
    generator = Random(0)
    texts = generator.sample(sorted(by_text), min(count, len(by_text)))
    return [generator.choice(by_text[text]) for text in texts]


def measure_recall(memory: Memory, questions: Sequence[QuestionExample]) -> dict[str, float]:
    """Measure recall and latency of the memory's search."""
    ranks, times = [], []
    for question in questions:
        started = time.perf_counter()
        hop = hybrid.read_hop(memory.store, memory.embedder, question.question)
        times.append(1000 * (time.perf_counter() - started))
        slots = memory.store.get_slots(hop.top_slots(TOP_K))
        is_right = [normalize_spaces(slot.passage.text) in normalize_spaces(question.text) for slot in slots]
        ranks.append(is_right.index(True) if any(is_right) else TOP_K)
    return {
        "recall@1": 100 * sum(rank < 1 for rank in ranks) / len(ranks),
        f"recall@{TOP_K}": 100 * sum(rank < TOP_K for rank in ranks) / len(ranks),
        "search p50 ms": sorted(times)[len(times) // 2],
    }


def main() -> None:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("squad", type=Path)
    parser.add_argument("--memory", type=Path, required=True)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--embedder", default="none")
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--part", choices=list(SPLITS), default="dev")
    parser.add_argument("--weights", type=float, nargs="+", default=[hybrid.QUESTION_WEIGHT])
    args = parser.parse_args()
    squad = squad_memory.read_squad(args.squad)
    questions = [question for article in squad.splits[args.part] for question in article]
    asked = sample_questions(questions, args.questions)
    if args.memory.exists():
        parser.error(f"{args.memory} exists; give a new file")
    with Memory(args.memory, embedder=args.embedder, reader=None) as memory:
        squad_memory.fill_memory(memory, squad, [args.part])
        print(f"{len(asked)} questions of {args.part}, embedder {args.embedder}")
        print("without", measure_recall(memory, asked), flush=True)
        writer: QuestionWriter = OtherQuestions(questions, asked) if args.model is None else NetworkWriter(args.model)
        started, num_bytes = time.perf_counter(), memory.stats().bytes
        (*_, (num_passages, _)) = memory.write_questions(writer)
        seconds = time.perf_counter() - started
        growth = memory.stats().bytes - num_bytes
        print(f"{1000 * seconds / num_passages:.1f} ms and {growth / num_passages:.0f} bytes a passage", flush=True)
        for weight in args.weights:
            hybrid.QUESTION_WEIGHT = weight
            print(f"with, weight {weight:g}", measure_recall(memory, asked), flush=True)


if __name__ == "__main__":
    main()
