"""Questions, texts and articles for two jobs at once: to find a text, and to read an answer in it.

Every question and every text is stored once, as ids without special tokens; windows are put
together when they are drawn, in one row without padding. All of it lies on the CPU, where shapes
are known without waiting; only the finished row goes to ``place``.

Shapes: q questions, p texts, t tokens of all, b rows of a batch, a articles of a batch, g texts
of an article, m windows of a row, n tokens of a window.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from mnemic.encode.packed import Packed
from mnemic.models import Row

CPU = torch.device("cpu")
FOR_READING = 4  # rolls a row: is it a wrong text, from where, which one, which stretch of it


class Mix(NamedTuple):
    """How a batch is put together; the fields are those of the data kind ``reading``."""

    length: int  # tokens a window
    wrong: float  # share of questions that are read with a text that is not theirs
    elsewhere: float  # share of those texts that are of another article
    articles: int  # a batch, of which texts are to be found
    passages: int  # texts an article
    asked: int  # questions a text


class Keys(NamedTuple):
    """A row in stretches: the keys of its texts; all other windows are one each."""

    lengths: Tensor  # s, tokens of each, in the row's order
    questions: Tensor  # k, which of them the questions are
    texts: Tensor  # which of them the texts' keys are, text by text
    counts: Tensor  # p, keys of each text


class ReadingBatch(NamedTuple):
    """A row of windows, what the first of them answer, and who belongs to whom."""

    inputs: Row
    targets: Tensor  # b 2, columns of the scores: first and last token, 0 = none
    windows: Tensor  # m, where in the row's order the windows to be read, questions, texts stand
    right: Tensor  # of each question its text, counted among the texts
    same: Tensor  # which text of the set each of the texts is: one may be there twice
    keys: Keys


class Pieces(NamedTuple):
    """Windows to be: a question, or none, and a stretch of a text, by their places in the pool."""

    first: Tensor  # m 2, begin and length; length 0: no question
    second: Tensor  # m 2
    paired: Tensor  # m, True = both are there


@dataclass(frozen=True, kw_only=True)
class ReadingSet:
    """The training set of the two jobs."""

    mix: Mix
    frame: tuple[int, int, int]  # special tokens before, between and after; the pool's last ones
    pool: Tensor  # ids of all questions and texts, then the special tokens
    questions: Tensor  # q 2, begin and length in the pool
    texts: Tensor  # p 2
    key_lengths: Tensor  # tokens of all keys of all texts
    keys: Tensor  # p 2, first key and number of keys of each text
    home: Tensor  # q, the text of each question
    answers: Tensor  # q 2, first and last token of the answer in its text; -1: none
    asked: Tensor  # p 2, first question and number of questions of each text
    near: Tensor  # p 2, first text and number of texts of each text's article
    place: torch.device = CPU

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def device(self) -> torch.device:
        """Where rows are drawn."""
        return self.pool.device

    @property
    def rolls(self) -> int:
        return FOR_READING + self.mix.passages * (1 + self.mix.asked)

    @property
    def lengths(self) -> Tensor:
        return self.questions[:, 1] + self.texts[self.home, 1] + sum(self.frame)

    @property
    def unknown(self) -> int:
        return 0

    def to(self, device: torch.device | str) -> "ReadingSet":
        """The same set, whose batches go to ``device``."""
        return replace(self, place=torch.device(device))

    def batch(
        self,
        rows: Tensor,
        rolls: Tensor | None = None,
        *,
        compact: bool = True,
        most: int | None = None,
    ) -> ReadingBatch:
        """The questions in ``rows`` (b) with a text each, and questions and texts to be found."""
        dice = (torch.zeros(len(rows), self.rolls) if rolls is None else rolls).double()
        reading, targets = self.to_read(rows, dice[:, :FOR_READING])
        count = min(self.mix.articles, len(rows))
        shape = (count, self.mix.passages, 1 + self.mix.asked)
        questions, texts, right, same = self.to_find(
            rows[:count], dice[:count, FOR_READING:].view(shape)
        )
        pieces = Pieces(*(torch.cat(parts) for parts in zip(reading, questions, texts)))
        inputs, order = self.row(pieces, len(rows))
        sizes = torch.tensor(inputs.mask.lengths)[order]
        keys = self.in_keys(sizes, order, same, len(rows))
        answers, windows, own, equal = map(self.send, (targets, order, right, same))
        return ReadingBatch(inputs, answers, windows, own, equal, Keys(*map(self.send, keys)))

    def to_read(self, rows: Tensor, dice: Tensor) -> tuple[Pieces, Tensor]:
        """Each question with a stretch of its own text or of a wrong one, and its targets."""
        own, total = self.home[rows], len(self.texts)
        first, count = self.near[own].unbind(1)
        beside = but(own, first, count, dice[:, 2])
        away = but(own, torch.zeros_like(own), torch.full_like(own, total), dice[:, 2])
        other = torch.where((dice[:, 1] < self.mix.elsewhere) | (count == 1), away, beside)
        wrong = (dice[:, 0] < self.mix.wrong) & (total > 1)
        text = torch.where(wrong, other, own)
        room = self.mix.length - sum(self.frame) - self.questions[rows, 1]
        taken = torch.minimum(self.texts[text, 1], room)
        start = (dice[:, 3] * (self.texts[text, 1] - taken + 1)).long()
        stretch = torch.stack([self.texts[text, 0] + start, taken], 1)
        pieces = Pieces(self.questions[rows], stretch, torch.ones_like(wrong))
        ends = self.answers[rows] - start.unsqueeze(1)  # b 2
        held = ~wrong & (self.answers[rows, 0] >= 0) & (ends[:, 0] >= 0) & (ends[:, 1] < taken)
        before = self.frame[0] + self.frame[1] + self.questions[rows, 1:]
        return pieces, torch.where(held.unsqueeze(1), ends + before + 1, 0)

    def to_find(self, rows: Tensor, dice: Tensor) -> tuple[Pieces, Pieces, Tensor, Tensor]:
        """Texts of the articles of ``rows`` (a), spread evenly, and questions about each of them.

        ``dice`` are a g 1+asked. Of a text longer than a window its beginning is taken.
        """
        first, count = self.near[self.home[rows]].unbind(1)  # a
        among = torch.arange(self.mix.passages) + dice[..., 0]  # a g
        text = (first[:, None] + (among * count[:, None] / self.mix.passages).long()).flatten()
        least, many = self.asked[text].unbind(1)
        asked = least[:, None] + (dice[..., 1:].flatten(0, 1) * many[:, None]).long()
        longest = self.mix.length - self.frame[0] - self.frame[2]
        questions, texts = self.questions[asked.flatten()], self.texts[text]
        alone = [
            Pieces(torch.zeros_like(own), cut_to(own, longest), torch.zeros(len(own)).bool())
            for own in (questions, texts)
        ]
        right = torch.arange(len(text)).repeat_interleave(self.mix.asked)
        return alone[0], alone[1], right, text

    def row(self, pieces: Pieces, count: int) -> tuple[Row, Tensor]:
        """All windows in one row, shortest first, and where each of them stands in that order.

        R answers about the first ``count`` of ``pieces``.
        """
        before, between, after = self.frame
        middle = between * pieces.paired  # m
        sizes = before + pieces.first[:, 1] + middle + pieces.second[:, 1] + after
        order = sizes.argsort(stable=True)
        rank = torch.empty_like(order).scatter_(0, order, torch.arange(len(order)))
        edges = torch.cat([sizes.new_zeros(1), sizes[order].cumsum(0)])
        owner = order.repeat_interleave(sizes[order])  # t, which piece
        position = torch.arange(len(owner)) - edges[rank[owner]]
        # Where each part begins in its window: question, between, text, after.
        head = before + pieces.first[:, 1]
        tail = head + middle
        stops = torch.stack([torch.full_like(head, before), head, tail, tail + pieces.second[:, 1]])
        part = (position >= stops[:, owner]).sum(0)  # t, 0 to 4
        special = len(self.pool) - sum(self.frame)
        sources = torch.stack(  # of a part's first token, less its place in the window
            [
                torch.full_like(head, special),
                pieces.first[:, 0] - before,
                special + before - head,
                pieces.second[:, 0] - tail,
                special + before + between - stops[3],
            ]
        )
        ids = self.pool[sources[part, owner] + position]
        second = (part >= 3) & pieces.paired[owner]
        told = torch.stack([ids, second.long(), position, (part == 3).long()]).int()
        tokens, segments, positions, inside = self.send(told).long().unsqueeze(1)
        read = edges[rank[:count]].unsqueeze(1) + torch.arange(int(sizes[:count].max()))  # b n
        real = read < edges[rank[:count] + 1].unsqueeze(1)
        lengths = tuple(sizes[order].tolist())
        mask = Packed(lengths, self.send(edges.int()), lengths[-1], len(owner))
        places = self.send(read.clamp(max=len(owner) - 1))
        row = Row(tokens, mask, segments, positions, inside.bool(), places, self.send(real))
        return row, rank

    def in_keys(self, sizes: Tensor, rank: Tensor, texts: Tensor, count: int) -> Keys:
        """Windows of these sizes (m) in stretches; the last of them are ``texts`` (p).

        ``rank`` is where each window stands in the row; the first ``count`` are to be read. Special
        tokens belong to the key beside them. Of a text that was cut the keys that are left count.
        """
        first, many = self.keys[texts].unbind(1)
        owner = torch.arange(len(texts)).repeat_interleave(many)
        tokens = self.key_lengths[ragged(first, many)]
        before = self.texts[texts, 1].cumsum(0) - self.texts[texts, 1]
        ends = tokens.cumsum(0) - before[owner]
        begins, inside = ends - tokens, sizes[-len(texts) :] - self.frame[0] - self.frame[2]
        held = (begins < inside[owner]) | (begins == 0)
        own = (torch.minimum(ends, inside[owner]) - begins)[held]
        counts = torch.bincount(owner[held], minlength=len(texts))
        own[counts.cumsum(0) - counts] += self.frame[0]
        own[counts.cumsum(0) - 1] += self.frame[2]
        others = len(sizes) - len(texts)
        every = torch.cat([torch.ones(others, dtype=torch.long), counts])  # m, stretches of each
        order = rank.argsort()
        places = ragged((every.cumsum(0) - every)[order], every[order])
        where = torch.empty_like(places).scatter_(0, places, torch.arange(len(places)))
        lengths = torch.cat([sizes[:others], own])[places]
        return Keys(lengths, where[count:others], where[others:], counts)

    def send(self, part: Tensor) -> Tensor:
        """A tensor on its way to ``place``; nobody waits for it."""
        if self.place.type != "cuda":
            return part.to(self.place)
        return part.pin_memory().to(self.place, non_blocking=True)


def ragged(first: Tensor, count: Tensor) -> Tensor:
    """``count`` numbers from ``first`` on, for each of both (m), one after another."""
    step = torch.arange(int(count.sum()))
    return step + (first - count.cumsum(0) + count).repeat_interleave(count)


def but(own: Tensor, first: Tensor, count: Tensor, dice: Tensor) -> Tensor:
    """One of ``count`` numbers from ``first`` on that is not ``own``, which is among them."""
    drawn = first + (dice * (count - 1)).long()
    return drawn + (drawn >= own)


def cut_to(stretch: Tensor, longest: int) -> Tensor:
    """The beginning of each stretch (m 2), where it is longer."""
    return torch.stack([stretch[:, 0], stretch[:, 1].clamp(max=longest)], 1)
