"""Measure which sentences of an article a memory of N slots recalls for later questions.

    python benchmarks/long_qa.py runs/articles --slots 16 32 64 128 --device cuda
    python benchmarks/long_qa.py runs/articles --reader runs/reader --device cuda

Every article of the test file is read once; then all its questions are asked of the memory.
``kept``: percent of questions whose answer's sentence is still stored; ``found``: the slot with the
most attention is that sentence; ``found in 5``: one of the top five is. For comparison there are
memories of equal size that store random sentences, and the first sentences of the paragraphs, then
their second ones. With ``--reader``, a run that answers with spans reads the ``--told`` sentences
with the most attention, in their order (F1 and exact match in percent), and, for comparison, the
right paragraph.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import torch

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.data import DATASETS
from mnemic.data.long_context.articles import Article, paragraph_tokens_of
from mnemic.data.long_context.batches import LongDataset, LongDocument, LongExample
from mnemic.data.long_context.hide import SentenceTokens, cut_segments
from mnemic.evaluate.metrics import answer_f1, exact_match
from mnemic.models.segment_model import EncodedSegments
from mnemic.predict.extract_answer import extract_answers
from mnemic.recipe import build

MEMORIES = ("network", "random", "first")
NO_TOKENS = np.zeros(0, dtype=np.int64)


class RecallResult(NamedTuple):
    """The recall of an article's sentences, per question."""

    is_stored: list[bool]
    ranked_sentences: list[list[int]]  # by attention, best first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run of bert-mass-articles")
    parser.add_argument("--slots", type=int, nargs="+", default=[16, 32, 64, 128, 256])
    parser.add_argument("--reader", type=Path, help="a run that answers with spans")
    parser.add_argument("--told", type=int, default=4, help="sentences that the reader is given")
    parser.add_argument("--folder", help="SQuAD's files, if not those of the recipe")
    parser.add_argument("--articles", type=int, default=0, help="only the first ones; 0: all")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    checkpoint = load_checkpoint(args.run)
    spec = dict(checkpoint.recipe["data"]) | ({"folder": args.folder} if args.folder else {})
    source: Any = build(DATASETS, spec)
    articles = source.read_articles("test")[: args.articles or None]
    network = checkpoint.network.to(args.device).eval()
    dataset = replace(source.dataset("test", checkpoint.tokenizer), batch_device=torch.device(args.device))
    started = time.perf_counter()
    paragraphs = source.paragraphs
    encoded_articles = [encode_article(network, dataset, article, paragraphs=paragraphs) for article in articles]
    print(f"{len(encoded_articles)} articles in {time.perf_counter() - started:.1f} s", file=sys.stderr)
    reader_metrics = ReaderMetrics(args, articles) if args.reader else None
    rows = [
        measure_memory(network, articles, encoded_articles, kind, num_slots, reader_metrics)
        for num_slots in args.slots
        for kind in MEMORIES
    ]
    report: dict[str, Any] = {"run": str(args.run), "articles": len(articles), "rows": rows}
    if reader_metrics is not None:
        report["right paragraph"] = reader_metrics(
            [(entry.question.text,) for article in articles for entry in article.questions]
        )
    print(json.dumps(report, indent=1))


class EncodedArticle(NamedTuple):
    """The encoded sentences and questions of an article, before writing to the memory."""

    encoded: EncodedSegments
    sentence_of_unit: list[int]  # in the order of writing
    question_inputs: Any  # a SegmentBatch of the questions


@torch.no_grad()
def encode_article(network: Any, dataset: LongDataset, article: Article, *, paragraphs: bool = False) -> EncodedArticle:
    """Encode all sentences of an article at once, and tokenize its questions."""
    tokenizer = dataset.tokenizer
    ids = tokenizer.encode_batch(list(article.sentences))
    paragraph_tokens = (
        paragraph_tokens_of(article.paragraphs, [len(sentence_ids) for sentence_ids in ids])
        if paragraphs
        else [0] * len(ids)
    )
    sentences = [
        SentenceTokens(np.array(sentence_ids, dtype=np.int32), position, paragraph_tokens[position])
        for position, sentence_ids in enumerate(ids)
    ]
    segments = list(cut_segments(sentences, dataset.max_text_tokens))
    document = LongDocument(iter(()), LongExample((), NO_TOKENS, NO_TOKENS, (), 0))
    inputs = dataset.assemble_batch([document], [segments]).inputs
    questions = tokenizer.encode_batch([entry.question.question for entry in article.questions])
    question_documents = [
        LongDocument(iter(()), LongExample((), np.array(question, dtype=np.int64), NO_TOKENS, (), 0))
        for question in questions
    ]
    question_inputs = dataset.assemble_batch(question_documents, [[] for _ in question_documents]).inputs
    sentence_of_unit = [sentence.fact for segment in segments for sentence in segment]
    return EncodedArticle(network.encode_segments(inputs), sentence_of_unit, question_inputs)


@torch.no_grad()
def ask_memory(
    network: Any, encoded_article: EncodedArticle, article: Article, kind: str, article_number: int
) -> RecallResult:
    """Write an article to a memory of one kind, and ask it all questions."""
    segments = encoded_article.encoded
    if kind != "network":
        chosen_sentences = set(choose_sentences(kind, article, network.memory.num_slots, article_number))
        writable = torch.zeros_like(segments.mask)
        is_chosen = torch.tensor(
            [sentence in chosen_sentences for sentence in encoded_article.sentence_of_unit], device=writable.device
        )
        writable[segments.mask] = is_chosen
        segments = segments._replace(writable=writable)
    state, _, _ = network.write_segments(network.empty_memory(1, segments.items[:, 0]), segments)
    num_questions = len(article.questions)
    expanded_state = type(state)(*(tensor.expand(num_questions, *tensor.shape[1:]) for tensor in state))
    _, reading, _ = network.read_question(expanded_state, encoded_article.question_inputs)
    weights = reading.weights.mean((1, 2, 3))  # q s
    slot_sentences = sentence_of_slots(state, encoded_article.sentence_of_unit)
    top_k = min(64, len(slot_sentences))
    top_slots = weights.topk(top_k, dim=1).indices.tolist()
    ranked_sentences = [
        list(dict.fromkeys(slot_sentences[slot] for slot in slots if slot_sentences[slot] >= 0)) for slots in top_slots
    ]
    stored_sentences = set(slot_sentences)
    return RecallResult([bool(question.facts & stored_sentences) for question in article.questions], ranked_sentences)


def sentence_of_slots(state: Any, sentence_of_unit: Sequence[int]) -> list[int]:
    """Return the sentence in each slot; -1 = none."""
    sources, _ = state.origins  # 1 s 1
    return [sentence_of_unit[number] if number >= 0 else -1 for number in sources[0, :, 0].tolist()]


def choose_sentences(kind: str, article: Article, num_slots: int, article_number: int) -> list[int]:
    """Choose the sentences that a memory without a controller stores."""
    sentences = range(len(article.sentences))
    if kind == "random":
        return Random(f"{article_number}/{num_slots}").sample(sentences, min(num_slots, len(sentences)))
    paragraph_start = {sentence: article.paragraphs.index(article.paragraphs[sentence]) for sentence in sentences}
    return sorted(sentences, key=lambda sentence: (sentence - paragraph_start[sentence], sentence))[:num_slots]


def measure_memory(
    network: Any,
    articles: Sequence[Article],
    encoded_articles: Sequence[EncodedArticle],
    kind: str,
    num_slots: int,
    reader_metrics: "ReaderMetrics | None",
) -> dict[str, Any]:
    """Measure all metrics of one kind and size of memory."""
    network.memory.num_slots = num_slots
    results = [
        ask_memory(network, encoded_article, article, kind, number)
        for number, (encoded_article, article) in enumerate(zip(encoded_articles, articles))
    ]
    questions = [question for article in articles for question in article.questions]
    ranked_sentences = [ranked for result in results for ranked in result.ranked_sentences]
    row: dict[str, Any] = {"memory": kind, "slots": num_slots, "questions": len(questions)}
    row["kept"] = compute_percent([flag for result in results for flag in result.is_stored])
    row["found"] = compute_percent(
        [bool(question.facts & set(ranked[:1])) for question, ranked in zip(questions, ranked_sentences)]
    )
    row["found in 5"] = compute_percent(
        [bool(question.facts & set(ranked[:5])) for question, ranked in zip(questions, ranked_sentences)]
    )
    if reader_metrics is not None:
        texts = [article.sentences for article in articles for _ in article.questions]
        row |= reader_metrics(
            [
                tuple(text[sentence] for sentence in sorted(ranked[: reader_metrics.num_sentences]))
                for text, ranked in zip(texts, ranked_sentences)
            ]
        )
    print(row, file=sys.stderr, flush=True)
    return row


class ReaderMetrics:
    """Computes F1 and exact match in percent of a reader's answers from given sentences.

    Answers are cached, since memories of one article have many sentences in common.
    """

    def __init__(self, args: argparse.Namespace, articles: Sequence[Article]) -> None:
        self.reader, self.num_sentences = load_checkpoint(args.reader), args.told
        self.reader.network.to(args.device)
        self.questions = [entry.question for article in articles for entry in article.questions]
        self.answers: dict[tuple[str, tuple[str, ...]], str] = {}

    def __call__(self, sentences_per_question: Sequence[tuple[str, ...]]) -> dict[str, float]:
        pairs = [(question.question, sentences) for question, sentences in zip(self.questions, sentences_per_question)]
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self.answers]
        for pair, (answer, _) in zip(new, extract_answers(self.reader, new)):
            self.answers[pair] = answer
        answered = [(self.answers[pair], question.answers) for pair, question in zip(pairs, self.questions)]
        metrics = {"f1": answer_f1, "exact": exact_match}
        return {
            name: round(100 * sum(metric(*case) for case in answered) / max(len(answered), 1), 2)
            for name, metric in metrics.items()
        }


def compute_percent(flags: Sequence[bool]) -> float:
    """Compute the percentage of true flags."""
    return round(100 * sum(flags) / max(len(flags), 1), 2)


if __name__ == "__main__":
    main()
