"""Measure how many passages ``ask`` should read and rank anew, on held-out articles of SQuAD.

    python benchmarks/rerank_passages.py SQUAD --memory held.db [--questions 800]
        [--paragraphs 2000] [--rerank 5 10 20 30] [--weights 0.3 1 100] [--timed 60]

SQUAD is a folder with train-v1.1.json.gz and dev-v1.1.json.gz. The memory has the paragraphs of the
articles of train that the shipped reader was not trained on, and of random other ones of train, up
to --paragraphs in all; it is made once and reused. Questions about the held-out articles are
sampled with a fixed seed and asked with each number of passages (0: the order of retrieval), and
with each weight of the reader's log-odds beside the score of retrieval (100: the log-odds alone).

What is read is read once for all of them; times are measured afterwards, on --timed questions that
are read anew: the median of seconds on the clock, and of the processor's in all threads.
"""

import argparse
import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import squad_memory
from memory_answers import judge_answer, summarize_answers
from squad_memory import Squad

from mnemic import Memory
from mnemic.data.text_tasks.examples import QuestionExample
from mnemic.store import AnswerSpan
from mnemic.store.answer import rerank


class CachedReader:
    """A reader that reads nothing twice."""

    def __init__(self, reader: Any) -> None:
        self.reader, self.tokenizer = reader, reader.tokenizer
        self.spans: dict[tuple[str, str], AnswerSpan] = {}

    def answer(self, question: str, passages: Sequence[str]) -> list[AnswerSpan]:
        new = [text for text in dict.fromkeys(passages) if (question, text) not in self.spans]
        self.spans |= {(question, text): span for text, span in zip(new, self.reader.answer(question, new))}
        return [self.spans[question, text] for text in passages]


def limit_paragraphs(squad: Squad, num_paragraphs: int) -> Squad:
    """Select the held-out articles, and random ones of the training set."""
    selected, articles = list(squad.splits["held"]), squad.splits["train"]
    count = sum(map(count_paragraphs, selected))
    further = []
    for article in random.Random(0).sample(articles, len(articles)):
        if count + count_paragraphs(article) <= num_paragraphs:
            further.append(article)
            count += count_paragraphs(article)
    return Squad({"held": selected, "train": further})


def count_paragraphs(article: list[QuestionExample]) -> int:
    """Count the paragraphs of an article."""
    return len({question.text for question in article})


def measure_times(memory: Memory, questions: list[QuestionExample], num_reranked: int) -> dict[str, float]:
    """Measure the median time of a question, in milliseconds."""
    clock, processor = [], []
    for question in questions:
        started = time.perf_counter(), time.process_time()
        memory.ask(question.question, rerank=num_reranked)
        clock.append(1000 * (time.perf_counter() - started[0]))
        processor.append(1000 * (time.process_time() - started[1]))
    return {"rerank": num_reranked, "p50 ms": round(median(clock)), "p50 CPU ms": round(median(processor))}


def main() -> None:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("squad", type=Path)
    parser.add_argument("--memory", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=800)
    parser.add_argument("--paragraphs", type=int, default=2000)
    parser.add_argument("--rerank", type=int, nargs="+", default=[5, 10, 20, 30])
    parser.add_argument("--weights", type=float, nargs="+", default=[0.3, 1.0, 100.0])
    parser.add_argument("--timed", type=int, default=60)
    args = parser.parse_args()
    squad = limit_paragraphs(squad_memory.read_squad(args.squad), args.paragraphs)
    questions = squad.sample("held", args.questions)
    with Memory(args.memory) as memory:
        squad_memory.fill_memory(memory, squad, squad.splits)
        print(json.dumps({"passages": memory.stats().passages, "questions": len(questions)}), flush=True)
        reader, memory.reader = memory.reader, CachedReader(memory.reader)
        for number, weight in [(0, 0.0), *((number, weight) for number in args.rerank for weight in args.weights)]:
            rerank.RELEVANCE_WEIGHT = weight
            figures = summarize_answers([judge_answer(memory, question, rerank=number) for question in questions])
            row = {name: value for name, value in figures.items() if not name.endswith("ms")}
            print(json.dumps({"rerank": number, "weight": weight} | row), flush=True)
        memory.reader = reader
        for number in (0, *args.rerank):
            print(json.dumps(measure_times(memory, questions[: args.timed], number)), flush=True)


if __name__ == "__main__":
    main()
