"""Split a text's tokens into sentence spans, each of which gets its own vector.

A network's sentence spans must be cut in use as they were in training, where nothing but a
tokenizer is installed; so the rule is simpler than that of ``split_sentences``, and its errors do
no harm.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

MIN_TOKENS = 5  # per span: fewer are an initial or a number, or mean little alone

_END = re.compile(
    r"(?<=[.!?])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W_a-z])"  # a stop, then no small letter
    r"|(?<=[。！？])(?![”’」』）])|\n"
)


def count_sentence_tokens(text: str, offsets: Sequence[tuple[int, int]]) -> list[int]:
    """Split a text's tokens by sentence and return the number of tokens in each.

    ``offsets`` are the tokens' character offsets. Every text has at least one span.
    """
    starts = [start for start, _ in offsets]
    ends = [bisect_left(starts, match.end()) for match in _END.finditer(text)]
    cuts = [0]
    for end in ends:
        if end - cuts[-1] >= MIN_TOKENS and len(starts) - end >= MIN_TOKENS:
            cuts.append(end)
    return [end - start for start, end in pairwise([*cuts, len(starts)])]
