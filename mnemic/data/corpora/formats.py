"""Input formats of pre-training: which spans of which documents make one sequence.

Contract: ``format(documents, max_tokens, generator) → plans``. A document is given as the token
offsets of its sentence ends; a format never sees the tokens themselves. A sequence has at most
``max_tokens`` tokens: [CLS], then each span followed by [SEP]. Every token of every document is in
exactly one sequence, in order; only the second segment of a false pair is a copy. A sentence that
does not fit is cut into pieces that do, and no token is dropped. Four kinds are those that Liu et
al. 2019 (RoBERTa) compare in section 4.2, one is ALBERT's, and ``sentences`` is what all others can
be made of.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import NamedTuple, Protocol

from mnemic.models import IGNORE
from mnemic.recipe import ConfigError

NUM_PAIR_TOKENS = 3  # special tokens of a pair: [CLS] and two [SEP]
SentenceEnds = Sequence[int]  # number of tokens up to each sentence's end


class DocumentSpan(NamedTuple):
    """Tokens ``start`` to ``end`` (exclusive) of one document."""

    document: int
    start: int
    end: int


class SequencePlan(NamedTuple):
    """The plan of one sequence: [CLS], then each span followed by [SEP]."""

    spans: tuple[DocumentSpan, ...]
    segments: tuple[int, ...]  # the token type of each span
    follows: int  # 1: the second segment follows the first; 0: it does not, or is before it; IGNORE: no target


class SequenceFormat(Protocol):
    """A function that plans the sequences of documents."""

    def __call__(self, documents: Sequence[SentenceEnds], max_tokens: int, generator: Random) -> list[SequencePlan]: ...


def cut_sentences(sentence_ends: SentenceEnds, max_tokens: int) -> Iterator[tuple[int, int]]:
    """Yield the span of each sentence; cut those of more than ``max_tokens`` tokens.

    They are cut into as few pieces as possible, whose lengths differ by at most one token.
    """
    start = 0
    for end in sentence_ends:
        count = -(-(end - start) // max_tokens)
        borders = [start + (end - start) * piece // count for piece in range(count + 1)]
        yield from pairwise(borders)
        start = end


def check_max_tokens(kind: str, max_tokens: int, min_tokens: int) -> None:
    """Raise a ConfigError if sequences of ``max_tokens`` are too short for a format."""
    if max_tokens < min_tokens:
        raise ConfigError(f"{kind} needs sequences of at least {min_tokens} tokens, not {max_tokens}")


class FullSentences:
    """FULL-SENTENCES of RoBERTa: packed with full sentences, with [SEP] between documents.

    No next-sentence prediction; all tokens have type 0.
    """

    def __call__(self, documents: Sequence[SentenceEnds], max_tokens: int, generator: Random) -> list[SequencePlan]:
        """Plan the sequences of all documents together."""
        check_max_tokens("full-sentences", max_tokens, 3)
        return list(pack_sentences(enumerate(documents), max_tokens))


class DocSentences:
    """DOC-SENTENCES of RoBERTa: like ``full-sentences``, but within one document.

    The last sequence of a document may be short, so batches are best bounded by tokens.
    """

    def __call__(self, documents: Sequence[SentenceEnds], max_tokens: int, generator: Random) -> list[SequencePlan]:
        """Plan the sequences of each document."""
        check_max_tokens("doc-sentences", max_tokens, 3)
        return [plan for document in enumerate(documents) for plan in pack_sentences([document], max_tokens)]


class Sentences:
    """Each sentence by itself, from which all other kinds can be made without the texts.

    A sentence that goes on with the document of the one before follows (1), the first one of a
    document does not (0).
    """

    def __call__(self, documents: Sequence[SentenceEnds], max_tokens: int, generator: Random) -> list[SequencePlan]:
        """Plan a sequence for each sentence."""
        check_max_tokens("sentences", max_tokens, 3)
        return [
            SequencePlan((DocumentSpan(document, start, end),), (0,), int(start > 0))
            for document, sentence_ends in enumerate(documents)
            for start, end in cut_sentences(sentence_ends, max_tokens - 2)
        ]


def pack_sentences(documents: Iterable[tuple[int, SentenceEnds]], max_tokens: int) -> Iterator[SequencePlan]:
    """Pack full sentences, in order, into as few sequences as possible."""
    spans: list[DocumentSpan] = []
    size = 1  # with [CLS]
    for document, sentence_ends in documents:
        for start, end in cut_sentences(sentence_ends, max_tokens - 2):
            is_same_document = bool(spans) and spans[-1].document == document
            # The first sentence of a document also needs a [SEP].
            num_new = end - start + (0 if is_same_document else 1)
            if size + num_new > max_tokens:
                yield make_plan(spans)
                spans, size, is_same_document, num_new = [], 1, False, end - start + 1
            if is_same_document:
                spans[-1] = spans[-1]._replace(end=end)
            else:
                spans.append(DocumentSpan(document, start, end))
            size += num_new
    if spans:
        yield make_plan(spans)


def make_plan(spans: Sequence[DocumentSpan]) -> SequencePlan:
    """Plan a sequence of spans with token type 0 and no next-sentence target."""
    return SequencePlan(tuple(spans), (0,) * len(spans), IGNORE)


@dataclass(frozen=True, kw_only=True)
class SegmentPair:
    """SEGMENT-PAIR+NSP, the input of BERT: as many sentences as fit, split at random.

    ``short`` is the share of pairs with a random shorter target length. Where we differ from BERT:
    a pair is filled up to the limit, not beyond it and then truncated, so no token is lost.
    """

    short: float = 0.1

    def __post_init__(self) -> None:
        check_short("segment-pair", self.short)

    def __call__(self, documents: Sequence[SentenceEnds], max_tokens: int, generator: Random) -> list[SequencePlan]:
        """Plan the pairs of all documents."""
        check_max_tokens("segment-pair", max_tokens, 5)
        num_text_tokens = max_tokens - NUM_PAIR_TOKENS

        def draw_length() -> int:
            is_short = generator.random() < self.short
            return generator.randint(2, num_text_tokens) if is_short else num_text_tokens

        builder = PairBuilder(documents, max_tokens, generator, max_sentences=num_text_tokens)
        return builder.make_plans(draw_length)


class SentencePair:
    """SENTENCE-PAIR+NSP of RoBERTa: like ``segment-pair``, but a segment is one sentence.

    Sequences are short, so batches are best bounded by tokens.
    """

    def __call__(self, documents: Sequence[SentenceEnds], max_tokens: int, generator: Random) -> list[SequencePlan]:
        """Plan the pairs of all documents."""
        check_max_tokens("sentence-pair", max_tokens, 5)
        return PairBuilder(documents, max_tokens, generator, max_sentences=1).make_plans(
            lambda: max_tokens - NUM_PAIR_TOKENS
        )


@dataclass(frozen=True, kw_only=True)
class SegmentOrder:
    """Two consecutive segments of one document, half of them swapped: sentence order (ALBERT).

    Lan et al. 2020 (arXiv:1909.11942), section 3.1. Pairs are those of ``segment-pair``, cut to
    length before half of them are swapped, so that lengths do not say which. A pair in order
    follows (1), a swapped one does not (0). A single last sentence stays alone, without a target.
    """

    short: float = 0.1

    def __post_init__(self) -> None:
        check_short("segment-order", self.short)

    def __call__(self, documents: Sequence[SentenceEnds], max_tokens: int, generator: Random) -> list[SequencePlan]:
        """Plan the pairs of each document, then swap half of them."""
        check_max_tokens("segment-order", max_tokens, 5)
        in_order = SegmentPair(short=self.short)
        plans = []
        for number, document in enumerate(documents):
            for plan in in_order([document], max_tokens, generator):
                spans = [span._replace(document=number) for span in plan.spans]
                is_swapped = len(spans) > 1 and generator.random() < 0.5
                follows = IGNORE if len(spans) == 1 else int(not is_swapped)
                plans.append(SequencePlan(tuple(spans[::-1] if is_swapped else spans), plan.segments, follows))
        return plans


def check_short(kind: str, short: float) -> None:
    """Raise a ConfigError unless the share of short pairs is a share."""
    if not 0 <= short <= 1:
        raise ConfigError(f"{kind}.short is a share from 0 to 1, not {short}")


class PairBuilder:
    """Pairs up segments of documents; a segment has at most ``max_sentences`` sentences.

    After a false pair the next pair starts at the end of its first segment, so nothing is skipped.
    A single last sentence can only be in a false pair; for each of these a later false pair becomes
    a true one, so that half are true. Where no other document has a token, pairs are true and have
    no target (IGNORE).
    """

    def __init__(
        self, documents: Sequence[SentenceEnds], max_tokens: int, generator: Random, *, max_sentences: int
    ) -> None:
        num_text_tokens = max_tokens - NUM_PAIR_TOKENS
        self.sentences = [  # of each document; any two fit into a sequence
            list(cut_sentences(sentence_ends, num_text_tokens // 2)) for sentence_ends in documents
        ]
        self.nonempty = [document for document, sentences in enumerate(self.sentences) if sentences]
        self.rank = {document: rank for rank, document in enumerate(self.nonempty)}
        self.generator, self.max_sentences = generator, max_sentences
        self.pending_true_pairs = 0  # to make up for pairs that had to be false

    def make_plans(self, draw_length: Callable[[], int]) -> list[SequencePlan]:
        """Plan all pairs; ``draw_length`` returns the next pair's target length in tokens."""
        plans = []
        for document in self.nonempty:
            sentence = 0
            while sentence < len(self.sentences[document]):
                plan, sentence = self.make_pair(document, sentence, draw_length())
                plans.append(plan)
        return plans

    def make_pair(self, document: int, start: int, length: int) -> tuple[SequencePlan, int]:
        """Plan the pair from sentence ``start`` on, and return the next pair's first sentence."""
        sentences = self.sentences[document]
        end = find_segment_end(sentences, start, length, min_sentences=2, max_sentences=2 * self.max_sentences)
        if end - start == 1:
            return self.pair_last_sentence(DocumentSpan(document, *sentences[start]), length), end
        middle = self.generator.randrange(start + 1, end)
        first = DocumentSpan(document, sentences[start][0], sentences[middle - 1][1])
        second = DocumentSpan(document, first.end, sentences[end - 1][1])
        if len(self.nonempty) == 1:
            return SequencePlan((first, second), (0, 1), IGNORE), end
        if self.generator.random() < 0.5:
            return SequencePlan((first, second), (0, 1), 1), end
        if self.pending_true_pairs:
            self.pending_true_pairs -= 1
            return SequencePlan((first, second), (0, 1), 1), end
        max_tokens = max(length, second.end - first.start) - (first.end - first.start)
        false_segment = self.draw_false_segment(document, max_tokens)
        return SequencePlan((first, false_segment), (0, 1), 0), middle

    def pair_last_sentence(self, first: DocumentSpan, length: int) -> SequencePlan:
        """Plan the pair of a document's single last sentence, with a false segment."""
        if len(self.nonempty) == 1:
            return SequencePlan((first,), (0,), IGNORE)
        # Half of these pairs should have been true, which is impossible.
        self.pending_true_pairs += self.generator.random() < 0.5
        size = first.end - first.start
        max_tokens = max(length, 2 * size) - size
        return SequencePlan((first, self.draw_false_segment(first.document, max_tokens)), (0, 1), 0)

    def draw_false_segment(self, document: int, max_tokens: int) -> DocumentSpan:
        """Draw a span of another document; cut it if not even one sentence fits."""
        step = self.generator.randrange(1, len(self.nonempty))
        other_document = self.nonempty[(self.rank[document] + step) % len(self.nonempty)]
        sentences = self.sentences[other_document]
        sentence = self.generator.randrange(len(sentences))
        start = sentences[sentence][0]
        segment_end = find_segment_end(
            sentences, sentence, max_tokens, min_sentences=1, max_sentences=self.max_sentences
        )
        end = sentences[segment_end - 1][1]
        return DocumentSpan(other_document, start, min(end, start + max_tokens))


def find_segment_end(
    sentences: Sequence[tuple[int, int]], first: int, max_tokens: int, *, min_sentences: int, max_sentences: int
) -> int:
    """Find how many sentences from ``first`` on fit; return the index after the last one."""
    start, end = sentences[first][0], min(first + min_sentences, len(sentences))
    while end < min(first + max_sentences, len(sentences)) and sentences[end][1] - start <= max_tokens:
        end += 1
    return end


FORMATS: dict[str, Callable[..., SequenceFormat]] = {
    "segment-pair": SegmentPair,
    "segment-order": SegmentOrder,
    "sentence-pair": SentencePair,
    "full-sentences": FullSentences,
    "doc-sentences": DocSentences,
    "sentences": Sentences,
}
