"""Masked words of long documents: what memory is worth, and where in the document.

    python benchmarks/long_words.py runs/words --folder HELD --device cuda
    python benchmarks/long_words.py runs/words --beside runs/windows --segments 64 --device cuda

Mean loss in nats of the masked words of each held-out document, from its beginning, by segment:
``with memory``; ``emptied``, the same weights with the memory emptied before every segment; and
``beside``, a run that was trained without a lasting memory (``model.carry.lasts=false``). All read
the same words with the same masks; the first segment, before which nothing was read, counts only in
its own row. ``difference`` is the mean over documents of emptied − with memory, with its standard
error.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mnemic.checkpoint.folder import load
from mnemic.data import DATASETS
from mnemic.data.long_context.background import number, read_novels
from mnemic.data.long_context.batches import Asked, Batch, Document, LongSet, hash_of
from mnemic.data.long_context.hide import Piece, cut
from mnemic.objectives.bert_mass import BertMassLoss
from mnemic.recipe import build

NONE = np.zeros(0, dtype=np.int64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run of keeps-words or bert-mass on documents")
    parser.add_argument("--beside", type=Path, help="a run without a lasting memory")
    parser.add_argument("--folder", help="held-out documents, if not those of the recipe's test")
    parser.add_argument(
        "--segments", type=int, default=32, help="of a document, from its beginning"
    )
    parser.add_argument("--documents", type=int, default=0, help="only so many; 0: all")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    checkpoint = load(given.run)
    source: Any = build(DATASETS, checkpoint.recipe["data"])
    texts = source.asked("test", checkpoint.tokenizer).to(given.device)
    if given.folder:
        every = [own for part in read_novels(given.folder).values() for own in part]
        texts = replace(texts, background=number(every, checkpoint.tokenizer))
    networks = {"with memory": (checkpoint.network, True), "emptied": (checkpoint.network, False)}
    if given.beside:
        networks["beside"] = (load(given.beside).network, False)
    found: dict[str, list[Tensor]] = {name: [] for name in networks}
    for batch in batches(texts, given):
        for name, (network, lasts) in networks.items():
            network.to(given.device).eval().lasts = lasts
            found[name].append(losses(network, batch))
        print(f"{sum(map(len, found['emptied']))} documents", file=sys.stderr, flush=True)
    print(json.dumps(told({n: padded(own, given.segments) for n, own in found.items()}), indent=1))


def batches(texts: LongSet, given: argparse.Namespace) -> Iterator[Batch]:
    """Every document of more than one segment, the first ``--segments`` of it, some at a time."""
    documents = []
    for novel in range(len(texts.background)):
        pieces = (Piece(own) for own in texts.background.novel(novel))
        own = [part for part, _ in zip(cut(pieces, texts.room), range(given.segments))]
        if len(own) > 1:
            documents.append((novel, own))
    documents = documents[: given.documents or None]
    for first in range(0, len(documents), given.batch):
        part = documents[first : first + given.batch]
        asked = [Document(iter(()), Asked((), NONE, NONE, (), 0)) for _ in part]
        keys = [hash_of("long words", number) for number, _ in part]
        yield texts.assembled(asked, [own for _, own in part], keys)


@torch.no_grad()
def losses(network: Any, batch: Batch) -> Tensor:
    """Sum of the losses and number of the masked words of each segment: b s 2."""
    inputs, words = BertMassLoss(mlm=1.0).hidden(batch)
    scores = network(inputs).words.float()
    each = torch.nn.functional.cross_entropy(scores, words, reduction="none")  # p
    hidden = inputs.hidden
    assert hidden is not None
    table = torch.zeros(*hidden.shape, 2, dtype=torch.double, device=each.device)
    table[hidden] = torch.stack([each.double(), torch.ones_like(each).double()], -1)
    return table.sum(2).cpu()


def padded(parts: Sequence[Tensor], most: int) -> Tensor:
    return torch.cat([torch.cat([p, p.new_zeros(len(p), most - p.shape[1], 2)], 1) for p in parts])


def told(found: dict[str, Tensor]) -> dict[str, Any]:
    """Means over all words, over the words of each segment, and over documents."""
    documents = {name: own[:, 1:].sum(1) for name, own in found.items()}  # b 2
    after = {name: own.sum(0) for name, own in documents.items()}
    gain = documents["emptied"] - documents["with memory"]
    gain = gain[:, 0] / documents["emptied"][:, 1].clamp(min=1)
    return {
        "documents": len(gain),
        "loss": {name: round(float(own[0] / own[1]), 4) for name, own in after.items()},
        "difference": [round(float(n), 4) for n in (gain.mean(), gain.std() / len(gain) ** 0.5)],
        "by segment": {
            name: [round(float(a / max(b, 1)), 4) for a, b in own.sum(0).tolist()]
            for name, own in found.items()
        },
        "words by segment": [int(count) for count in found["emptied"].sum(0)[:, 1].tolist()],
    }


if __name__ == "__main__":
    main()
