"""Texts in windows as tensors: all tokens in one row, so that nothing is stored for padding.

Shapes: e texts of the set, w windows, t tokens of all windows, b texts of a batch, n tokens.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import accumulate
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from mnemic.models import IGNORE, Windows
from mnemic.text import Encoded, Tokenizer, Windowed
from mnemic.text.windows import Window

Kind = Literal["classes", "numbers", "spans", "tags", "reading"]
MULTIPLE = 8  # of tokens, which a GPU's products and attention like best


class Batch(NamedTuple):
    """What a network reads, and what it should have said."""

    inputs: Windows
    targets: Tensor  # classes, numbers: b; spans: w 2, columns of the scores; tags: w n
    owner: Tensor  # w, which text of the batch each window is of; b: of none, padding


class Numbered(NamedTuple):
    """A text in windows with its targets: one number, a pair a window, or a list a window."""

    cut: Windowed
    targets: Any


class Search(NamedTuple):
    """Questions and the texts among which each should find its own."""

    questions: "TextSet"
    texts: "TextSet"
    right: tuple[int, ...]  # which of the texts is each question's own


@dataclass(frozen=True, kw_only=True)
class TextSet:
    """A set of texts on one device, ready to be drawn from."""

    kind: Kind
    metric: str  # what the set is judged by
    examples: Sequence[Any]  # as they were read
    tokenizer: Tokenizer
    labels: tuple[str, ...]
    tokens: Tensor  # t, ids of all windows, one after the other
    segments: Tensor  # t
    inside: Tensor  # t, True = what an answer may be about (see ``answerable``)
    targets: Tensor  # e, w 2 or t
    begins: Tensor  # w+1, where each window begins in tokens
    first: Tensor  # e+1, the first window of each text
    place: Tensor  # w, where in its window the text begins
    held: Tensor  # w 2, which tokens of the text a window holds
    count: Tensor  # e 2, tokens seen and tokens there are
    search: Search | None = None  # for networks that find texts, too

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def device(self) -> torch.device:
        return self.tokens.device

    @property
    def rolls(self) -> int:
        """Nothing is drawn: a text is read as it is."""
        return 0

    @property
    def lengths(self) -> Tensor:
        """How many tokens each text's windows have together."""
        return self.begins[self.first[1:]] - self.begins[self.first[:-1]]

    @property
    def unknown(self) -> int:
        """Texts whose label no training text had."""
        return int((self.targets == IGNORE).sum()) if self.kind == "classes" else 0

    @cached_property
    def encoded(self) -> Callable[[str], Encoded]:
        """A text's tokens; the last few are kept: questions about one text stand together."""
        return lru_cache(maxsize=8)(lambda text: self.tokenizer.encode(text, special=False))

    def offsets(self, number: int) -> list[tuple[int, int]]:
        """Where the tokens of a text stand in its string."""
        return self.encoded(self.examples[number].text).offsets

    def to(self, device: torch.device | str) -> "TextSet":
        parts: dict[str, Any] = {
            name: part.to(device) for name, part in vars(self).items() if torch.is_tensor(part)
        }
        if self.search is not None:
            questions, texts, right = self.search
            parts["search"] = Search(questions.to(device), texts.to(device), right)
        return replace(self, **parts)

    def batch(
        self,
        rows: Tensor,
        rolls: Tensor | None = None,
        *,
        compact: bool = True,
        most: int | None = None,
    ) -> Batch:
        """The texts in ``rows`` (b) with all their windows, as wide as the longest of them.

        Without ``compact`` there is room for any texts of at most ``most`` tokens: the batches of a
        bucket have one shape, and no GPU is asked how long its texts are. What is left over is
        padding, whole windows of it too, whose owner is none of the texts (b).
        """
        counts = self.first[rows + 1] - self.first[rows]
        ends = counts.cumsum(0)
        each, width = (0, 0) if compact else self.extent(most)
        place = torch.arange(each * len(rows) or int(ends[-1]), device=rows.device)
        owner = torch.searchsorted(ends, place, right=True)  # w
        real = owner < len(rows)
        before = (self.first[rows] - ends + counts)[owner.clamp(max=len(rows) - 1)]
        windows = torch.where(real, before + place, 0)
        inputs, places = self.windows(windows, real, width)
        inputs = inputs._replace(documents=documents_of(counts, each))
        if self.kind in ("classes", "numbers"):
            targets = self.targets[rows]
        elif self.kind == "spans":
            targets = self.targets[windows].masked_fill(~real.unsqueeze(1), IGNORE)
        else:
            targets = self.targets[places].masked_fill(~inputs.mask, IGNORE)
        return Batch(inputs, targets, owner)

    @cached_property
    def extent(self) -> Callable[[int | None], tuple[int, int]]:
        """The most windows, and the most tokens of one, that a text of that many tokens has."""
        lengths, first, begins = (own.cpu() for own in (self.lengths, self.first, self.begins))
        counts, widest = first.diff(), begins.diff()[first[:-1]]  # a text's first is its longest

        @cache
        def found(most: int | None) -> tuple[int, int]:
            fitting = lengths <= (int(lengths.max()) if most is None else most)
            tokens = -(-int(widest[fitting].max()) // MULTIPLE) * MULTIPLE
            return int(counts[fitting].max()), min(tokens, int(widest.max()))

        return found

    def windows(
        self, chosen: Tensor, real: Tensor | None = None, width: int = 0
    ) -> tuple[Windows, Tensor]:
        """Some windows (w) as a network reads them, and where each token stands in ``tokens``.

        Where ``real`` (w) is False there is only padding. ``width`` 0: as wide as the longest.
        """
        start, lengths = self.begins[chosen], self.begins[chosen + 1] - self.begins[chosen]
        column = torch.arange(width or max(int(lengths.max()), 1), device=chosen.device)
        mask = column < lengths.unsqueeze(1)  # w n
        if real is not None:
            mask = mask & real.unsqueeze(1)
        places = (start.unsqueeze(1) + column).masked_fill(~mask, 0)
        if not len(self.tokens):  # no text has a token, and nothing frames it
            empty = places.new_zeros(places.shape)
            return Windows(empty, mask, empty, mask), places
        ids, segments = (
            part[places].long().masked_fill(~mask, 0) for part in (self.tokens, self.segments)
        )
        return Windows(ids, mask, segments, self.inside[places] & mask), places


def documents_of(counts: Tensor, most: int = 0) -> Tensor:
    """The windows of each text (b s), of so many windows each (b); ``most`` 0: as they need."""
    column = torch.arange(most or int(counts.max()), device=counts.device)
    numbers = (counts.cumsum(0) - counts).unsqueeze(1) + column
    return numbers.masked_fill(column >= counts.unsqueeze(1), -1)


def text_set(
    kind: Kind,
    numbered: Iterable[Numbered],
    examples: Sequence[Any],
    tokenizer: Tokenizer,
    *,
    labels: Sequence[str] = (),
    metric: str = "",
) -> TextSet:
    """Put texts that were cut and numbered one after the other."""
    tokens: list[Tensor] = []
    segments: list[Tensor] = []
    inside: list[Tensor] = []
    targets: list[Any] = []
    lengths, windows, place, held, count = [], [], [], [], []
    for cut, target in numbered:
        windows.append(len(cut.windows))
        count.append((cut.seen, cut.total))
        targets.extend(target if isinstance(target, list) else [target])
        for own in cut.windows:
            tokens.append(torch.tensor(own.ids, dtype=torch.int32))
            segments.append(torch.tensor(own.segments, dtype=torch.uint8))
            inside.append(answerable(kind, own, tokenizer))
            lengths.append(len(own.ids))
            place.append(own.place)
            held.append(own.held)
    return TextSet(
        kind=kind,
        metric=metric,
        examples=examples,
        tokenizer=tokenizer,
        labels=tuple(labels),
        tokens=torch.cat(tokens or [torch.zeros(0, dtype=torch.int32)]),
        segments=torch.cat(segments or [torch.zeros(0, dtype=torch.uint8)]),
        inside=torch.cat(inside or [torch.zeros(0, dtype=torch.bool)]),
        targets=torch.tensor(targets, dtype=torch.float if kind == "numbers" else torch.long),
        begins=torch.tensor([0, *accumulate(lengths)]),
        first=torch.tensor([0, *accumulate(windows)]),
        place=torch.tensor(place, dtype=torch.long),
        held=torch.tensor(held, dtype=torch.long).view(-1, 2),
        count=torch.tensor(count, dtype=torch.long).view(-1, 2),
    )


def answerable(kind: Kind, window: Window, tokenizer: Tokenizer) -> Tensor:
    """Which tokens of a window an answer may be about, n: a class is of both texts of a pair."""
    if kind in ("classes", "numbers"):
        special = torch.tensor(sorted(tokenizer.specials), dtype=torch.long)
        return ~torch.isin(torch.tensor(window.ids, dtype=torch.long), special)
    place = torch.arange(len(window.ids)) - window.place + window.held.start
    return (place >= window.held.start) & (place < window.held.end)
