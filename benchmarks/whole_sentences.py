"""Hold back whole sentences of SST-2, and train on no phrase that is theirs alone.

GLUE's training file has 67,349 phrases of about 7,000 sentences, mixed; its dev file has sentences
that no phrase of it comes from. A tenth of the phrases, drawn by dice, is therefore judged far too
well: nearly all are parts of what was trained on.
"""

from random import Random


def split_whole_sentences(raw: bytes, share: float = 0.1, seed: int = 0) -> tuple[bytes, bytes]:
    """The file (a header, then phrase, tab, label) as what is trained on, and whole sentences."""
    header, *lines = raw.decode("utf-8").splitlines(keepends=True)
    words = {line: tuple(line.split("\t")[0].split()) for line in lines}
    sentences_with_phrase: dict[tuple[str, ...], set[str]] = {}  # phrase -> whole sentences it is a part of
    sentence_lines = []
    for line in sorted(words, key=lambda line: -len(words[line])):
        sentence_words = words[line]
        if sentence_words in sentences_with_phrase:
            continue
        sentence_lines.append(line)
        for first in range(len(sentence_words)):
            for end in range(first + 1, len(sentence_words) + 1):
                sentences_with_phrase.setdefault(sentence_words[first:end], set()).add(line)
    held_out = set(Random(seed).sample(sorted(sentence_lines), round(share * len(sentence_lines))))
    train_lines = [line for line in lines if not sentences_with_phrase[words[line]] <= held_out]
    sentence_lines = [line for line in words if line in held_out]
    return "".join([header, *train_lines]).encode(), "".join([header, *sentence_lines]).encode()
