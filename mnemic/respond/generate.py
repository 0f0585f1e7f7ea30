"""Say something word by word: the likeliest each time, by beam search, or by dice.

A decoder is a function ``step(words, state) → (scores, state)``: the words said last (b) and a
tree of tensors with the batch in front go in, scores of the next word (b v) and the state after it
come out. A decoder's cache is such a state, and so is a recurrent network's.

Shapes: b batch, w beams, n words said, v vocabulary.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

Step = Callable[[Tensor, Any], tuple[Tensor, Any]]
NEVER = float("-inf")


class Said(NamedTuple):
    """What was said, best first; after its end a text is padded with the end's id."""

    words: Tensor  # b w n, without the word it began with
    lengths: Tensor  # b w, with the end, where it came to one
    scores: Tensor  # b w, log-probabilities of the whole texts


def greedy(step: Step, state: Any, start: Tensor, *, end: int, most: int) -> Said:
    """The likeliest next word each time, until the ``end`` or ``most`` words; ``start`` is b."""
    return beam(step, state, start, end=end, most=most, width=1)


@torch.no_grad()
def beam(
    step: Step,
    state: Any,
    start: Tensor,
    *,
    end: int,
    most: int,
    width: int = 4,
    penalty: float = 0.0,
) -> Said:
    """The ``width`` likeliest texts that go on, each time; in the end the best of them.

    Longer texts are less likely, so the last choice divides a score by ``((5 + n) / 6) ** penalty``
    (Wu et al. 2016); 0 takes it as it is.
    """
    check(most, width)
    batch = start.shape[0]
    words = start.new_full((batch, 1, 0), end)  # b w n
    scores, ended = (
        start.new_zeros(batch, 1, dtype=torch.float),
        torch.zeros_like(start)[:, None] > 0,
    )
    last = start
    for _ in range(most):
        if ended.all():
            break
        spread, state = step(last, state)
        spread = spread.float().log_softmax(-1).unflatten(0, ended.shape)  # b w v
        # A text that has ended says nothing more, at no cost.
        silent = torch.full_like(spread, NEVER)
        silent[..., end] = 0.0
        whole = scores.unsqueeze(2) + torch.where(ended.unsqueeze(2), silent, spread)  # b w v
        vocab = whole.shape[2]
        scores, chosen = whole.flatten(1).topk(min(width, vocab * ended.shape[1]), 1)  # b w
        source, said = chosen // vocab, chosen % vocab
        words = torch.cat([picked(words, source), said.unsqueeze(2)], 2)
        ended = ended.gather(1, source) | (said == end)
        first = torch.arange(batch, device=start.device).unsqueeze(1) * whole.shape[1]
        state = rows_of(state, (first + source).flatten())
        last = said.flatten()
    lengths = length_of(words, end)
    worth = scores / ((5 + lengths) / 6) ** penalty
    order = worth.argsort(dim=1, descending=True, stable=True)
    return Said(picked(words, order), lengths.gather(1, order), scores.gather(1, order))


@torch.no_grad()
def sample(
    step: Step,
    state: Any,
    start: Tensor,
    *,
    end: int,
    most: int,
    dice: torch.Generator,
    temperature: float = 1.0,
    top: int = 0,
    share: float = 1.0,
) -> Said:
    """Each next word by dice, among the ``top`` likeliest (0: all) that make up ``share`` of all.

    ``temperature`` below 1 keeps to what is likely. The scores are those of the network, not of
    the dice.
    """
    check(most, 1)
    if not temperature > 0 or top < 0 or not 0 < share <= 1:
        came = f"temperature = {temperature}, top = {top}, share = {share}"
        raise ValueError(f"sampling takes temperature > 0, top ≥ 0 and 0 < share ≤ 1, not {came}")
    said: list[Tensor] = []
    ended, scores = torch.zeros_like(start, dtype=torch.bool), torch.zeros_like(start).float()
    last = start
    for _ in range(most):
        if ended.all():
            break
        spread, state = step(last, state)
        chances = likely((spread.float() / temperature).softmax(-1), top, share)
        last = torch.multinomial(chances, 1, generator=dice).squeeze(1)
        last = last.masked_fill(ended, end)
        now = spread.float().log_softmax(-1).gather(1, last.unsqueeze(1)).squeeze(1)
        scores = scores + now.masked_fill(ended, 0.0)
        ended = ended | (last == end)
        said.append(last)
    words = torch.stack(said, 1).unsqueeze(1)  # b 1 n
    return Said(words, length_of(words, end), scores.unsqueeze(1))


def likely(chances: Tensor, top: int, share: float) -> Tensor:
    """Zero all but the ``top`` likeliest words, and of those all but the first ``share``: b v."""
    ranked, order = chances.sort(-1, descending=True)
    before = ranked.cumsum(-1) - ranked  # what the likelier ones make up
    keep = before < share
    if top:
        keep[:, top:] = False
    return torch.zeros_like(chances).scatter(1, order, ranked * keep)


def length_of(words: Tensor, end: int) -> Tensor:
    """How many words were said, with the end: … n → …."""
    before = (words == end).long().cumsum(-1) - (words == end).long()  # ends before this place
    return (before == 0).sum(-1)


def picked(words: Tensor, source: Tensor) -> Tensor:
    """The beams ``source`` (b w) of ``words`` (b … n)."""
    return words.gather(1, source.unsqueeze(2).expand(-1, -1, words.shape[2]))


def rows_of(state: Any, rows: Tensor) -> Any:
    """The state of these rows of the batch."""
    return tree_map(lambda part: part.index_select(0, rows), state)


def check(most: int, width: int) -> None:
    if most < 1 or width < 1:
        raise ValueError(f"at least one word and one beam, not most = {most}, width = {width}")
