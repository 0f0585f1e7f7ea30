"""The keys of a text: stretches of it, about its sentences, that have a vector each.

A network's keys must be cut in use as they were in training, where nothing but a tokenizer is
installed; so the rule is simpler than that of ``sentences``, and what it gets wrong does no harm.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

LEAST = 5  # tokens of a key: fewer are an initial, a number, or say little alone

_END = re.compile(
    r"(?<=[.!?])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W_a-z])"  # a stop, then no small letter
    r"|(?<=[。！？])(?![”’」』）])|\n"
)


def key_lengths(text: str, offsets: Sequence[tuple[int, int]]) -> list[int]:
    """How many of a text's tokens each of its keys has, in order. Every text has a key."""
    starts = [start for start, _ in offsets]
    ends = [bisect_left(starts, found.end()) for found in _END.finditer(text)]
    cuts = [0]
    for end in ends:
        if end - cuts[-1] >= LEAST and len(starts) - end >= LEAST:
            cuts.append(end)
    return [end - start for start, end in pairwise([*cuts, len(starts)])]
