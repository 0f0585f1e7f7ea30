"""Long texts in classes: memory, windows that are averaged, and truncation, compared text by text.

    python benchmarks/long_reviews.py memory=runs/memory windows=runs/averaged --device cuda

Each run is one of ``bert-mass-classes`` or ``bert-classes``, named as the table shall name it. They
are tested on the texts of the test file that have more than ``--over`` tokens, all on the same.
Beside each pair of runs: on how many texts only the first and only the second is right, and how
likely a difference as large or larger is by chance (the sign test, McNemar's in its exact form).
"""

import argparse
import json
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mnemic.checkpoint.folder import load
from mnemic.data import DATASETS
from mnemic.data.text_tasks.dataset import labelled
from mnemic.data.text_tasks.splits import told
from mnemic.predict.windows import class_scores
from mnemic.recipe import build


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="NAME=RUN")
    parser.add_argument("--over", type=int, default=512, help="tokens, without special ones")
    parser.add_argument("--folder", help="the texts, if not those of the recipe")
    parser.add_argument("--texts", type=int, default=0, help="only so many; 0: all")
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    right = {}
    for named in given.runs:
        name, _, run = named.partition("=")
        right[name] = judged(Path(run), given)
    found: dict[str, Any] = {"texts": len(next(iter(right.values()))), "over": given.over}
    found["accuracy"] = {
        name: round(100 * float(own.double().mean()), 2) for name, own in right.items()
    }
    found["pairs"] = [compared(a, b, right[a], right[b]) for a, b in combinations(right, 2)]
    print(json.dumps(found, indent=1))


def judged(run: Path, given: argparse.Namespace) -> Tensor:
    """Whether a run is right about each long text, in the order of the file."""
    checkpoint = load(run)
    spec = dict(checkpoint.recipe["data"]) | ({"folder": given.folder} if given.folder else {})
    files: Any = build(DATASETS, spec)
    manner = labelled(files, paired=False)
    words = checkpoint.tokenizer
    examples = told(files, manner, "test")
    lengths = map(len, words.encode_all([own.text for own in examples]))
    long = [own for own, length in zip(examples, lengths) if length > given.over]
    texts = manner.number(long[: given.texts or None], words, checkpoint.labels)
    network = checkpoint.network.to(given.device)
    said = class_scores(network, texts.to(given.device)).argmax(1)
    return said == texts.targets.cpu()


def compared(first: str, second: str, one: Tensor, other: Tensor) -> dict[str, Any]:
    """How often only one of two is right, and what chance would say to that."""
    assert len(one) == len(other), "the runs have other tokenizers, so other texts are long"
    alone, beside = int((one & ~other).sum()), int((other & ~one).sum())
    return {f"only {first}": alone, f"only {second}": beside, "p": sign_test(alone, beside)}


def sign_test(wins: int, losses: int) -> float:
    """The chance of a split as uneven as this one or more, two-sided."""
    count = wins + losses
    tail = sum(comb(count, k) for k in range(min(wins, losses) + 1))
    return float(f"{min(2 * tail / 2**count, 1.0):.3g}")


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main()
