"""Hold whole sentences out of a file of phrases, such as SST-2's."""

from random import Random


def split_whole_sentences(raw: bytes, share: float = 0.1, seed: int = 0) -> tuple[bytes, bytes]:
    """Split a file of phrases into training phrases and held-out whole sentences.

    The file has a header, then lines of phrase, tab and label. GLUE's training file of SST-2 has
    67,349 phrases of about 7,000 sentences, mixed; its dev file has whole sentences that share no
    phrase with them. A random tenth of the phrases is therefore too easy as a validation split:
    nearly all of them are parts of training sentences.
    """
    header, *lines = raw.decode("utf-8").splitlines(keepends=True)
    words = {line: tuple(line.split("\t")[0].split()) for line in lines}
    sentences_with_phrase: dict[tuple[str, ...], set[str]] = {}  # phrase -> lines of its sentences
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
