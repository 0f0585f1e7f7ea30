"""Cut documents into the texts that are embedded: lines, sentences, passages."""

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Literal

from mnemic.text import Tokenizer
from mnemic.text.sentence_spans import count_sentence_tokens

Unit = Literal["documents", "lines", "sentences", "passages"]


def cut_documents(documents: Iterable[str], unit: Unit, tokenizer: Tokenizer, max_tokens: int) -> Iterator[str]:
    """Cut documents into sentences, or into passages of whole sentences up to ``max_tokens``.

    A longer sentence is a passage of its own. Documents and lines stay as they are.
    """
    if unit in ("documents", "lines"):
        yield from documents
        return
    for document in documents:
        offsets = tokenizer.encode(document, special=False).offsets
        lengths = count_sentence_tokens(document, offsets)
        for first, end in group_sentences(lengths, 0 if unit == "sentences" else max_tokens):
            if end > first:
                yield document[offsets[first][0] : offsets[end - 1][1]]


def group_sentences(lengths: list[int], max_tokens: int) -> Iterator[tuple[int, int]]:
    """Group neighboring sentences up to ``max_tokens``; yield each group's first and end token."""
    first = 0
    ends = list(accumulate(lengths))
    for number, end in enumerate(ends):
        if number + 1 == len(ends) or ends[number + 1] - first > max_tokens:
            yield first, end
            first = end
