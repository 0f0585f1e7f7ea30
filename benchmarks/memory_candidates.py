"""Ask a memory of all SQuAD paragraphs thousands of questions, and write what it found and read.

    python benchmarks/memory_candidates.py ask DATA --memory squad.db --split hard
        --out hard-0.jsonl.gz [--questions 0] [--shard 0 1] [--read 30] [--device cpu]
    python benchmarks/memory_candidates.py report hard-*.jsonl.gz dev-*.jsonl.gz
    python benchmarks/memory_candidates.py plans held-*.jsonl.gz

DATA has ``squad`` and ``qa``; the memory is that of memory_answers.py, and is made if it is not
there. --split is ``dev``, ``held`` (articles of train that training did not see) or ``hard`` (of
these, as many questions without an answer as with one, ``reader_domains.py``). --shard K N asks
every N-th question from the K-th on, so that several processes can share the work.

A line has the answer by the default settings, and --read candidates (0: none), best first by
retrieval: standard scores of BM25 and cosine, their sum, what the reader says of each and how right
its span is. So other ways to rank, and other confidences, can be tried without reading again.

``report`` prints per split: how often the first passage, or one of the first five, is of the right
paragraph after reranking, exact match and F1 of the best answer, and the shares of questions with
and without an answer that get one at the default confidence, with Wilson intervals. ``plans``
prints the same figures as if other numbers of passages had been read, and of the default.
"""

import argparse
import gzip
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any

import squad_memory
from memory_answers import MIN_RIGHT_F1
from memory_device import open_memory
from reader_domains import read_evaluation_sets
from squad_memory import Squad, normalize_spaces

from mnemic import Memory
from mnemic.checkpoint.shipped import EMBEDDERS, READERS
from mnemic.data.text_tasks.examples import QuestionExample
from mnemic.evaluate.intervals import wilson_interval
from mnemic.evaluate.metrics import answer_f1, exact_match
from mnemic.store.answer.ask import DEFAULT_PASSAGES
from mnemic.store.answer.confidence import FITTED, MIN_CONFIDENCE, SpanFeatures
from mnemic.store.answer.fields import get_base_name
from mnemic.store.answer.rank import normalize_answer
from mnemic.store.answer.read import find_candidates, read_slots
from mnemic.store.answer.rerank import ReadingPlan, plan_reading, rerank_hop
from mnemic.store.retrieve.hybrid import Hop, choose_bm25_weight, retrieve_candidates
from mnemic.store.retrieve.spelling import correct_spelling

Line = dict[str, Any]
DIGITS = 4


def read_articles(args: argparse.Namespace) -> Squad:
    """Read SQuAD, or its first articles."""
    squad = squad_memory.read_squad(args.data / "squad")
    return Squad({split: articles[: args.articles or None] for split, articles in squad.splits.items()})


def read_questions(args: argparse.Namespace) -> list[QuestionExample]:
    """Read the questions of a split, drawn with a fixed seed, and select the shard's."""
    if args.split == "hard":
        questions = read_evaluation_sets("reader-12", [], str(args.data), 0)["hard"]
        questions = random.Random(0).sample(questions, min(args.questions or len(questions), len(questions)))
    else:
        squad = read_articles(args)
        questions = squad.sample(args.split, args.questions or sum(map(len, squad.splits[args.split])))
    shard, num_shards = args.shard
    return questions[shard::num_shards]


def score_text(text: str, question: QuestionExample) -> dict[str, float]:
    """Score an answer; to a question without one, everything is wrong."""
    if not question.answers:
        return {"exact": 0.0, "f1": 0.0}
    f1 = round(answer_f1(text, question.answers), DIGITS)
    return {"exact": float(exact_match(text, question.answers)), "f1": f1}


def describe_answer(memory: Memory, question: QuestionExample) -> Line:
    """Ask a question with the default settings, and judge the best answer."""
    answer = memory.ask(question.question)
    weights = {evidence.passage: evidence.weights[0] for evidence in answer.evidence}
    passages = sorted(weights, key=lambda text: -weights[text])
    best = answer.ranked[0] if answer.ranked else None
    return {
        "ranks": [rank for rank, text in enumerate(passages) if is_of_paragraph(text, question)],
        "confidence": round(best.score, DIGITS) if best else 0.0,
        "text": best.text if best else "",
        "quoted": best is not None and is_of_paragraph(best.evidence.passage, question),
        **score_text(best.text if best else "", question),
    }


def is_of_paragraph(passage: str, question: QuestionExample) -> bool:
    """Check whether a passage is a part of a question's paragraph."""
    return normalize_spaces(passage) in normalize_spaces(question.text)


def describe_candidates(memory: Memory, question: QuestionExample, num_read: int) -> list[Line]:
    """Read the best passages of a question by retrieval, and describe each text that was read."""
    query = correct_spelling(memory.store, question.question)
    found = retrieve_candidates(memory.store, memory.embedder, query)
    hop = found.fuse(choose_bm25_weight(memory.embedder, None))
    slots = memory.store.get_slots(hop.top_slots(num_read))
    documents = {slot.document: memory.store.get_document(slot.document) for slot in slots}
    names = {document.id: get_base_name(document.name) for document in documents.values() if document}
    assert memory.reader is not None
    read = read_slots(memory.reader, query, slots, [hop], names)
    lines = []
    for (answer, features), span in zip(find_candidates(query, read), read.spans):
        slot_id = answer.slot.id
        scales = {"bm25": found.bm25, "cosine": found.cosine}
        scores = {name: scale.standardize(slot_id) for name, scale in scales.items() if scale}
        numbers = scores | {"score": hop.scores[slot_id], "relevance": span.passage_relevance} | features._asdict()
        lines.append(
            {"slot": slot_id, "gold": is_of_paragraph(answer.slot.passage.text, question), "text": answer.text}
            | score_text(answer.text, question)
            | {name: round(value, DIGITS) for name, value in numbers.items()}
        )
    return lines


def ask(args: argparse.Namespace) -> None:
    """Fill the memory, ask the questions of a split, and write a line for each."""
    questions = read_questions(args) if args.split else []
    is_new = not args.memory.exists()
    with open_memory(args.memory, args.device, embedder=args.embedder, reader=args.reader) as memory:
        if is_new or not args.split:
            squad_memory.fill_memory(memory, read_articles(args))
        print(json.dumps({"passages": memory.stats().passages, "questions": len(questions)}), flush=True)
        if not questions:
            return
        args.out.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(args.out, "wt", encoding="utf-8", compresslevel=6) as file:
            for number, question in enumerate(questions):
                if number % 100 == 0:
                    print(f"{args.split}: {number} of {len(questions)}", flush=True)
                    file.flush()
                line = {
                    "split": args.split,
                    "question": question.question,
                    "title": question.title,
                    "there": bool(question.answers),
                    "answer": describe_answer(memory, question),
                    "candidates": describe_candidates(memory, question, args.read) if args.read else [],
                }
                file.write(json.dumps(line) + "\n")


def read_lines(paths: list[Path]) -> Iterator[Line]:
    """Read the lines of files, also of one that is not finished."""
    for path in paths:
        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                for line in file:
                    if line.endswith("\n"):
                        yield json.loads(line)
        except EOFError:
            print(f"{path} is not finished")


def share(flags: list[bool]) -> list[float]:
    """Return the share of a kind with its Wilson interval, in percent, and the number of all."""
    value = mean(flags) if flags else 0.0
    return [round(100 * number, 1) for number in (value, *wilson_interval(value, max(len(flags), 1)))] + [len(flags)]


def report(args: argparse.Namespace) -> None:
    """Print figures of each split."""
    by_split: dict[str, list[Line]] = defaultdict(list)
    for line in read_lines(args.files):
        by_split[line["split"]].append(line)
    for split, lines in by_split.items():
        there = [line["answer"] for line in lines if line["there"]]
        absent = [line["answer"] for line in lines if not line["there"]]
        answered = [answer for answer in there if answer["confidence"] >= MIN_CONFIDENCE]
        figures = {
            "recall@1": share([0 in answer["ranks"] for answer in there]),
            "recall@5": share([any(rank < 5 for rank in answer["ranks"]) for answer in there]),
            "quoted": share([answer["quoted"] for answer in there]),
            "exact": share([answer["exact"] == 1 for answer in there]),
            "f1": round(100 * mean([answer["f1"] for answer in there] or [0]), 1),
            "answered": share([answer["confidence"] >= MIN_CONFIDENCE for answer in there]),
            "right of these": share([answer["f1"] >= MIN_RIGHT_F1 for answer in answered]),
            "false answers": share([answer["confidence"] >= MIN_CONFIDENCE for answer in absent]),
        }
        print(json.dumps({"split": split} | figures))


def rank_by_plan(line: Line, plan: ReadingPlan, num_used: int = DEFAULT_PASSAGES) -> tuple[int, list[bool], list[Line]]:
    """Read and rank a line's candidates by a plan.

    Return how many passages are read, which of the first ones are right, and what is read of them.
    """
    by_slot: dict[int, list[Line]] = {}
    for candidate in line["candidates"]:
        by_slot.setdefault(candidate["slot"], []).append(candidate)
    relevance = {slot: max(candidate["relevance"] for candidate in rows) for slot, rows in by_slot.items()}
    num_read = 0
    for size in plan.sizes:
        num_read = min(num_read + size, len(by_slot))
        if max(relevance[slot] for slot in [*by_slot][:num_read]) >= plan.enough_relevance:
            break
    hop = Hop("", {slot: rows[0]["score"] for slot, rows in by_slot.items()}, {}, 0)
    best = rerank_hop(hop, {slot: relevance[slot] for slot in [*by_slot][:num_read]}).top_slots(num_used)
    rows = [candidate for slot in best if slot in [*by_slot][:num_read] for candidate in by_slot[slot]]
    return num_read, [by_slot[slot][0]["gold"] for slot in best], rows


def choose_best(rows: list[Line]) -> Line:
    """Choose the answer of the highest confidence among candidates, summed over equal texts."""
    top = max(row["score"] for row in rows)
    features = [SpanFeatures(**{name: row[name] for name in SpanFeatures._fields if name in row}) for row in rows]
    probabilities = FITTED.predict_probabilities(
        [values._replace(score_gap=row["score"] - top) for values, row in zip(features, rows)]
    )
    best: dict[str, Line] = {}
    for row, probability in sorted(zip(rows, probabilities), key=lambda pair: -pair[1]):
        text = normalize_answer(row["text"])
        first = best.get(text, row | {"confidence": 0.0})
        best[text] = first | {"confidence": first["confidence"] + (probability if text else 0.0)}
    return max(best.values(), key=lambda row: row["confidence"])


def compare_plans(args: argparse.Namespace) -> None:
    """Print figures of several numbers of passages to read, and of the default."""
    lines = list(read_lines(args.files))
    default = plan_reading(5, 10, rerank=None, timeout_s=None, num_hops=1)
    plans = {str(count): ReadingPlan((count,)) for count in args.read} | {"default": default}
    for split in dict.fromkeys(line["split"] for line in lines):
        for name, plan in plans.items():
            rows = [(line, *rank_by_plan(line, plan)) for line in lines if line["split"] == split]
            counts = [count for _, count, _, _ in rows]
            ranked = [(line["there"], gold, choose_best(best)) for line, _, gold, best in rows]
            golds = [gold for there, gold, _ in ranked if there]
            there = [best for is_there, _, best in ranked if is_there]
            absent = [best for is_there, _, best in ranked if not is_there]
            figures = {
                "recall@1": share([gold[0] for gold in golds])[0],
                "recall@5": share([any(gold) for gold in golds])[0],
                "exact": share([best["exact"] == 1 for best in there])[0],
                "f1": round(100 * mean(best["f1"] for best in there), 1),
                "answered": share([best["confidence"] >= MIN_CONFIDENCE for best in there])[0],
                "false answers": share([best["confidence"] >= MIN_CONFIDENCE for best in absent])[0],
                "read, mean": round(mean(counts), 1),
                "median": median(counts),
            }
            print(json.dumps({"split": split, "questions": len(rows), "read": name} | figures), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("ask")
    command.add_argument("data", type=Path)
    command.add_argument("--memory", type=Path, required=True)
    command.add_argument("--split", choices=["dev", "held", "hard"], help="without it, the memory is only made")
    command.add_argument("--out", type=Path, default=Path("candidates.jsonl.gz"))
    command.add_argument("--questions", type=int, default=0, help="0: all")
    command.add_argument("--shard", type=int, nargs=2, default=[0, 1], metavar=("K", "N"))
    command.add_argument("--articles", type=int, default=0, help="of each split in the memory; 0: all")
    command.add_argument("--read", type=int, default=30, help="candidates that are read; 0: none")
    command.add_argument("--device", default="cpu")
    command.add_argument("--embedder", default=EMBEDDERS[0])
    command.add_argument("--reader", default=READERS[0])
    command.set_defaults(action=ask)
    command = commands.add_parser("report")
    command.add_argument("files", type=Path, nargs="+")
    command.set_defaults(action=report)
    command = commands.add_parser("plans")
    command.add_argument("files", type=Path, nargs="+")
    command.add_argument("--read", type=int, nargs="+", default=[5, 10, 15, 20, 30])
    command.set_defaults(action=compare_plans)
    args = parser.parse_args()
    args.action(args)


if __name__ == "__main__":
    main()
