"""Plain texts to learn a language from: documents, read lazily, as sequences of tokens.

``Corpus`` reads documents from files and ``tokenised`` makes tokens of them, which ``keep`` can
put on disk; ``Stream`` deals out sequences without end, from any ``Position`` on; ``Maker`` makes
them in one of the ``FORMATS``; ``cut`` and ``collate`` make batches.
"""

from mnemic.data.corpora.batches import Batch, collate, cut
from mnemic.data.corpora.document import CorpusError, Document, Place
from mnemic.data.corpora.formats import FORMATS
from mnemic.data.corpora.held_out import only, part_of
from mnemic.data.corpora.kept import Kept, keep
from mnemic.data.corpora.making import Maker
from mnemic.data.corpora.reading import Corpus
from mnemic.data.corpora.sequences import Example, assemble
from mnemic.data.corpora.stream import Dealt, Position, Stream
from mnemic.data.corpora.tokens import TokenDocument, Tokens, tokenise, tokenised

__all__ = [
    "FORMATS",
    "Batch",
    "Corpus",
    "CorpusError",
    "Dealt",
    "Document",
    "Example",
    "Kept",
    "Maker",
    "Place",
    "Position",
    "Stream",
    "TokenDocument",
    "Tokens",
    "assemble",
    "collate",
    "cut",
    "keep",
    "only",
    "part_of",
    "tokenise",
    "tokenised",
]
