"""Data source of language models: running text, from files or a folder of token ids."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mnemic.data.contract import SPLITS, DataSource, Layout, LoadedData, Names, Split
from mnemic.data.corpora.read_documents import Corpus
from mnemic.data.corpora.split import filter_split
from mnemic.data.language_modeling.batches import END, TokenDataset, join_documents, make_token_dataset
from mnemic.data.language_modeling.token_folder import (
    MAX_VOCAB,
    EncodedSplits,
    is_token_folder,
    load_token_folder,
    save_token_folder,
)
from mnemic.data.text_tasks.examples import TextError
from mnemic.data.text_tasks.files import find_file
from mnemic.recipe import ConfigError
from mnemic.text import Tokenizer, WordTokenizer

DOCUMENTS_PER_CALL = 100  # documents per call of the tokenizer
TEST_PREFIXES = ("test", "valid")  # how the names of test files start


@dataclass(frozen=True, kw_only=True)
class LanguageModelFiles(DataSource):
    """Documents (.jsonl, .txt, plain, .gz or .xz) as running text of words.

    Words that are not among the ``vocab`` most frequent ones are unknown. ``train_file``,
    ``validation_file`` and ``test_file`` name the training, validation and test file of the folder,
    or how their names start. By default test files start with ``test`` and validation files with
    ``valid``; a folder without the former is tested on the latter. Without a validation file, the
    share ``validation`` of the training documents is held out, chosen by a hash of each text. The
    first ``documents`` training documents are read; 0: all. A model reads ``length`` words at once;
    in validation and test each word is predicted from at least ``context`` words. A ``stream`` is
    read in order, in training as ``train.batch`` parts of the text side by side, each span where
    the one before it ended: for networks with a memory. It has no ``context``. ``folder`` can also
    be one that ``mnemic data words`` wrote: then its vocabulary and documents are used.
    """

    layout: ClassVar[Layout] = "tokens"
    response: ClassVar[str] = "next-token"
    objectives: ClassVar[Names] = ("next-token",)
    files: ClassVar[str] = "text"
    alternative: ClassVar[str] = "your own .jsonl or .txt files"
    folder: str
    train_file: str = "train"
    validation_file: str = ""
    test_file: str = ""
    field: str = "text"
    validation: float = 0.01
    documents: int = 0
    vocab: int = 20_000
    length: int = 64
    context: int = 32
    stream: bool = False

    def __post_init__(self) -> None:
        if not 3 < self.vocab <= MAX_VOCAB or self.documents < 0:
            raise ConfigError(
                f"data.vocab is from 4 to {MAX_VOCAB} and data.documents 0 or more, not "
                f"{self.vocab} and {self.documents}"
            )

    def load(self) -> LoadedData[TokenDataset]:
        """Read all splits and build the vocabulary from the training documents."""
        tokenizer, splits = self.encode_splits()
        train, validation, test = (self.make_dataset(splits[split], tokenizer, split) for split in SPLITS)
        if not len(train):
            raise TextError(f"{self.folder} holds no document with a word to learn from")
        return LoadedData(tokenizer, {"vocab": len(tokenizer), "max_length": self.length}, train, validation, test)

    def dataset(self, split: Split, tokenizer: Tokenizer, labels: Sequence[str] = ()) -> TokenDataset:
        """Read one split and encode it with an existing tokenizer."""
        assert isinstance(tokenizer, WordTokenizer)
        if not is_token_folder(self.path):
            return self.make_dataset(self.encode_split(split, tokenizer), tokenizer, split)
        encoded = load_token_folder(self.path)
        if encoded.tokenizer != tokenizer:
            raise TextError(
                f"{self.folder} was encoded with another vocabulary than this network's; give "
                "the files themselves, or the folder it was trained on"
            )
        return self.make_dataset(encoded.splits[split], tokenizer, split)

    def encode_splits(self) -> EncodedSplits:
        """Return the tokenizer and the ids of all splits, from files or a token folder."""
        if is_token_folder(self.path):
            return load_token_folder(self.path)
        tokenizer = WordTokenizer.from_texts(self.read_split("train"), (END,), vocab=self.vocab)
        return EncodedSplits(tokenizer, {split: self.encode_split(split, tokenizer) for split in SPLITS})

    def save_encoded(self, folder: Path) -> dict[str, Any]:
        """Encode all documents into a folder that can be used instead of the files."""
        if is_token_folder(self.path):
            raise TextError(f"{self.folder} has been encoded already; give the files themselves")
        options = {k: v for k, v in asdict(self).items() if k not in ("folder", "length", "context", "stream")}
        return save_token_folder(self.encode_splits(), folder, options)

    def make_dataset(self, ids: np.ndarray, tokenizer: WordTokenizer, split: Split) -> TokenDataset:
        """Make the dataset of one split; training has no context."""
        context = 0 if split == "train" else self.context
        return make_token_dataset(ids, tokenizer, max_tokens=self.length, context=context, stream=self.stream)

    def encode_split(self, split: Split, tokenizer: WordTokenizer) -> np.ndarray:
        """Read the documents of one split as one array of token ids."""
        texts, arrays = self.read_split(split), []
        while batch := list(islice(texts, DOCUMENTS_PER_CALL)):
            arrays.append(join_documents(tokenizer.encode_batch(batch), tokenizer.id_of(END))[1:])
        return np.concatenate([join_documents([], tokenizer.id_of(END)), *arrays])

    def evaluation_files(self) -> tuple[str, str]:
        """Return how the names of the validation file ("": none) and the test file start."""
        names = [path.name for path in self.path.iterdir()] if self.path.is_dir() else []
        has_test, has_valid = (any(name.startswith(prefix) for name in names) for prefix in TEST_PREFIXES)
        test_file = self.test_file or ("test" if has_test else "valid")
        use_valid_file = has_test and has_valid and not self.test_file
        return self.validation_file or ("valid" if use_valid_file else ""), test_file

    def read_split(self, split: Split) -> Iterator[str]:
        """Read the documents of one split lazily."""
        validation_file, test_file = self.evaluation_files()
        file_names = {"train": self.train_file, "validation": validation_file or self.train_file, "test": test_file}
        path = find_file(self.folder, file_names[split])
        texts = Corpus.from_paths([path], field=self.field).read()
        if not validation_file and split != "test":
            texts = filter_split(texts, split, validation=self.validation)
        return islice(texts, self.documents if split == "train" and self.documents else None)
