"""Plain texts to learn a language from: documents, read lazily, as sequences of tokens.

``Corpus`` reads documents from files and ``tokenised`` makes tokens of them; ``Maker`` makes
sequences of these, in one of the ``FORMATS``, and ``Making`` keeps them in a folder, which
``load_kept`` maps into memory; ``corpus_set`` makes batches. ``CorpusFiles`` is all of that.
"""

from mnemic.data.corpora.batches import Batch, CorpusSet, corpus_set
from mnemic.data.corpora.dataset import CorpusFiles
from mnemic.data.corpora.document import CorpusError, Document, Place
from mnemic.data.corpora.formats import FORMATS
from mnemic.data.corpora.make_sequences import Maker
from mnemic.data.corpora.read_documents import Corpus
from mnemic.data.corpora.sequence_folder import Kept, Making, Sequences, load_kept
from mnemic.data.corpora.sequences import Example, assemble
from mnemic.data.corpora.split import only, part_of
from mnemic.data.corpora.tokens import Tokens, tokenise, tokenised

__all__ = [
    "FORMATS",
    "Batch",
    "Corpus",
    "CorpusError",
    "CorpusFiles",
    "CorpusSet",
    "Document",
    "Example",
    "Kept",
    "Maker",
    "Making",
    "Place",
    "Sequences",
    "Tokens",
    "assemble",
    "corpus_set",
    "load_kept",
    "only",
    "part_of",
    "tokenise",
    "tokenised",
]
