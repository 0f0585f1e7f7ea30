"""Cut texts into windows and give each its targets, one function a kind."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

from mnemic.data.text_tasks.batches import Kind, Numbered, TextSet, text_set
from mnemic.data.text_tasks.examples import Asked, Labelled, Tagged, TextError
from mnemic.models import IGNORE
from mnemic.text import Encoded, Room, Tokenizer, Windowed
from mnemic.text.windows import owners, window_alone, window_pair, window_question

AT_ONCE = 1000  # texts that are encoded together


def labelled_set(
    examples: Sequence[Labelled],
    tokenizer: Tokenizer,
    room: Room,
    *,
    labels: Sequence[str],
    kind: Kind = "classes",
    metric: str = "accuracy",
) -> TextSet:
    """Texts or pairs with their classes, or with their numbers (``kind="numbers"``).

    A class that is not among ``labels`` is unknown, and is never right.
    """
    ids = {label: number for number, label in enumerate(labels)}

    def numbered(own: Labelled, first: Encoded, second: Encoded) -> Numbered:
        if own.pair is None:
            cut = window_alone(tokenizer, first, room)
        else:
            cut = window_pair(tokenizer, first, second, room)
        return Numbered(cut, number_of(own) if kind == "numbers" else ids.get(own.label, IGNORE))

    firsts = ids_only(tokenizer, (own.text for own in examples))
    seconds = ids_only(tokenizer, (own.pair or "" for own in examples))
    each = map(numbered, examples, firsts, seconds)
    return text_set(kind, each, examples, tokenizer, labels=labels, metric=metric)


def ids_only(tokenizer: Tokenizer, texts: Iterable[str]) -> Iterator[Encoded]:
    """Texts as ids alone, many at a time."""
    left = iter(texts)
    while part := list(islice(left, AT_ONCE)):
        yield from (Encoded(ids, [], [], []) for ids in tokenizer.encode_all(part))


def number_of(own: Labelled) -> float:
    try:
        return float(own.label)
    except ValueError:
        raise TextError(
            f"the label {own.label!r} of {own.text[:40]!r} is no number; for names of classes set "
            'data.labels = "names"'
        ) from None


def asked_set(examples: Sequence[Asked], tokenizer: Tokenizer, room: Room) -> TextSet:
    """Questions with their texts: the columns of the answer's first and last token, 0 = none."""

    @lru_cache(maxsize=8)  # questions about the same text stand together
    def encoded(text: str) -> Encoded:
        return tokenizer.encode(text, special=False)

    def numbered(own: Asked) -> Numbered:
        cut = window_question(tokenizer, own.question, encoded(own.text), room)
        if own.start < 0:
            return Numbered(cut, [(0, 0)] * len(cut.windows))
        return Numbered(cut, answer_columns(cut, own.start, own.start + len(own.answers[0])))

    return text_set("spans", map(numbered, examples), examples, tokenizer, metric="f1")


def answer_columns(cut: Windowed, start: int, end: int) -> list[tuple[int, int]]:
    """For each window the columns of the tokens that quote ``start`` to ``end``; 0, 0 without."""
    quoting = [i for i, (a, b) in enumerate(cut.offsets) if a < end and b > start]
    columns = []
    for own in cut.windows:
        whole = bool(quoting) and own.held.start <= quoting[0] and quoting[-1] < own.held.end
        shift = own.place - own.held.start + 1
        columns.append((quoting[0] + shift, quoting[-1] + shift) if whole else (0, 0))
    return columns


def tagged_set(
    examples: Sequence[Tagged], tokenizer: Tokenizer, room: Room, *, labels: Sequence[str]
) -> TextSet:
    """Words with their tags: the first token of a word has its tag, in the window that owns it."""
    ids = {label: number for number, label in enumerate(labels)}

    def numbered(own: Tagged) -> Numbered:
        cut = window_alone(tokenizer, own.text, room)
        tags = [IGNORE] * len(cut.offsets)
        for token, tag in zip(first_tokens(cut.offsets, own.words), own.tags):
            if token is not None:
                tags[token] = ids.get(tag, IGNORE)
        owner = owners([window.held for window in cut.windows])
        targets: list[int] = []
        for number, window in enumerate(cut.windows):
            asked = [IGNORE] * len(window.ids)
            for token in range(*window.held):
                if owner[token] == number:
                    asked[window.place + token - window.held.start] = tags[token]
            targets += asked
        return Numbered(cut, targets)

    each = map(numbered, examples)
    return text_set("tags", each, examples, tokenizer, labels=labels, metric="entity f1")


def first_tokens(
    offsets: Sequence[tuple[int, int]], words: Sequence[tuple[int, int]]
) -> list[int | None]:
    """Each word's first token; None for a word of which the tokenizer leaves nothing."""
    starts = [start for start, _ in offsets]
    found: list[int | None] = []
    for start, end in words:
        place = bisect_left(starts, start)
        while place < len(offsets) and starts[place] < end and offsets[place][1] <= start:
            place += 1  # a token that stands for nothing
        found.append(place if place < len(offsets) and starts[place] < end else None)
    return found
