"""The seven losses of BERT-MASS, each by its name with a weight of its own.

Shapes: b documents, s segments, n tokens, p units of a segment, u units of a document, l lessons,
j tokens of a unit, f facts, a slots, r sources of a slot, k hops, h heads, v vocabulary.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.memory.blended import Blended
from mnemic.memory.parts.controller import entropy
from mnemic.memory.parts.hops import HIDDEN
from mnemic.models import IGNORE
from mnemic.models.inputs import OTHER, OUTSIDE, Lesson, Recalled, Segments
from mnemic.models.segment_model import Lessons
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import Carried, Loss, weighted
from mnemic.objectives.masking import MASKINGS, ROLLS, corrupt
from mnemic.objectives.pretraining import TOKENS, check_weights, next_losses
from mnemic.objectives.uniforms import rolls
from mnemic.recipe import build

TINY = 1e-9  # a probability is at least this


class BertMassLoss:
    """``Σ weight · loss`` over pred, seq, ctrl, write, read, mlm and nsp; 0 leaves one out.

    - ``pred``: the answer's first word; ``seq``: its 2nd to its last.
    - ``ctrl``: −log p(u* | s) + ``beta`` · H(u). u* is 1 for units of supporting facts where the
      data marks them, else for those whose slots the question's read weighed above average. With
      ``spare``, other sentences of the same story are not judged: the next question may be about
      them. Else they are worth as little as background. With ``ranks`` every sentence that some
      question is about is needed, and u* is told apart from the rest of its document instead of
      by itself: p is a softmax of the log-odds over all units, H its entropy.
    - ``write``: the tokens that went in can be said from what memory holds of them, and
      ``gamma`` · ‖m − m̃‖², how far the slots moved, as a mean over slots.
    - ``read``: the question's hops find its facts, one after another; where no facts are marked,
      what was just written finds its own slot.
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
        spare: bool = False,
        ranks: bool = False,
        masking: Mapping[str, Any] = TOKENS,
    ) -> None:
        self.weights = {"pred": pred, "seq": seq, "ctrl": ctrl, "write": write, "read": read}
        self.weights |= {"mlm": mlm, "nsp": nsp}
        check_weights(self.weights)
        self.beta, self.gamma, self.spare, self.ranks = beta, gamma, spare, ranks
        self.masking = build(MASKINGS, masking)

    def __call__(self, network: nn.Module, batch: Any, carried: Carried | None = None) -> Loss:
        return weighted(self.parts(network, batch), self.weights)._replace(carried=carried)

    def parts(self, network: nn.Module, batch: Any) -> dict[str, Loss]:
        """Each loss by its name; those of weight 0 are not there."""
        due = {name for name, weight in self.weights.items() if weight}
        inputs, words = batch.inputs, None
        if "mlm" in due:
            inputs, words = self.hidden(batch)
        output = network(inputs, lessons=self.lessons(batch))
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
            facts = fact_units(output.lessons, batch.facts, inputs)  # b u
            if "ctrl" in due:
                found["ctrl"] = self.controlled(output, facts, batch.marked)
            if "write" in due:
                found["write"] = write_loss(output.lessons, self.gamma)
            if "read" in due:
                found["read"] = read_loss(output, facts, batch.marked, batch.chain)
        return found

    def controlled(self, output: Recalled, facts: Tensor, marked: Tensor) -> Loss:
        """The loss ctrl; ``facts`` b u says which fact each unit is of."""
        if self.ranks:
            return ranking_loss(output, facts != OUTSIDE, marked, self.beta)
        judged = facts != OTHER if self.spare else None
        return controller_loss(output, facts >= 0, marked, self.beta, judged)

    def lessons(self, batch: Any) -> Lessons:
        """What the losses need to know of writing."""
        due = {name for name, weight in self.weights.items() if weight}
        if "write" in due or ("read" in due and not batch.proven):
            return "asked"
        return "written" if due & {"ctrl", "read"} else "none"

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


def fact_units(lessons: Sequence[Lesson], facts: Tensor, inputs: Segments) -> Tensor:
    """Which fact each unit of a document is of, b u, in the order of segments.

    ``facts`` b s n says it of tokens.
    """
    batch, segments, length = facts.shape
    units = sum(lesson.seen.shape[1] for lesson in lessons)
    if inputs.sentences is None or units == segments * length:
        return facts.flatten(1)
    own = inputs.sentences.flatten(0, 1).clamp(min=0)  # (b s) n; what is in none is of no fact
    room = facts.new_full((len(own), units // segments), OUTSIDE)
    return room.scatter_reduce(1, own, facts.flatten(0, 1), "amax").view(batch, units)


def controller_loss(
    output: Recalled,
    needed: Tensor,
    marked: Tensor,
    beta: float,
    judged: Tensor | None = None,
) -> Loss:
    """−log p(u* | s) + β H(u), summed over units; what was not marked is told by later reads.

    Of what was marked, only units that are ``judged`` (b u) count; None: all.
    """
    odds, seen, wanted = taught_units(output, needed, marked)
    goal = wanted.to(odds.dtype)
    lost = nn.functional.binary_cross_entropy_with_logits(odds, goal, reduction="none")
    counted = seen if judged is None else seen & (judged | ~marked.unsqueeze(1))
    return Loss(((lost + beta * entropy(odds)) * counted).sum(), counted.sum())


def ranking_loss(output: Recalled, needed: Tensor, marked: Tensor, beta: float) -> Loss:
    """−log p(u* | s) + β H(p), a mean over the units of u*, summed over documents that have some.

    What is kept is a matter of order: a unit that is needed has to be worth more than others.
    """
    odds, seen, wanted = taught_units(output, needed, marked)
    chances = odds.masked_fill(~seen, HIDDEN).log_softmax(1)  # b u
    wanted = wanted & seen
    lost = -(chances * wanted).sum(1) / wanted.sum(1).clamp(min=1)
    spread = -(chances.exp() * chances * seen).sum(1)
    due = wanted.any(1)
    return Loss(((lost + beta * spread) * due).sum(), due.sum())


def taught_units(output: Recalled, needed: Tensor, marked: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of all units, b u each: the controller's log-odds, which are real, which turned out needed.

    Where nothing is ``marked`` later reads tell.
    """
    odds = torch.cat([odds_of(lesson) for lesson in output.lessons], 1).float()
    seen = torch.cat([lesson.seen for lesson in output.lessons], 1)
    return odds, seen, torch.where(marked.unsqueeze(1), needed, read_units(output, seen))


def odds_of(lesson: Lesson) -> Tensor:
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
    numbers = torch.where(above.unsqueeze(-1), sources, -1).flatten(1)  # b (a r)
    count = seen.shape[1]
    order = seen.long().cumsum(1) - 1  # b u, the number of each real unit
    spot = torch.where(numbers >= 0, numbers, count).clamp(max=count)
    by_number = seen.new_zeros(len(seen), count + 1).scatter(1, spot, True)[:, :count]
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


def read_loss(output: Recalled, facts: Tensor, marked: Tensor, chain: int) -> Loss:
    """−log Π π(s_i | q_i, m): hop i finds fact i, in the order in which they prove the answer.

    Hops that are left find the last fact, and facts that are left are the last hop's, all of them.
    ``facts`` b u has at most ``chain`` of them. Were it the share of all facts in each hop, hops
    that read the first one and nothing else would be done. Of documents that are not ``marked``,
    what was just written finds its own slot, in each hop.
    """
    seen = torch.cat([lesson.seen for lesson in output.lessons], 1)
    gold = gold_slots(output, facts, seen, chain)  # b a f
    weights = output.reading.weights.float().mean(2)[:, :, 0]  # b k a
    due = taught(facts, weights.shape[1], chain).to(gold.dtype)  # b k f
    goal = due @ gold.mT  # b k a, how much of each slot a hop should find
    held = (goal.sum(-1) > 0) & marked.unsqueeze(1)  # b k
    lost = -(((weights * goal).sum(-1) + TINY).log() * held).sum(1) / held.sum(1).clamp(min=1)
    total, asked = lost.sum(), held.any(1).sum()
    for lesson in output.lessons:
        if lesson.recall is None or lesson.slots is None:
            continue
        due = (lesson.slots >= 0) & ~marked.unsqueeze(1)  # b l
        weights = lesson.recall.weights.float().mean(2)  # b k l a
        spot = lesson.slots.clamp(min=0)[:, None, :, None].expand(-1, weights.shape[1], -1, -1)
        own = (weights.gather(-1, spot).squeeze(-1) + TINY).log().mean(1)  # b l
        total, asked = total - (own * due).sum(), asked + due.sum()
    return Loss(total, asked)


def taught(facts: Tensor, hops: int, chain: int) -> Tensor:
    """Which facts each hop of a document should find, b k f."""
    count = facts.amax(1)[:, None, None].clamp(min=OTHER) + 1  # b 1 1
    hop = torch.arange(hops, device=facts.device)[:, None]
    fact = torch.arange(chain, device=facts.device)
    left = (hop == hops - 1) & (fact >= hop)  # of the last hop
    return ((fact == hop.minimum(count - 1)) | left) & (fact < count)


@torch.no_grad()
def gold_slots(output: Recalled, facts: Tensor, seen: Tensor, chain: int) -> Tensor:
    """How much of each slot is of each fact, b a f; ``facts`` b u, which fact a unit is of."""
    sources, shares = output.state.origins  # b a r
    units = seen.shape[1]
    order = seen.long().cumsum(1) - 1
    spot = torch.where(seen, order, units)
    room = facts.new_full((len(seen), units + 1), -1)
    by_number = room.scatter(1, spot, facts)[:, :units]  # b u
    known = by_number.gather(1, sources.flatten(1).clamp(min=0, max=units - 1)).view_as(sources)
    known = torch.where(sources >= 0, known, -1)
    each = torch.arange(chain, device=known.device)
    return ((known.unsqueeze(-1) == each) * shares.float().unsqueeze(-1)).sum(2)
