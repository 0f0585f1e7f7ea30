"""Measure how often an answer changes without the slots it cites as evidence.

    python benchmarks/evidence_ablation.py runs/selective --tokens 0 4000 32000 --device cuda

An answer cites the slots with the most attention, until they make up ``--share`` of all attention.
Of the questions with a right answer, the table has the percentage whose answer changes without the
cited slots; without as many random other slots; and without as many slots with the least attention.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.data import DATASETS
from mnemic.data.long_context.batches import FILL_RATE, LongDataset
from mnemic.evaluate.long_context import find_correct_answers
from mnemic.recipe import build

MAX_TOKENS = 65_536  # encoded together
ABLATIONS = ("cited", "others", "least read")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run of bert-mass or bert-mass-selective")
    parser.add_argument("--tokens", type=int, nargs="+", default=[0, 4000, 32_000])
    parser.add_argument("--questions", type=int, default=200, help="of each task")
    parser.add_argument("--share", type=float, default=0.9)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--background", help="novels, if not those of the recipe")
    parser.add_argument("--folder", help="story files, if not those of the recipe")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    checkpoint = load_checkpoint(args.run)
    overrides = {"background": args.background, "folder": args.folder}
    spec = dict(checkpoint.recipe["data"]) | {key: override for key, override in overrides.items() if override}
    source: Any = build(DATASETS, spec)
    dataset = source.dataset("test", checkpoint.tokenizer).to(args.device)
    network = checkpoint.network.to(args.device).eval()
    rows = [measure_length(network, dataset, tokens, args) for tokens in args.tokens]
    print(json.dumps({"run": str(args.run), "share": args.share, "rows": rows}, indent=1))


def measure_length(network: Any, dataset: LongDataset, tokens: int, args: argparse.Namespace) -> dict[str, Any]:
    """Measure all questions at one document length."""
    rows = [
        row
        for task in dataset.task.unique().tolist()
        for row in (dataset.task == task).nonzero().flatten().tolist()[: args.questions]
    ]
    long_dataset = dataset.with_segments(max(round(tokens / (dataset.max_text_tokens * FILL_RATE)), 0))
    generator = torch.Generator().manual_seed(0)
    batch_results = [
        measure_ablations(network, long_dataset, rows[first : first + args.batch], args.share, generator)
        for first in range(0, len(rows), args.batch)
    ]
    was_right, cited, slots, changed = (torch.cat(tensors) for tensors in zip(*batch_results))
    row = {"tokens": tokens, "questions": len(rows), "right": compute_percent(was_right)}
    row |= {"slots cited": compute_mean(cited[was_right]), "slots": compute_mean(slots[was_right])}
    row |= {ablation: compute_percent(changed[was_right, column]) for column, ablation in enumerate(ABLATIONS)}
    print(row, file=sys.stderr, flush=True)
    return row


@torch.no_grad()
def measure_ablations(
    network: Any, dataset: LongDataset, rows: list[int], share: float, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Answer questions again without some slots, and compare.

    Return whether each answer was right, the number of cited and of all slots, and which of the
    ``ABLATIONS`` changed the answer.
    """
    state: Any = None
    for batch in dataset.stream(rows, max(MAX_TOKENS // (len(rows) * dataset.length), 1)):
        encoded = network.encode_segments(batch.inputs)
        state = network.empty_memory(len(rows), encoded.items[:, 0]) if state is None else state
        state, _, _ = network.write_segments(state, encoded)
    output = network.answer_question(state, batch.inputs)
    weights = output.reading.weights.float().mean((1, 2, 3)).masked_fill(~state.mask, -1.0)  # b s
    cited = find_cited_slots(weights, share)
    count = cited.sum(1)
    uniforms = torch.rand(weights.shape, generator=generator).to(weights.device)
    excluded = ~state.mask | cited
    random_slots = lowest_mask(uniforms.masked_fill(excluded, 2.0), count) & ~excluded
    least_read = lowest_mask(weights.masked_fill(excluded, 2.0), count) & ~excluded
    first_answer = output.logits.argmax(-1)  # b 1
    changed = []
    for dropped in (cited, random_slots, least_read):
        new_output = network.answer_question(state._replace(mask=state.mask & ~dropped), batch.inputs)
        changed.append((new_output.logits.argmax(-1) != first_answer).squeeze(1))
    results = (find_correct_answers(output, batch.answers), count, state.mask.sum(1), torch.stack(changed, 1))
    return results[0].cpu(), results[1].cpu(), results[2].cpu(), results[3].cpu()


def find_cited_slots(weights: Tensor, share: float) -> Tensor:
    """Find the top slots (b s) with ``share`` of the attention, at least one."""
    sorted_weights = weights.clamp(min=0).sort(dim=1, descending=True)
    mass_before = sorted_weights.values.cumsum(1) - sorted_weights.values
    is_cited = mass_before < share * sorted_weights.values.sum(1, keepdim=True)
    return torch.zeros_like(is_cited).scatter(1, sorted_weights.indices, is_cited) & (weights >= 0)


def lowest_mask(values: Tensor, counts: Tensor) -> Tensor:
    """Mask the ``counts`` (b) lowest values of each row (b s)."""
    return values.argsort(dim=1).argsort(dim=1) < counts.unsqueeze(1)


def compute_percent(flags: Tensor) -> float:
    """Compute the percentage of true flags."""
    return round(100 * float(flags.double().mean()), 2) if len(flags) else 0.0


def compute_mean(numbers: Tensor) -> float:
    """Compute the mean of numbers; 0 if there are none."""
    return round(float(numbers.double().mean()), 2) if len(numbers) else 0.0


if __name__ == "__main__":
    main()
