"""Hold back whole sentences of SST-2, and train on no phrase that is theirs alone.

GLUE's training file has 67,349 phrases of about 7,000 sentences, mixed; its dev file has sentences
that no phrase of it comes from. A tenth of the phrases, drawn by dice, is therefore judged far too
well: nearly all are parts of what was trained on.
"""

from random import Random


def held_back(raw: bytes, share: float = 0.1, seed: int = 0) -> tuple[bytes, bytes]:
    """The file (a header, then phrase, tab, label) as what is trained on, and whole sentences."""
    header, *lines = raw.decode("utf-8").splitlines(keepends=True)
    words = {line: tuple(line.split("\t")[0].split()) for line in lines}
    within: dict[tuple[str, ...], set[str]] = {}  # phrase -> whole sentences it is a part of
    whole = []
    for line in sorted(words, key=lambda line: -len(words[line])):
        own = words[line]
        if own in within:
            continue
        whole.append(line)
        for first in range(len(own)):
            for end in range(first + 1, len(own) + 1):
                within.setdefault(own[first:end], set()).add(line)
    held = set(Random(seed).sample(sorted(whole), round(share * len(whole))))
    kept = [line for line in lines if not within[words[line]] <= held]
    whole = [line for line in words if line in held]
    return "".join([header, *kept]).encode(), "".join([header, *whole]).encode()
