"""Is the evidence what the answer came from? Ask again without the slots it cites, or others.

    python benchmarks/faithful.py runs/keeps --tokens 0 4000 32000 --device cuda

The slots that an answer cites are those it read most, until they make up ``--share`` of what it
read. Of the questions that were answered rightly: percent whose answer is another one, without the
cited slots; without as many other slots, drawn evenly; and without as many that were read least.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mnemic.checkpoint.folder import load
from mnemic.data import DATASETS
from mnemic.data.long_context.batches import FULL, LongSet
from mnemic.evaluate.long_context import right
from mnemic.recipe import build

AT_ONCE = 65_536  # tokens that are encoded together
WAYS = ("cited", "others", "least read")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run of bert-mass or keeps")
    parser.add_argument("--tokens", type=int, nargs="+", default=[0, 4000, 32_000])
    parser.add_argument("--questions", type=int, default=200, help="of each task")
    parser.add_argument("--share", type=float, default=0.9)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--background", help="novels, if not those of the recipe")
    parser.add_argument("--folder", help="story files, if not those of the recipe")
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    checkpoint = load(given.run)
    named = {"background": given.background, "folder": given.folder}
    spec = dict(checkpoint.recipe["data"]) | {key: own for key, own in named.items() if own}
    source: Any = build(DATASETS, spec)
    asked = source.asked("test", checkpoint.tokenizer).to(given.device)
    network = checkpoint.network.to(given.device).eval()
    rows = [measure(network, asked, tokens, given) for tokens in given.tokens]
    print(json.dumps({"run": str(given.run), "share": given.share, "rows": rows}, indent=1))


def measure(network: Any, asked: LongSet, tokens: int, given: argparse.Namespace) -> dict[str, Any]:
    """All questions of one length."""
    chosen = [
        row
        for task in asked.task.unique().tolist()
        for row in (asked.task == task).nonzero().flatten().tolist()[: given.questions]
    ]
    long = asked.upto(max(round(tokens / (asked.room * FULL)), 0))
    dice = torch.Generator().manual_seed(0)
    parts = [
        dropped(network, long, chosen[first : first + given.batch], given.share, dice)
        for first in range(0, len(chosen), given.batch)
    ]
    was_right, cited, slots, changed = (torch.cat(part) for part in zip(*parts))
    row = {"tokens": tokens, "questions": len(chosen), "right": percent(was_right)}
    row |= {"slots cited": mean(cited[was_right]), "slots": mean(slots[was_right])}
    row |= {way: percent(changed[was_right, n]) for n, way in enumerate(WAYS)}
    print(row, file=sys.stderr, flush=True)
    return row


@torch.no_grad()
def dropped(
    network: Any, long: LongSet, rows: list[int], share: float, dice: torch.Generator
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Whether each answer was right, how many slots it cites of how many, and what changed it."""
    state: Any = None
    for batch in long.stream(rows, max(AT_ONCE // (len(rows) * long.length), 1)):
        encoded = network.encoded(batch.inputs)
        state = network.empty(len(rows), encoded.units[:, 0]) if state is None else state
        state, _, _ = network.carry(state, encoded)
    said = network.answer(state, batch.inputs)
    weights = said.reading.weights.float().mean((1, 2, 3)).masked_fill(~state.mask, -1.0)  # b s
    cited = cited_slots(weights, share)
    count = cited.sum(1)
    luck = torch.rand(weights.shape, generator=dice).to(weights.device)
    away = ~state.mask | cited
    others = first_of(luck.masked_fill(away, 2.0), count) & ~away
    least = first_of(weights.masked_fill(away, 2.0), count) & ~away
    first = said.scores.argmax(-1)  # b 1
    changed = []
    for gone in (cited, others, least):
        again = network.answer(state._replace(mask=state.mask & ~gone), batch.inputs)
        changed.append((again.scores.argmax(-1) != first).squeeze(1))
    found = (right(said, batch.answers), count, state.mask.sum(1), torch.stack(changed, 1))
    return found[0].cpu(), found[1].cpu(), found[2].cpu(), found[3].cpu()


def cited_slots(weights: Tensor, share: float) -> Tensor:
    """The slots of highest weight (b s) that make up ``share`` of a reading, at least one."""
    most = weights.clamp(min=0).sort(dim=1, descending=True)
    before = most.values.cumsum(1) - most.values
    inside = before < share * most.values.sum(1, keepdim=True)
    return torch.zeros_like(inside).scatter(1, most.indices, inside) & (weights >= 0)


def first_of(values: Tensor, count: Tensor) -> Tensor:
    """The ``count`` (b) lowest of each row (b s)."""
    return values.argsort(dim=1).argsort(dim=1) < count.unsqueeze(1)


def percent(flags: Tensor) -> float:
    return round(100 * float(flags.double().mean()), 2) if len(flags) else 0.0


def mean(numbers: Tensor) -> float:
    return round(float(numbers.double().mean()), 2) if len(numbers) else 0.0


if __name__ == "__main__":
    main()
