"""Compare classifiers of long texts: memory, averaged windows, and truncation.

    python benchmarks/long_classification.py memory=runs/memory windows=runs/averaged --device cuda

Each run is one of ``bert-mass-classes`` or ``bert-classes``, with its name in the report. All are
tested on the same texts: those of the test file with more than ``--over`` tokens. For each pair of
runs the report has the number of texts on which only the first and only the second is right, and
the probability of a difference at least as large by chance (the sign test, McNemar's exact test).
"""

import argparse
import json
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.data import DATASETS
from mnemic.predict.windows import compute_class_logits
from mnemic.recipe import build


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="NAME=RUN")
    parser.add_argument("--over", type=int, default=512, help="tokens, without special ones")
    parser.add_argument("--folder", help="the texts, if not those of the recipe")
    parser.add_argument("--texts", type=int, default=0, help="only so many; 0: all")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    correct_by_run = {}
    for argument in args.runs:
        name, _, run = argument.partition("=")
        correct_by_run[name] = find_correct(Path(run), args)
    report: dict[str, Any] = {"texts": len(next(iter(correct_by_run.values()))), "over": args.over}
    report["accuracy"] = {
        name: round(100 * float(is_correct.double().mean()), 2) for name, is_correct in correct_by_run.items()
    }
    report["pairs"] = [
        compare_runs(first, second, correct_by_run[first], correct_by_run[second])
        for first, second in combinations(correct_by_run, 2)
    ]
    print(json.dumps(report, indent=1))


def find_correct(run: Path, args: argparse.Namespace) -> Tensor:
    """Report whether a run classifies each long text correctly, in file order."""
    checkpoint = load_checkpoint(run)
    spec = dict(checkpoint.recipe["data"]) | ({"folder": args.folder} if args.folder else {})
    files: Any = build(DATASETS, spec)
    tokenizer = checkpoint.tokenizer
    examples = files.read_split("test")
    lengths = map(len, tokenizer.encode_batch([example.text for example in examples]))
    long_examples = [example for example, length in zip(examples, lengths) if length > args.over]
    texts = files.encode(long_examples[: args.texts or None], tokenizer, checkpoint.labels)
    network = checkpoint.network.to(args.device)
    predictions = compute_class_logits(network, texts.to(args.device)).argmax(1)
    return predictions == texts.targets.cpu()


def compare_runs(first_name: str, second_name: str, first: Tensor, second: Tensor) -> dict[str, Any]:
    """Count texts on which only one of two runs is right, with a p-value."""
    assert len(first) == len(second), "the runs have other tokenizers, so other texts are long"
    only_first, only_second = int((first & ~second).sum()), int((second & ~first).sum())
    return {
        f"only {first_name}": only_first,
        f"only {second_name}": only_second,
        "p": compute_sign_test(only_first, only_second),
    }


def compute_sign_test(wins: int, losses: int) -> float:
    """Compute the two-sided p-value of the sign test."""
    count = wins + losses
    tail = sum(comb(count, k) for k in range(min(wins, losses) + 1))
    return float(f"{min(2 * tail / 2**count, 1.0):.3g}")


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main()
