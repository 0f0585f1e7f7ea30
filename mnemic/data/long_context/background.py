"""Background text for long documents: tokenized novels, split by whole novels."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

import numpy as np

from mnemic.data.contract import SPLITS, Split
from mnemic.data.corpora.read_documents import Corpus, CorpusError
from mnemic.data.corpora.split import split_of
from mnemic.data.long_context.hide import SentenceTokens
from mnemic.text import Tokenizer
from mnemic.text.rules import find_sentence_ends

HELD_OUT_SHARES = {"validation": 0.1, "test": 0.2}  # of all novels
NUM_SENTENCES = 300  # per generated novel

NOUNS = ["road", "mill", "valley", "harbour", "chapel", "market", "meadow", "bridge", "tower"]
ADJECTIVES = ["old", "quiet", "narrow", "grey", "distant", "little", "broken", "green", "silent"]
VERBS = ["lay", "stood", "waited", "slept", "shone", "faded", "rested", "trembled", "glowed"]
TIMES = ["at dawn", "in the rain", "all winter", "by night", "for years", "at noon", "in autumn"]


@dataclass(frozen=True)
class Background:
    """The token ids of novels in one array; reading a sentence copies nothing."""

    ids: np.ndarray  # int32, the tokens of all sentences
    sentence_starts: np.ndarray  # the first token of each sentence, and the end
    novel_starts: np.ndarray  # the first sentence of each novel, and the end

    def __len__(self) -> int:
        return len(self.novel_starts) - 1

    def sentence_ids(self, number: int) -> np.ndarray:
        """Return the token ids of a sentence."""
        return self.ids[self.sentence_starts[number] : self.sentence_starts[number + 1]]

    @cached_property
    def sentences(self) -> list[SentenceTokens]:
        """Return all sentences; cached, since batches read them again and again."""
        return [SentenceTokens(self.sentence_ids(number)) for number in range(len(self.sentence_starts) - 1)]

    def stream_sentences(self, generator: Random) -> Iterator[SentenceTokens]:
        """Yield sentences endlessly: a novel from a random sentence on, then another."""
        while True:
            novel = generator.randrange(len(self))
            start = int(self.novel_starts[novel]) + generator.randrange(self.count_sentences(novel))
            yield from self.sentences[start : int(self.novel_starts[novel + 1])]

    def iterate_novel(self, novel: int, start: int = 0) -> Iterator[np.ndarray]:
        """Yield the token ids of a novel's sentences from the ``start``-th on."""
        for number in range(self.novel_starts[novel] + start, self.novel_starts[novel + 1]):
            yield self.sentence_ids(number)

    def count_sentences(self, novel: int) -> int:
        """Count the sentences of a novel."""
        return int(self.novel_starts[novel + 1] - self.novel_starts[novel])


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences, with all whitespace as single spaces."""
    normalized = " ".join(text.split())
    ends = [0, *find_sentence_ends(normalized), len(normalized)]
    sentences = [normalized[start:end].strip() for start, end in itertools.pairwise(ends)]
    return [sentence for sentence in sentences if sentence]


def read_novels(folder: str) -> dict[Split, list[list[str]]]:
    """Read the sentences of each novel, by split; without a folder generate novels.

    ``folder`` is a folder or file that ``mnemic.data.corpora`` reads: each document is a novel. The
    split of a novel depends only on its text; an empty split gets the last novel of the largest.
    """
    if not folder:
        return {split: [make_novel(Random(f"{split}/{number}")) for number in range(4)] for split in SPLITS}
    novels: dict[Split, list[list[str]]] = {split: [] for split in SPLITS}
    for text in Corpus.from_paths([folder]).read():
        if novel := split_sentences(text):
            novels[split_of(text, **HELD_OUT_SHARES)].append(novel)
    num_novels = sum(len(split_novels) for split_novels in novels.values())
    if num_novels < len(novels):
        raise CorpusError(
            f"{folder} has {num_novels} texts; background needs at least 3, so that those of the "
            "test are never seen in training"
        )
    for split, split_novels in novels.items():
        if not split_novels:
            largest_split: Split = max(novels, key=lambda name: len(novels[name]))
            novels[split] = [novels[largest_split].pop()]
    return novels


def make_novel(generator: Random) -> list[str]:
    """Generate a novel of simple random sentences, for use without files."""
    return [
        f"the {generator.choice(ADJECTIVES)} {generator.choice(NOUNS)} {generator.choice(VERBS)} "
        f"{generator.choice(TIMES)} ."
        for _ in range(NUM_SENTENCES)
    ]


def encode_arrays(texts: Iterable[str], tokenizer: Tokenizer) -> list[np.ndarray]:
    """Encode texts as arrays of token ids, without special tokens."""
    return [np.array(ids, dtype=np.int32) for ids in tokenizer.encode_batch(list(texts))]


def encode_novels(novels: Sequence[Sequence[str]], tokenizer: Tokenizer) -> Background:
    """Tokenize novels; sentences without tokens are dropped."""
    sentences: list[np.ndarray] = []
    novel_starts = [0]
    for novel in novels:
        sentences += [ids for ids in encode_arrays(novel, tokenizer) if len(ids)]
        if len(sentences) > novel_starts[-1]:
            novel_starts.append(len(sentences))
    sentence_starts = np.cumsum([0, *(len(row) for row in sentences)])
    all_ids = np.concatenate(sentences) if sentences else np.zeros(0, dtype=np.int32)
    return Background(all_ids, sentence_starts, np.array(novel_starts))
