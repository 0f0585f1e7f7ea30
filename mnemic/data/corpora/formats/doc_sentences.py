"""Format ``doc-sentences``: consecutive full sentences of one document."""

import random
from collections.abc import Sequence

from mnemic.data.corpora.formats.full_sentences import pack_sentences
from mnemic.data.corpora.formats.plan import SentenceEnds, SequencePlan, check_max_tokens


class DocSentences:
    """DOC-SENTENCES of RoBERTa: like ``full-sentences``, but within one document.

    The last sequence of a document may be short, so batches are best bounded by tokens.
    """

    def __call__(
        self, documents: Sequence[SentenceEnds], max_tokens: int, generator: random.Random
    ) -> list[SequencePlan]:
        """Plan the sequences of each document."""
        check_max_tokens("doc-sentences", max_tokens, 3)
        return [
            plan
            for document, sentence_ends in enumerate(documents)
            for plan in pack_sentences([(document, sentence_ends)], max_tokens)
        ]
