"""Measure the loss of masked words in long documents, with and without memory.

    python benchmarks/long_masked_lm.py runs/words --folder HELD --device cuda
    python benchmarks/long_masked_lm.py runs/words --beside runs/windows --segments 64 --device cuda
    python benchmarks/long_masked_lm.py runs/words --rivals runs/transformer-xl-documents

The report has the mean loss in nats of the masked words of held-out documents, from their
beginning, by segment: ``with memory``; ``emptied``, the same weights with an empty memory before
every segment; and ``beside``, a run trained without carrying its memory
(``model.segments.carry_memory=false``). ``--rivals`` are other networks with the memory that they
have, such as a cache of states, by the names of their folders, and once more without it. All read
the same words with the same masks; the first segment, which has no memory yet, counts only in its
own row. ``difference`` is the mean over documents of emptied − with memory, and its standard error.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.data import DATASETS
from mnemic.data.long_context.background import encode_novels, read_novels
from mnemic.data.long_context.batches import LongBatch, LongDataset, LongDocument, LongExample
from mnemic.data.long_context.hide import SentenceTokens, cut_segments
from mnemic.objectives.bert_mass import BertMassLoss
from mnemic.recipe import build

NO_TOKENS = np.zeros(0, dtype=np.int64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run of bert-mass-words, or of bert-mass on documents")
    parser.add_argument("--beside", type=Path, help="a run that does not carry its memory")
    parser.add_argument("--rivals", type=Path, nargs="+", default=[], help="runs with another kind of memory")
    parser.add_argument("--folder", help="held-out documents, if not those of the recipe's test")
    parser.add_argument("--segments", type=int, default=32, help="of a document, from its beginning")
    parser.add_argument("--documents", type=int, default=0, help="only so many; 0: all")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    checkpoint = load_checkpoint(args.run)
    source: Any = build(DATASETS, checkpoint.recipe["data"])
    dataset = source.dataset("test", checkpoint.tokenizer).to(args.device)
    if args.folder:
        splits = read_novels(args.folder).values()
        novels = [novel for split_novels in splits for novel in split_novels]
        dataset = replace(dataset, background=encode_novels(novels, checkpoint.tokenizer))
    networks = {"with memory": (checkpoint.network, True), "emptied": (checkpoint.network, False)}
    if args.beside:
        networks["beside"] = (load_checkpoint(args.beside).network, False)
    for run in args.rivals:
        rival = load_checkpoint(run)
        if rival.tokenizer != checkpoint.tokenizer:
            parser.error(f"{run} has another vocabulary than {args.run}: train both on the same documents")
        networks |= {run.name: (rival.network, True), f"{run.name}, emptied": (rival.network, False)}
    losses: dict[str, list[Tensor]] = {name: [] for name in networks}
    for batch in make_batches(dataset, args):
        for name, (network, carry_memory) in networks.items():
            network.to(args.device).eval().carry_memory = carry_memory
            losses[name].append(compute_losses(network, batch))
        print(f"{sum(map(len, losses['emptied']))} documents", file=sys.stderr, flush=True)
    padded = {name: pad_segments(batch_losses, args.segments) for name, batch_losses in losses.items()}
    print(json.dumps(summarize_losses(padded), indent=1))


def make_batches(dataset: LongDataset, args: argparse.Namespace) -> Iterator[LongBatch]:
    """Yield batches of the first ``--segments`` segments of all longer documents."""
    documents = []
    for novel in range(len(dataset.background)):
        sentences = (SentenceTokens(ids) for ids in dataset.background.iterate_novel(novel))
        all_segments = cut_segments(sentences, dataset.max_text_tokens)
        segments = [segment for segment, _ in zip(all_segments, range(args.segments))]
        if len(segments) > 1:
            documents.append((novel, segments))
    documents = documents[: args.documents or None]
    for first in range(0, len(documents), args.batch):
        chunk = documents[first : first + args.batch]
        example = LongExample((), NO_TOKENS, NO_TOKENS, (), 0)
        empty = [
            LongDocument(iter(()), example, mask_seed=Random(f"long words/{novel}").getrandbits(62))
            for novel, _ in chunk
        ]
        yield dataset.assemble_batch(empty, [segments for _, segments in chunk])


@torch.no_grad()
def compute_losses(network: Any, batch: LongBatch) -> Tensor:
    """Compute the loss sum and the number of masked words per segment, b s 2."""
    inputs, targets = BertMassLoss(mlm=1.0).mask_inputs(batch)
    logits = network(inputs).masked_logits.float()
    token_losses = torch.nn.functional.cross_entropy(logits, targets, reduction="none")  # p
    prediction_mask = inputs.prediction_mask
    assert prediction_mask is not None
    table = torch.zeros(*prediction_mask.shape, 2, dtype=torch.double, device=token_losses.device)
    table[prediction_mask] = torch.stack([token_losses.double(), torch.ones_like(token_losses).double()], -1)
    return table.sum(2).cpu()


def pad_segments(batch_losses: Sequence[Tensor], num_segments: int) -> Tensor:
    """Pad the losses of all batches to the same number of segments, and join them."""
    return torch.cat(
        [
            torch.cat([losses, losses.new_zeros(len(losses), num_segments - losses.shape[1], 2)], 1)
            for losses in batch_losses
        ]
    )


def summarize_losses(losses: dict[str, Tensor]) -> dict[str, Any]:
    """Compute mean losses over all words, per segment, and over documents."""
    document_losses = {name: table[:, 1:].sum(1) for name, table in losses.items()}  # b 2
    total_losses = {name: table.sum(0) for name, table in document_losses.items()}
    gain = document_losses["emptied"] - document_losses["with memory"]
    gain = gain[:, 0] / document_losses["emptied"][:, 1].clamp(min=1)
    return {
        "documents": len(gain),
        "loss": {name: round(float(total[0] / total[1]), 4) for name, total in total_losses.items()},
        "difference": [round(float(value), 4) for value in (gain.mean(), gain.std() / len(gain) ** 0.5)],
        "by segment": {
            name: [round(float(total / max(count, 1)), 4) for total, count in table.sum(0).tolist()]
            for name, table in losses.items()
        },
        "words by segment": [int(count) for count in losses["emptied"].sum(0)[:, 1].tolist()],
    }


if __name__ == "__main__":
    main()
