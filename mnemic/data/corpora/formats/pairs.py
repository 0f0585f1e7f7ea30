"""Formats ``segment-pair`` and ``sentence-pair``: pairs for next-sentence prediction.

In half of all pairs the second segment follows the first (Devlin et al. 2019). The two formats
differ in the length of a segment.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from mnemic.data.corpora.formats.plan import DocumentSpan, SentenceEnds, SequencePlan, check_max_tokens, cut_sentences
from mnemic.models import IGNORE
from mnemic.recipe import ConfigError

NUM_SPECIAL_TOKENS = 3  # [CLS] and two [SEP]


@dataclass(frozen=True, kw_only=True)
class SegmentPair:
    """SEGMENT-PAIR+NSP, the input of BERT: as many sentences as fit, split at random.

    ``short`` is the share of pairs with a random shorter target length. Where we differ from BERT:
    a pair is filled up to the limit, not beyond it and then truncated, so no token is lost.
    """

    short: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.short <= 1:
            raise ConfigError(f"segment-pair.short is a share from 0 to 1, not {self.short}")

    def __call__(self, documents: Sequence[SentenceEnds], max_tokens: int, generator: Random) -> list[SequencePlan]:
        """Plan the pairs of all documents."""
        check_max_tokens("segment-pair", max_tokens, 5)
        num_text_tokens = max_tokens - NUM_SPECIAL_TOKENS

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
            lambda: max_tokens - NUM_SPECIAL_TOKENS
        )


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
        num_text_tokens = max_tokens - NUM_SPECIAL_TOKENS
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
