"""The seven losses of BERT-MASS, each by its name with a weight of its own.

Shapes: b documents, s segments, n tokens, p units of a segment, u units of a document, l lessons,
j tokens of a unit, a slots, r sources of a slot, k hops, h heads, v vocabulary.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.memory.bert_mass import Blended
from mnemic.memory.controller import entropy
from mnemic.network import IGNORE
from mnemic.network.segments import Lesson, Recalled, Segments, any_of
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import Carried, Loss, weighted
from mnemic.objectives.masking import MASKINGS, ROLLS, corrupt
from mnemic.objectives.pretraining import TOKENS, check_weights, next_losses
from mnemic.objectives.rolls import rolls
from mnemic.recipe import build

TINY = 1e-9  # a probability is at least this


class BertMassLoss:
    """``Σ weight · loss`` over pred, seq, ctrl, write, read, mlm and nsp; 0 leaves one out.

    - ``pred``: the answer's first word; ``seq``: its 2nd to its last.
    - ``ctrl``: −log p(u* | s) + ``beta`` · H(u). u* is 1 for units of supporting facts where the
      data marks them, else for those whose slots the question's read weighed above average.
    - ``write``: the tokens that went in can be said from what memory holds of them, and
      ``gamma`` · ‖m − m̃‖², how far the slots moved, as a mean over slots.
    - ``read``: the question finds the slots that hold its facts, −log of the share of them in what
      each hop reads; where no facts are marked, what was just written finds its own slot.
    - ``mlm``, ``nsp``: masked words, which memory helps to tell; whether the document goes on so.

    Each is a mean over what it asks for. ``masking`` is a kind of ``MASKINGS``.
    """

    def __init__(
        self,
        *,
        pred: float = 1.0,
        seq: float = 1.0,
        ctrl: float = 0.0,
        write: float = 0.0,
        read: float = 0.0,
        mlm: float = 0.0,
        nsp: float = 0.0,
        beta: float = 0.01,
        gamma: float = 0.01,
        masking: Mapping[str, Any] = TOKENS,
    ) -> None:
        self.weights = {"pred": pred, "seq": seq, "ctrl": ctrl, "write": write, "read": read}
        self.weights |= {"mlm": mlm, "nsp": nsp}
        check_weights(self.weights)
        self.beta, self.gamma = beta, gamma
        self.masking = build(MASKINGS, masking)

    def __call__(self, network: nn.Module, batch: Any, carried: Carried | None = None) -> Loss:
        return weighted(self.parts(network, batch), self.weights)._replace(carried=carried)

    def parts(self, network: nn.Module, batch: Any) -> dict[str, Loss]:
        """Each loss by its name; those of weight 0 are not there."""
        due = {name for name, weight in self.weights.items() if weight}
        inputs, words = batch.inputs, None
        if "mlm" in due:
            inputs, words = self.hidden(batch)
        output = network(inputs, lessons=bool(due & {"ctrl", "write", "read"}))
        found = {}
        if "pred" in due:
            found["pred"] = Loss(*cross_entropy(output.scores.float(), batch.answers[:, :1]))
        if "seq" in due:
            found["seq"] = Loss(*cross_entropy(output.rest.float(), batch.answers[:, 1:]))
        if words is not None:
            found["mlm"] = Loss(*cross_entropy(output.words.float(), words))
        if "nsp" in due:
            each = next_losses(output.follows, batch.follows)
            found["nsp"] = Loss(each.sum(), (batch.follows != IGNORE).sum())
        if output.lessons:
            needed = needed_units(output.lessons, batch.needed, inputs)  # b u
            if "ctrl" in due:
                found["ctrl"] = controller_loss(output, needed, batch.marked, self.beta)
            if "write" in due:
                found["write"] = write_loss(output.lessons, self.gamma)
            if "read" in due:
                found["read"] = read_loss(output, needed, batch.marked)
        return found

    def hidden(self, batch: Any) -> tuple[Segments, Tensor]:
        """The documents with some words hidden, and which these were.

        What proves an answer is not hidden: nobody could give it then.
        """
        inputs: Segments = batch.inputs
        shape = inputs.tokens.shape
        flat = inputs.tokens.flatten(1)  # b (s n)
        dice = rolls(batch.keys, flat.shape[1], ROLLS)
        fixed = ~(inputs.inside & ~batch.needed).flatten(1)
        chosen = self.masking(fixed, batch.starts.flatten(1), dice[0])
        shown, targets = corrupt(
            flat, chosen, dice[1:], hidden=batch.hidden, ordinary=batch.ordinary
        )
        changed = inputs._replace(tokens=shown.view(shape), hidden=chosen.view(shape))
        return changed, targets[targets != IGNORE]


class NextWordLoss:
    """Cross-entropy of the next word at every token, which memory helps to tell.

    For encoders that do not look ahead, such as ``recurrent``: the memory-augmented network (MANN)
    by itself. A segment's tokens read what was written before it.
    """

    def __call__(self, network: nn.Module, batch: Any, carried: Carried | None = None) -> Loss:
        inputs, words = next_words(batch)
        return Loss(*cross_entropy(network(inputs).words.float(), words), carried)


def next_words(batch: Any) -> tuple[Segments, Tensor]:
    """The documents, asked at every token that another one follows, and which these are."""
    inputs: Segments = batch.inputs
    known = inputs.mask.roll(-1, 2)
    known[..., -1] = False
    places = inputs.mask & known
    return inputs._replace(hidden=places), inputs.tokens.roll(-1, 2)[places]


def needed_units(lessons: Sequence[Lesson], needed: Tensor, inputs: Segments) -> Tensor:
    """Which units of a document (b u, in the order of segments) have a needed token (b s n)."""
    if inputs.sentences is None or lessons[0].seen.shape[1] == needed.shape[2]:
        own = [needed[:, number] for number in range(len(lessons))]
    else:
        count = lessons[0].seen.shape[1]
        own = [
            any_of(needed[:, number], inputs.sentences[:, number], count)
            for number in range(len(lessons))
        ]
    return torch.cat(own, 1)


def controller_loss(output: Recalled, needed: Tensor, marked: Tensor, beta: float) -> Loss:
    """−log p(u* | s) + β H(u), summed over units; what was not marked is told by later reads."""
    odds = torch.cat([judged(lesson) for lesson in output.lessons], 1).float()  # b u
    seen = torch.cat([lesson.seen for lesson in output.lessons], 1)
    later = read_units(output, seen)
    wanted = torch.where(marked.unsqueeze(1), needed, later).to(odds.dtype)
    lost = nn.functional.binary_cross_entropy_with_logits(odds, wanted, reduction="none")
    return Loss(((lost + beta * entropy(odds)) * seen).sum(), seen.sum())


def judged(lesson: Lesson) -> Tensor:
    """The controller's log-odds, b p; a memory without one has none to be taught."""
    odds = lesson.written.stored
    if odds is None:
        raise ValueError("the loss ctrl is of a controller, which this memory does not have")
    return odds


@torch.no_grad()
def read_units(output: Recalled, seen: Tensor) -> Tensor:
    """Units (b u) in slots that the question weighed above average: they turned out needed."""
    weight = output.reading.weights.mean((1, 2, 3))  # b a
    mask, (sources, _) = output.state.mask, output.state.origins  # b a, b a r
    mean = weight.sum(1, keepdim=True) / mask.sum(1, keepdim=True).clamp(min=1)
    above = (weight > mean) & mask
    wanted = torch.where(above.unsqueeze(-1), sources, -1).flatten(1)  # b (a r)
    return units_numbered(wanted, torch.ones_like(wanted, dtype=torch.bool), seen)


def units_numbered(numbers: Tensor, values: Tensor, seen: Tensor) -> Tensor:
    """Spread ``values`` (b x, bool) to the units (b u) of these numbers (b x); -1 is none."""
    count = seen.shape[1]
    order = seen.long().cumsum(1) - 1  # b u, the number of each real unit
    room = seen.new_zeros(len(seen), count + 1, dtype=torch.long)
    spot = torch.where(numbers >= 0, numbers, count).clamp(max=count)
    by_number = room.scatter_add(1, spot, values.long())[:, :count] > 0
    return by_number.gather(1, order.clamp(min=0)) & seen


def write_loss(lessons: Sequence[Lesson], gamma: float) -> Loss:
    """What went in can be said from memory; and memory moves no more than it must."""
    total, count = torch.zeros(()), torch.zeros((), dtype=torch.long)
    for lesson in lessons:
        if lesson.words is None or lesson.targets is None:
            continue
        real = lesson.targets != IGNORE  # b l j
        said = lesson.words.float().log_softmax(-1).gather(-1, lesson.targets.clamp(min=0))
        unit = (said * real).sum(-1) / real.sum(-1).clamp(min=1)  # b l, mean over its tokens
        total = total.to(unit) - unit.sum()
        count = count.to(unit.device) + real.any(-1).sum()
        if isinstance(lesson.before, Blended):
            moved = (lesson.written.state.slots - lesson.before.slots).float().square()
            total = total + gamma * moved.sum(-1).mean(1).sum()
    return Loss(total, count)


def read_loss(output: Recalled, needed: Tensor, marked: Tensor) -> Loss:
    """The share of what is needed in each hop's reading, −log; of marked documents the question's.

    Of the others, that of what was just written.
    """
    seen = torch.cat([lesson.seen for lesson in output.lessons], 1)
    gold, held = gold_slots(output, needed, seen)  # b a, b
    asks = marked & held
    read = output.reading.weights.float().mean(2)[:, :, 0] @ gold.unsqueeze(-1)  # b k 1
    total = -((read.squeeze(-1) + TINY).log().mean(1) * asks).sum()
    count = asks.sum()
    for lesson in output.lessons:
        if lesson.recall is None or lesson.slots is None:
            continue
        due = (lesson.slots >= 0) & ~marked.unsqueeze(1)  # b l
        weights = lesson.recall.weights.float().mean(2)  # b k l a
        spot = lesson.slots.clamp(min=0)[:, None, :, None].expand(-1, weights.shape[1], -1, -1)
        own = (weights.gather(-1, spot).squeeze(-1) + TINY).log().mean(1)  # b l
        total, count = total - (own * due).sum(), count + due.sum()
    return Loss(total, count)


@torch.no_grad()
def gold_slots(output: Recalled, needed: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
    """How much of each slot (b a) is of needed units (b u), and whether there is any (b)."""
    sources, shares = output.state.origins  # b a r
    order = seen.long().cumsum(1) - 1
    room = seen.new_zeros(len(seen), seen.shape[1] + 1, dtype=torch.long)
    spot = torch.where(seen, order, seen.shape[1])
    by_number = room.scatter_add(1, spot, (needed & seen).long())[:, :-1] > 0  # b u
    flat = sources.flatten(1)
    known = by_number.gather(1, flat.clamp(min=0, max=seen.shape[1] - 1))  # none has no share
    gold = (known.view_as(sources) * shares.float()).sum(-1)
    return gold, (gold > 0).any(1)
