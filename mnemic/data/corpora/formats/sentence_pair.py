"""Two single sentences, true or false neighbours."""

import random
from collections.abc import Sequence

from mnemic.data.corpora.formats.pairs import SPECIALS, Pairs
from mnemic.data.corpora.formats.plan import Ends, Plan, check_room


class SentencePair:
    """SENTENCE-PAIR+NSP of RoBERTa: as ``segment-pair``, but a segment is one sentence.

    Sequences are short, so that batches are best cut by tokens.
    """

    def __call__(self, documents: Sequence[Ends], most: int, dice: random.Random) -> list[Plan]:
        check_room("sentence-pair", most, 5)
        return Pairs(documents, most, dice, sentences=1).plans(lambda: most - SPECIALS)
