"""Whole sentences, one after another, each sequence within one document."""

import random
from collections.abc import Sequence

from mnemic.data.corpora.formats.full_sentences import packed
from mnemic.data.corpora.formats.plan import Ends, Plan, check_room


class DocSentences:
    """DOC-SENTENCES of RoBERTa: as ``full-sentences``, but no sequence crosses a border.

    The last sequence of a document may be short, so that batches are best cut by tokens.
    """

    def __call__(self, documents: Sequence[Ends], most: int, dice: random.Random) -> list[Plan]:
        check_room("doc-sentences", most, 3)
        return [
            plan for number, ends in enumerate(documents) for plan in packed([(number, ends)], most)
        ]
