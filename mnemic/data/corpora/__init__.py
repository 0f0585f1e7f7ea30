"""Corpora for pre-training: documents, read lazily and made into sequences of tokens.

``Corpus`` reads documents from files and ``tokenize_document`` encodes each; ``SequenceMaker``
makes sequences, in one of the ``FORMATS``; ``SequenceFolderWriter`` writes them to a folder, which
``load_sequence_folder`` maps into memory; ``make_corpus_dataset`` makes the dataset.
``CorpusFiles`` is the data source that does all of that.
"""

from mnemic.data.corpora.batches import CorpusDataset as CorpusDataset
from mnemic.data.corpora.dataset import CorpusFiles as CorpusFiles
