"""Formats ``full-sentences`` and ``doc-sentences``: consecutive full sentences, without pairs."""

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from mnemic.data.corpora.formats.plan import DocumentSpan, SentenceEnds, SequencePlan, check_max_tokens, cut_sentences
from mnemic.models import IGNORE


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
