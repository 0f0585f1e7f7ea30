"""Input formats of pre-training: which stretches of which documents make one sequence.

Contract: ``format(documents, most, dice) → plans``. A document is where its sentences end, in
tokens; a format never sees the tokens themselves. A sequence has at most ``most`` tokens, with
[CLS] before and [SEP] behind each stretch. Every token of every document stands in exactly one
sequence, in order; beside that, the second segment of a false pair is a copy. A sentence that does
not fit is cut into pieces that do, and never cut off. The four kinds are those that Liu et al.
2019 (RoBERTa) compare in section 4.2.
"""

from collections.abc import Callable

from mnemic.data.corpora.formats.doc_sentences import DocSentences
from mnemic.data.corpora.formats.full_sentences import FullSentences
from mnemic.data.corpora.formats.plan import Ends, Format, Plan, Stretch, length_of
from mnemic.data.corpora.formats.segment_pair import SegmentPair
from mnemic.data.corpora.formats.sentence_pair import SentencePair

FORMATS: dict[str, Callable[..., Format]] = {
    "segment-pair": SegmentPair,
    "sentence-pair": SentencePair,
    "full-sentences": FullSentences,
    "doc-sentences": DocSentences,
}

__all__ = ["FORMATS", "Ends", "Format", "Plan", "Stretch", "length_of"]
