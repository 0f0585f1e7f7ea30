"""Format ``segment-pair``: two segments of several sentences each."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from mnemic.data.corpora.formats.pairs import NUM_SPECIAL_TOKENS, PairBuilder
from mnemic.data.corpora.formats.plan import SentenceEnds, SequencePlan, check_max_tokens
from mnemic.recipe import ConfigError


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

    def __call__(
        self, documents: Sequence[SentenceEnds], max_tokens: int, generator: random.Random
    ) -> list[SequencePlan]:
        """Plan the pairs of all documents."""
        check_max_tokens("segment-pair", max_tokens, 5)
        num_text_tokens = max_tokens - NUM_SPECIAL_TOKENS

        def draw_length() -> int:
            is_short = generator.random() < self.short
            return generator.randint(2, num_text_tokens) if is_short else num_text_tokens

        builder = PairBuilder(documents, max_tokens, generator, max_sentences=num_text_tokens)
        return builder.make_plans(draw_length)
