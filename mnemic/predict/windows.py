"""Let a network read texts: windows by length, or in turn; then put together text by text.

Shapes: e texts, w windows, n tokens, c classes or tags, s keys, d width.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.data.text_tasks.batches import TextSet, documents_of
from mnemic.data.text_tasks.encode_windows import first_tokens
from mnemic.models import Read, Windows
from mnemic.models.segment_text_model import InTurn, MemoryReader
from mnemic.predict.slot_evidence import Watch
from mnemic.respond.merge_windows import Span, best_of_windows, best_spans
from mnemic.text.sentence_spans import key_lengths
from mnemic.text.windows import Stretch, owners

AT_ONCE = 16_384  # tokens a batch, with padding: memory and time depend on it, results do not


@torch.no_grad()
def each_window(
    network: nn.Module,
    texts: TextSet,
    take: Callable[[Any, Windows], Tensor],
    watch: Watch | None = None,
) -> list[Tensor]:
    """What ``take`` (w …) keeps of every window, in the order of the windows.

    Where a memory goes along, ``watch`` is told which windows were read, and what of the memory.
    """
    was = network.training
    network.eval()
    read_all: Any = windows_in_turn if isinstance(network, MemoryReader) else by_length
    found: list[Tensor | None] = [None] * (len(texts.begins) - 1)
    for chosen, inputs, read in read_all(network, texts):
        for window, own in zip(chosen.tolist(), take(read, inputs).float().cpu()):
            found[window] = own
        if watch is not None and isinstance(read, InTurn) and read.looked is not None:
            watch(chosen.tolist(), read.looked)
    network.train(was)
    return [own for own in found if own is not None]


def by_length(network: nn.Module, texts: TextSet) -> Iterator[tuple[Tensor, Windows, Read]]:
    """All windows in batches of like length, the longest first, and what was read in them."""
    lengths = texts.begins[1:] - texts.begins[:-1]
    order = lengths.argsort(descending=True, stable=True)
    start, sizes = 0, lengths[order].tolist()
    while start < len(sizes):
        count = max(AT_ONCE // max(sizes[start], 1), 1)
        chosen = order[start : start + count]
        inputs, _ = texts.windows(chosen)
        yield chosen, inputs, network(inputs)
        start += count


def windows_in_turn(network: nn.Module, texts: TextSet) -> Iterator[tuple[Tensor, Windows, InTurn]]:
    """Texts of like length together, stretch by stretch, with the memory of what came before."""
    first, counts = texts.first[:-1], texts.first.diff()
    order = counts.argsort(descending=True, stable=True)
    width = max(int(texts.begins.diff().max()), 1)
    start = 0
    while start < len(order):
        most = int(counts[order[start]])
        rows = order[start : start + max(AT_ONCE // (width * most), 1)]
        carried = None
        for begin in range(0, most, max(AT_ONCE // width, 1)):
            left = (counts[rows] - begin).clamp(min=0, max=max(AT_ONCE // width, 1))
            documents = documents_of(left)
            table = (first[rows] + begin).unsqueeze(1) + torch.arange(
                documents.shape[1], device=rows.device
            )
            chosen = table[documents >= 0]
            inputs = texts.windows(chosen)[0]._replace(documents=documents)
            read = network(inputs, carried)
            carried = read.carried
            yield chosen, inputs, read
        start += len(rows)


def class_scores(network: nn.Module, texts: TextSet, watch: Watch | None = None) -> Tensor:
    """Each text's scores of the classes, or its number: e c."""
    if not len(texts):
        return torch.zeros(0, 1)
    scores = torch.stack(each_window(network, texts, lambda read, _: read.scores, watch))
    if isinstance(network, MemoryReader):
        return scores[texts.first[1:].cpu() - 1]  # the last one knows the whole text
    counts = (texts.first[1:] - texts.first[:-1]).cpu()
    return torch.segment_reduce(scores, "mean", lengths=counts, axis=0)  # as ``mean_windows``


def spans(
    network: nn.Module, texts: TextSet, longest: int, watch: Watch | None = None
) -> list[Span]:
    """Each question's best answer; its tokens are counted from the text's first one."""

    def best(read: Any, _: Windows) -> Tensor:
        ends, none = best_spans(read.scores, longest)
        return torch.cat([ends, none.unsqueeze(1)], 1)  # w 4

    windows = each_window(network, texts, best, watch)
    place, held, first = (own.tolist() for own in (texts.place, texts.held, texts.first))
    found = []
    for start, end in pairwise(first):
        rows = torch.stack(windows[start:end])
        own = best_of_windows(rows[:, :3], rows[:, 3])
        shift = held[start + own.window][0] - place[start + own.window]
        found.append(own._replace(first=own.first + shift, last=own.last + shift))
    return found


def tags(network: nn.Module, texts: TextSet, watch: Watch | None = None) -> list[Tensor]:
    """Each text's scores of the tags, word by word; a word without a token is ``O``: n c."""
    windows = each_window(network, texts, lambda read, _: read.scores, watch)  # n c each
    place, held, first = (own.tolist() for own in (texts.place, texts.held, texts.first))
    found = []
    for number, example in enumerate(texts.examples):
        own = range(first[number], first[number + 1])
        owner = owners([Stretch(*held[window]) for window in own])
        rows = []
        for token in first_tokens(texts.offsets(number), example.words):
            if token is None or token >= len(owner):
                rows.append(outside(len(texts.labels)))
                continue
            window = own[owner[token]]
            rows.append(windows[window][place[window] + token - held[window][0]])
        found.append(torch.stack(rows) if rows else torch.zeros(0, len(texts.labels)))
    return found


def outside(count: int) -> Tensor:
    """The scores of a word that is surely ``O``, the first of the tags."""
    return torch.tensor([0.0] + [-torch.inf] * (count - 1))


def vectors(network: nn.Module, texts: TextSet) -> Tensor:
    """Each text's vector (e d): the mean of all its tokens' states, of length 1.

    A token that is in two windows counts twice. A text without tokens is all zeros.
    """

    def total(read: Any, inputs: Windows) -> Tensor:
        return (read.states * inputs.inside.unsqueeze(-1)).sum(1)

    if not len(texts):
        return torch.zeros(0, network.encode.width)  # type: ignore[union-attr, arg-type]
    sums = torch.stack(each_window(network, texts, total))
    counts = (texts.first[1:] - texts.first[:-1]).cpu()
    owner = torch.arange(len(texts)).repeat_interleave(counts)
    whole = sums.new_zeros(len(texts), sums.shape[1]).index_add(0, owner, sums)
    return nn.functional.normalize(whole, dim=1)


def key_vectors(network: nn.Module, texts: TextSet) -> list[Tensor]:
    """The vectors of each text's keys (s d), of length 1: the means of their tokens' states."""
    return [nn.functional.normalize(own, dim=1) for own in key_sums(network, texts)]


def vectors_and_keys(network: nn.Module, texts: TextSet) -> tuple[Tensor, list[Tensor]]:
    """What ``vectors`` and ``key_vectors`` give, of one reading: a text is all of its keys."""
    if not len(texts):
        return vectors(network, texts), []
    sums = key_sums(network, texts)
    whole = torch.stack([own.sum(0) for own in sums])
    keys = [nn.functional.normalize(own, dim=1) for own in sums]
    return nn.functional.normalize(whole, dim=1), keys


@torch.no_grad()
def key_sums(network: nn.Module, texts: TextSet) -> list[Tensor]:
    """The sums of the states of each key's tokens: s d of each text."""
    was = network.training
    network.eval()
    read_all: Any = windows_in_turn if isinstance(network, MemoryReader) else by_length
    width: int = network.encode.width  # type: ignore[union-attr, assignment]
    lengths = [
        key_lengths(own.text, texts.offsets(number)) for number, own in enumerate(texts.examples)
    ]
    sums = [torch.zeros(len(own), width) for own in lengths]
    owner = torch.arange(len(texts)).repeat_interleave(texts.first.diff().cpu()).tolist()
    place, held = texts.place.tolist(), texts.held.tolist()
    for chosen, inputs, read in read_all(network, texts):
        numbers = torch.full(inputs.tokens.shape, -1)
        for row, window in enumerate(chosen.tolist()):
            own = torch.tensor(lengths[owner[window]])
            of_tokens = torch.arange(len(own)).repeat_interleave(own)
            stretch = of_tokens[slice(*held[window])]
            numbers[row, place[window] : place[window] + len(stretch)] = stretch
        each = torch.arange(int(numbers.max()) + 1).view(-1, 1, 1)
        member = (numbers == each).transpose(0, 1).to(read.states)  # w s n
        pooled = (member @ read.states).float().cpu()
        for window, own in zip(chosen.tolist(), pooled):
            text = sums[owner[window]][: len(own)]  # another window may have the other keys
            text += own[: len(text)]
    network.train(was)
    return sums
