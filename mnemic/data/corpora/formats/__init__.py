"""Input formats of pre-training: which spans of which documents make one sequence.

Contract: ``format(documents, max_tokens, generator) → plans``. A document is given as the token
offsets of its sentence ends; a format never sees the tokens themselves. A sequence has at most
``max_tokens`` tokens: [CLS], then each span followed by [SEP]. Every token of every document is in
exactly one sequence, in order; only the second segment of a false pair is a copy. A sentence that
does not fit is cut into pieces that do, and no token is dropped. The four kinds are those that Liu
et al. 2019 (RoBERTa) compare in section 4.2.
"""

from collections.abc import Callable

from mnemic.data.corpora.formats.pairs import SegmentPair, SentencePair
from mnemic.data.corpora.formats.plan import SequenceFormat
from mnemic.data.corpora.formats.sentences import DocSentences, FullSentences

FORMATS: dict[str, Callable[..., SequenceFormat]] = {
    "segment-pair": SegmentPair,
    "sentence-pair": SentencePair,
    "full-sentences": FullSentences,
    "doc-sentences": DocSentences,
}
