"""Measure search and answers of a memory in Chinese, beside bm25s over jieba.

    pip install bm25s jieba
    python benchmarks/chinese_questions.py ZH [--questions 1000]

ZH is a folder with cmrc2018/cmrc2018_dev.json. Nothing was tuned on these questions: the weights of
clauses are of CMRC's train split (fit_clauses.py).

``recall``: a memory has all paragraphs; a question is found at rank k if one of the first k
passages is part of its paragraph. bm25s ranks whole paragraphs by jieba's words, all of them, or
without punctuation and mnemic's stop words.

``answers``: a memory has half of the paragraphs, and gets --questions about these and as many about
the others, which it cannot answer. An answer is the best clause, whatever its confidence, or the
best sentence (as before, and with ``--reader none``). F1 is by characters. ``sentence`` is how
often the sentence of the answer contains a right one. ``curve`` has for each minimum confidence the
share of questions that get an answer, of answers whose sentence is right, of right ones that are
declined, and of unanswerable questions that are declined.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import NamedTuple

import bm25s
import jieba
from chinese_data import ChineseQuestion, compute_f1, fill_memory, has_answer, normalize_text, read_dev, split_questions

from mnemic import Memory
from mnemic.store.answer.confidence import MIN_CONFIDENCE
from mnemic.text.stop_words import STOP_WORDS

TOP_K = 5
CONFIDENCES = (0.1, 0.2, MIN_CONFIDENCE, 0.4, 0.6, 0.8)


class JudgedAnswer(NamedTuple):
    """The best answer to a question, whatever its confidence, with its metrics."""

    confidence: float
    length: int
    has_answer: bool
    exact: bool
    f1: float
    is_sentence_right: bool


def measure_bm25s(
    paragraphs: Sequence[str], questions: Sequence[ChineseQuestion], keep_word: Callable[[str], bool]
) -> list[int]:
    """Return the rank of each question's paragraph by bm25s over jieba; TOP_K: not found."""
    model = bm25s.BM25()
    model.index([list(filter(keep_word, jieba.lcut(text))) for text in paragraphs], show_progress=False)
    tokens = [list(filter(keep_word, jieba.lcut(question.question))) for question in questions]
    rows = model.retrieve(tokens, k=TOP_K, show_progress=False).documents.tolist()
    found = [[paragraphs[position] for position in row] for row in rows]
    return [
        row.index(question.paragraph) if question.paragraph in row else TOP_K for row, question in zip(found, questions)
    ]


def measure_memory(memory: Memory, questions: Sequence[ChineseQuestion]) -> list[int]:
    """Return the rank of the first passage of each question's paragraph; TOP_K: not found."""
    ranks = []
    for question in questions:
        paragraph = normalize_text(question.paragraph)
        is_found = [normalize_text(hit.text) in paragraph for hit in memory.search(question.question, TOP_K)]
        ranks.append(is_found.index(True) if True in is_found else TOP_K)
    return ranks


def is_content(word: str) -> bool:
    """Return whether a word is neither punctuation nor a stop word."""
    return bool(normalize_text(word)) and word not in STOP_WORDS


def print_recall(questions: Sequence[ChineseQuestion], memory: Memory, paragraphs: Sequence[str]) -> None:
    """Print recall of the memory and of bm25s."""
    started = time.perf_counter()
    ranks = {"mnemic": measure_memory(memory, questions)}
    milliseconds = 1000 * (time.perf_counter() - started) / len(questions)
    ranks["bm25s over jieba"] = measure_bm25s(paragraphs, questions, lambda word: bool(word.strip()))
    ranks["the same without stop words"] = measure_bm25s(paragraphs, questions, is_content)
    print(f"\n{len(questions)} questions, {len(paragraphs)} paragraphs, mnemic {milliseconds:.1f} ms per search")
    for name, values in ranks.items():
        recalls = (100 * mean(rank < limit for rank in values) for limit in (1, TOP_K))
        print(f"{name:28} recall@1 {next(recalls):5.1f}  recall@5 {next(recalls):5.1f}", flush=True)


def judge_answer(memory: Memory, question: ChineseQuestion) -> JudgedAnswer:
    """Ask a question and compare the best answer with the right ones."""
    answer = memory.ask(question.question, confidence=0.0)
    text, answers = answer.text, question.answers
    return JudgedAnswer(
        confidence=answer.score,
        length=len(text),
        has_answer=has_answer(text, answers),
        exact=any(normalize_text(text) == normalize_text(right) for right in answers),
        f1=compute_f1(text, answers),
        is_sentence_right=answer.has_answer and has_answer(answer.evidence[0].sentence, answers),
    )


def print_answers(name: str, answers: Sequence[JudgedAnswer]) -> None:
    """Print the metrics of answers."""
    row = {
        "characters": mean(answer.length for answer in answers),
        "contains": 100 * mean(answer.has_answer for answer in answers),
        "exact": 100 * mean(answer.exact for answer in answers),
        "F1": 100 * mean(answer.f1 for answer in answers),
        "sentence": 100 * mean(answer.is_sentence_right for answer in answers),
    }
    print(f"{name:10} {'  '.join(f'{key} {value:.1f}' for key, value in row.items())}", flush=True)


def print_curve(inside: Sequence[JudgedAnswer], outside: Sequence[JudgedAnswer]) -> None:
    """Print the shares of answered and declined questions by minimum confidence."""
    right = [answer for answer in inside if answer.is_sentence_right]
    for confidence in CONFIDENCES:
        answered = [answer for answer in inside if answer.confidence >= confidence]
        row = {
            "answered": mean(answer.confidence >= confidence for answer in inside),
            "of these right": mean([answer.is_sentence_right for answer in answered] or [0]),
            "right, declined": mean(answer.confidence < confidence for answer in right),
            "unanswerable, declined": mean(answer.confidence < confidence for answer in outside),
        }
        shares = "  ".join(f"{key} {100 * value:.1f}" for key, value in row.items())
        print(f"confidence {confidence:.2f}  {shares}")


def main() -> None:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--questions", type=int, default=1000)
    args = parser.parse_args()
    jieba.setLogLevel("ERROR")
    questions = read_dev(args.folder)
    paragraphs = list(dict.fromkeys(question.paragraph for question in questions))
    with TemporaryDirectory() as folder, Memory(Path(folder, "memory.db")) as memory:
        fill_memory(memory, Path(folder), paragraphs)
        print_recall(questions, memory, paragraphs)
    half, inside, outside = split_questions(questions, args.questions)
    with TemporaryDirectory() as folder, Memory(Path(folder, "memory.db")) as memory:
        fill_memory(memory, Path(folder), half)
        judged, unanswerable = ([judge_answer(memory, question) for question in part] for part in (inside, outside))
        print(f"\n{len(inside)} questions about {len(half)} paragraphs, {len(outside)} about others")
        print_answers("clause", judged)
        memory.reader = None
        print_answers("sentence", [judge_answer(memory, question) for question in inside])
    print_curve(judged, unanswerable)


if __name__ == "__main__":
    main()
