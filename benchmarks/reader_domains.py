"""Measure readers domain by domain, on held-out articles and on files for testing.

    python benchmarks/reader_domains.py runs/reader-12 reader --data DIR [--recipe reader-12]

DIR has ``squad`` and ``qa``; the recipe's ``data.sources`` say what is held out. Each reader
answers the same questions: exact match and F1 of those with an answer (which is always predicted),
and the area under the ROC curve of "no answer" where a domain has both kinds. ``hard`` are the
held-out articles of ``squad2_unanswerable_part``, with as many answerable questions of the same
paragraphs; "best F1" is that of SQuAD 2.0 at the best threshold. --predictions writes one line a
question: the set, its id, whether it has an answer, the probability of that, exact match, F1, the
domain, the answer, and what the reader says of it (logs of probabilities, and its tokens).
"""

import argparse
import gzip
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from mnemic.checkpoint.folder import Checkpoint, load_checkpoint
from mnemic.data.text_tasks.batches import TextDataset
from mnemic.data.text_tasks.encode_windows import encode_questions
from mnemic.data.text_tasks.examples import QuestionExample
from mnemic.data.text_tasks.question_sources import select_hard_pairs
from mnemic.data.text_tasks.questions import QuestionFiles
from mnemic.encode import prepare_for_inference
from mnemic.evaluate.answer_thresholds import (
    SpanPrediction,
    apply_threshold,
    average_answers,
    compare_spans,
    find_best_threshold,
    quote_span,
    summarize_domains,
)
from mnemic.evaluate.curves import roc_auc
from mnemic.predict.windows import predict_spans
from mnemic.recipe import load_recipe
from mnemic.respond.merge_windows import TokenSpan
from mnemic.text import Tokenizer, WindowOptions
from mnemic.train.distributed import init_distributed

HARD_DOMAIN = "wikipedia"  # of squad2_unanswerable_part and of SQuAD's training file
SPLITS = ("validation", "test")


def read_evaluation_sets(recipe: str, sets: Sequence[str], folder: str, limit: int) -> dict[str, list[QuestionExample]]:
    """Read the held-out questions, those of test files, and the hard ones."""
    spec = load_recipe(recipe, sets)["data"]
    keys = {key: spec[key] for key in ("sources", "normalize", "validation") if key in spec}
    files = QuestionFiles(**keys, folder=folder)
    examples = {split: files.read_split(split) for split in SPLITS}  # type: ignore[arg-type]
    hard = select_hard_pairs([example for example in examples["validation"] if example.domain == HARD_DOMAIN])
    return {name: select_evenly(rows, limit) for name, rows in (examples | {"hard": hard}).items()}


def select_evenly(rows: list[QuestionExample], limit: int) -> list[QuestionExample]:
    """Select at most ``limit`` rows, evenly spaced; 0: all."""
    return rows[:: max(-(-len(rows) // limit), 1)] if limit else rows


def encode_set(examples: list[QuestionExample], tokenizer: Tokenizer, max_length: int) -> TextDataset:
    """Encode questions with their texts, in windows of ``max_length`` tokens."""
    return encode_questions(examples, tokenizer, WindowOptions(max_length, max_length // 3, "windows"))


def measure_reader(
    checkpoint: Checkpoint, sets: dict[str, TextDataset], device: torch.device, predictions: Path | None = None
) -> dict[str, Any]:
    """Measure one reader on all sets, encoded with its tokenizer."""
    network = prepare_for_inference(checkpoint.network.to(device), "float32" if device.type == "cuda" else "auto")
    torch.set_float32_matmul_precision("high")
    report: dict[str, Any] = {}
    lines: list[str] = []
    for name, encoded in sets.items():
        started = time.monotonic()
        dataset, examples = encoded.to(device), encoded.examples
        spans = predict_spans(network, dataset)
        cases = compare_spans(dataset, spans)
        answers = [quote_span(dataset, index, span) for index, span in enumerate(spans)]
        values = measure_hard(cases) if name == "hard" else summarize_domains(cases)
        report[name] = {
            "questions": len(examples),
            "by domain": dict(Counter(example.domain for example in examples)),
            "figures": {key: round(100 * value, 2) for key, value in values.items()},
            "seconds": round(time.monotonic() - started, 1),
        }
        lines += [
            json.dumps([name, row.question_id, *case[:4], row.domain, answer, describe_span(span)])
            for row, case, answer, span in zip(examples, cases, answers, spans)
        ]
    if predictions is not None:
        predictions.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(predictions, "wt", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return report


def describe_span(span: TokenSpan) -> dict[str, float]:
    """Describe what a reader says of a span, to fit its calibration later."""
    return {
        "span": round(span.log_probability, 4),
        "similar": round(span.similar_log_probability, 4),
        "relevance": round(span.relevance, 4),
        "tokens": span.last_token - span.first_token + 1,
    }


def measure_hard(cases: Sequence[SpanPrediction]) -> dict[str, float]:
    """Measure how well answerable and unanswerable questions are told apart."""
    return {
        "AUROC": roc_auc([case.probability for case in cases], [case.has_answer for case in cases]),
        "best F1": apply_threshold(cases, find_best_threshold(cases)).f1,
        "f1 of answerable": average_answers([case for case in cases if case.has_answer])["f1"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", help="shipped networks or folders of runs")
    parser.add_argument("--data", required=True)
    parser.add_argument("--recipe", default="reader-12", help="whose data.sources are measured")
    parser.add_argument("--set", action="append", default=[], dest="sets", metavar="KEY=VALUE")
    parser.add_argument("--limit", type=int, default=0, help="questions of each set; 0: all")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--predictions", type=Path, help="folder for NAME.jsonl.gz")
    args = parser.parse_args()
    device = init_distributed(args.device)
    sets = read_evaluation_sets(args.recipe, args.sets, args.data, args.limit)
    report = {}
    for model in args.models:
        path = None if args.predictions is None else args.predictions / f"{Path(model).name}.jsonl.gz"
        checkpoint = load_checkpoint(model)
        length = checkpoint.sizes.get("max_length", 384)
        encoded = {name: encode_set(rows, checkpoint.tokenizer, length) for name, rows in sets.items() if rows}
        report[model] = measure_reader(checkpoint, encoded, device, path)
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
