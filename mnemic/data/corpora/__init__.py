"""Corpora for pre-training: documents, read lazily and made into sequences of tokens.

``Corpus`` reads documents from files and ``tokenize_documents`` encodes them; ``SequenceMaker``
makes sequences, in one of the ``FORMATS``; ``SequenceFolderWriter`` writes them to a folder, which
``load_sequence_folder`` maps into memory; ``make_corpus_dataset`` makes the dataset.
``CorpusFiles`` is the data source that does all of that.
"""

from mnemic.data.corpora.batches import CorpusBatch, CorpusDataset, make_corpus_dataset
from mnemic.data.corpora.dataset import CorpusFiles
from mnemic.data.corpora.document import CorpusDocument, CorpusError, ReadPosition
from mnemic.data.corpora.formats import FORMATS
from mnemic.data.corpora.make_sequences import SequenceMaker
from mnemic.data.corpora.read_documents import Corpus
from mnemic.data.corpora.sequence_folder import (
    SequenceArrays,
    SequenceFolder,
    SequenceFolderWriter,
    load_sequence_folder,
)
from mnemic.data.corpora.sequences import PretrainingSequence, assemble_sequence
from mnemic.data.corpora.split import filter_split, split_of
from mnemic.data.corpora.tokens import TokenizedDocument, tokenize_document, tokenize_documents

__all__ = [
    "FORMATS",
    "Corpus",
    "CorpusBatch",
    "CorpusDataset",
    "CorpusDocument",
    "CorpusError",
    "CorpusFiles",
    "PretrainingSequence",
    "ReadPosition",
    "SequenceArrays",
    "SequenceFolder",
    "SequenceFolderWriter",
    "SequenceMaker",
    "TokenizedDocument",
    "assemble_sequence",
    "filter_split",
    "load_sequence_folder",
    "make_corpus_dataset",
    "split_of",
    "tokenize_document",
    "tokenize_documents",
]
