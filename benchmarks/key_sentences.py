"""Count how often the sentence with the answer is among an article's key sentences.

    python benchmarks/key_sentences.py SQUAD

SQUAD is a folder with dev-v1.1.json. Of each article as many sentences are selected as there are
slots: those with the largest TextRank, the first sentences of its paragraphs (then the second ones,
and so on), the same with TextRank to choose among equals, and random ones, the mean of ten draws.
"""

import argparse
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from mnemic.data.text_tasks.files import find_file
from mnemic.text import split_sentences
from mnemic.text.text_rank import rank_sentences
from mnemic.text.tokenizers.words import list_words

SLOTS = (16, 32, 64, 128, 256)
NUM_DRAWS = 10


class Article(NamedTuple):
    """The sentences of an article in order, and the answers of its questions."""

    sentences: list[str]
    places: list[int]  # of each sentence in its paragraph, from 0
    answers: list[list[int]]  # per question, the sentences where its answers begin


def read_article(article: dict[str, Any]) -> Article:
    """Split an article of SQuAD into sentences."""
    result = Article([], [], [])
    for paragraph in article["paragraphs"]:
        text, first = paragraph["context"], len(result.sentences)
        spans = split_sentences(text)
        result.sentences.extend(text[start:end] for start, end in spans)
        result.places.extend(range(len(spans)))
        for question in paragraph["qas"]:
            offsets = {answer["answer_start"] for answer in question["answers"]}
            numbers = [n for n, (start, end) in enumerate(spans) if any(start <= at < end for at in offsets)]
            result.answers.append([first + number for number in numbers])
    return result


def count_kept(article: Article, order: Sequence[int]) -> list[int]:
    """Count the questions with an answer in the first sentences of an order, per size."""
    ranks = {number: rank for rank, number in enumerate(order)}
    best = [min((ranks[number] for number in answers), default=len(ranks)) for answers in article.answers]
    return [sum(rank < slots for rank in best) for slots in SLOTS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("squad", type=Path)
    path = find_file(str(parser.parse_args().squad), "dev")
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    articles = [read_article(article) for article in json.loads(raw)["data"]]
    totals = {name: [0.0] * len(SLOTS) for name in ("TextRank", "first", "first, then TextRank", "random")}
    for number, article in enumerate(articles):
        scores = rank_sentences([list_words(sentence) for sentence in article.sentences])
        numbers = range(len(article.sentences))
        orders = {
            "TextRank": [sorted(numbers, key=lambda n: -scores[n])],
            "first": [sorted(numbers, key=lambda n: article.places[n])],
            "first, then TextRank": [sorted(numbers, key=lambda n: (article.places[n], -scores[n]))],
            "random": [Random(f"{number} {draw}").sample(numbers, len(numbers)) for draw in range(NUM_DRAWS)],
        }
        for name, draws in orders.items():
            for order in draws:
                kept = count_kept(article, order)
                totals[name] = [total + count / len(draws) for total, count in zip(totals[name], kept)]
    num_questions = sum(len(article.answers) for article in articles)
    shares = {name: [round(100 * total / num_questions, 1) for total in row] for name, row in totals.items()}
    print(json.dumps({"questions": num_questions, "slots": SLOTS, "kept": shares}, indent=1))


if __name__ == "__main__":
    main()
