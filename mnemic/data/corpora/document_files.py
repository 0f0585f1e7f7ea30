"""Base of the kinds of plain documents: which files and documents are in a split."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mnemic.data.contract import SPLITS, DataSource, Split
from mnemic.data.corpora.read_documents import Corpus, CorpusError, list_files
from mnemic.data.corpora.split import filter_split


@dataclass(frozen=True, kw_only=True)
class DocumentFiles(DataSource):
    """Base of the kinds of ``.jsonl`` or ``.txt`` documents, plain or compressed.

    ``validation_file`` and ``test_file`` are how the names of the validation and test files start;
    ``train_file`` is how those of the training files start, which are all others if it is empty.
    Without ``validation_file`` the share ``validation`` of the documents is held out.
    """

    folder: str
    train_file: str = ""
    validation_file: str = ""
    test_file: str = ""
    validation: float = 0.01
    field: str = "text"

    def read_documents(self, paths: Sequence[Path]) -> Iterator[str]:
        """Read what is divided into splits, lazily: whole documents."""
        return Corpus(tuple(paths), self.field).read()

    def read_split(self, split: Split) -> Iterator[str]:
        """Read the documents of one split lazily."""
        paths = self.split_files[split]
        if not paths and split == "validation" and not self.validation_file:
            paths = self.split_files["train"]
        documents = self.read_documents(paths) if paths else iter(())
        if self.validation_file or split == "test":
            return documents
        return filter_split(documents, split, validation=self.validation)

    @cached_property
    def split_files(self) -> dict[Split, list[Path]]:
        """List the files of each split."""
        all_paths = list_files([self.path])
        splits: dict[Split, list[Path]] = {split: [] for split in SPLITS}
        prefixes: dict[Split, str] = {"validation": self.validation_file, "test": self.test_file}
        for split, prefix in prefixes.items():
            splits[split] = [path for path in all_paths if prefix and path.name.startswith(prefix)]
            if prefix and not splits[split]:
                raise CorpusError(f"no file in {self.path} has a name that begins with {prefix!r}")
        other_paths = [path for path in all_paths if path not in splits["validation"] + splits["test"]]
        splits["train"] = [path for path in other_paths if path.name.startswith(self.train_file)]
        if not splits["train"]:
            raise CorpusError(f"no file in {self.path} to learn from; check data.train_file")
        return splits
