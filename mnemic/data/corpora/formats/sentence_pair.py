"""Format ``sentence-pair``: two single sentences."""

import random
from collections.abc import Sequence

from mnemic.data.corpora.formats.pairs import NUM_SPECIAL_TOKENS, PairBuilder
from mnemic.data.corpora.formats.plan import SentenceEnds, SequencePlan, check_max_tokens


class SentencePair:
    """SENTENCE-PAIR+NSP of RoBERTa: like ``segment-pair``, but a segment is one sentence.

    Sequences are short, so batches are best bounded by tokens.
    """

    def __call__(
        self, documents: Sequence[SentenceEnds], max_tokens: int, generator: random.Random
    ) -> list[SequencePlan]:
        """Plan the pairs of all documents."""
        check_max_tokens("sentence-pair", max_tokens, 5)
        return PairBuilder(documents, max_tokens, generator, max_sentences=1).make_plans(
            lambda: max_tokens - NUM_SPECIAL_TOKENS
        )
