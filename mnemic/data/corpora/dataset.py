"""Data source of pre-training: text files, or a folder of sequences made of them."""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Literal

from mnemic.data.contract import SPLITS, Layout, LoadedData, Names, Split
from mnemic.data.corpora.batches import CorpusDataset, make_corpus_dataset
from mnemic.data.corpora.document_files import DocumentFiles
from mnemic.data.corpora.formats import FORMATS
from mnemic.data.corpora.make_sequences import SequenceMaker
from mnemic.data.corpora.read_documents import Corpus, CorpusError
from mnemic.data.corpora.sequence_folder import (
    SequenceFolder,
    SequenceFolderWriter,
    is_sequence_folder,
    load_sequence_folder,
)
from mnemic.data.corpora.tokens import WordFinder, tokenize_document
from mnemic.data.text_tasks.splits import TOKENIZER_BUILDERS, load_stored_tokenizer
from mnemic.recipe import ConfigError, build, kind_of
from mnemic.recipe.migrate import migrate_recipe
from mnemic.text import SubwordTokenizer, Tokenizer
from mnemic.text.tokenizers.word_starts import find_capitalized_runs, find_chinese_words
from mnemic.text.windows import Truncation

SPLIT_OPTIONS = ("train_file", "validation_file", "test_file", "validation", "field")  # which documents are in a split
WORD_FINDERS: dict[str, WordFinder | None] = {
    "text": None,
    "chinese": find_chinese_words,
    "entities": find_capitalized_runs,
}


@dataclass(frozen=True, kw_only=True)
class CorpusFiles(DocumentFiles):
    """Documents for pre-training: ``.jsonl`` or ``.txt`` files, plain or compressed.

    ``cache`` is a folder for the sequences, which are then made once; without it they are made each
    time. Such a folder can itself be ``folder``. ``words`` says what a word is for whole-word
    masking and ``copies`` how many masks each sequence has (0: always new ones). ``rare_words`` are
    the least and the largest number of times that words with a note occur in training. ``overlap``
    and ``truncation`` are for long texts at prediction.
    """

    layout: ClassVar[Layout] = "windows"
    response: ClassVar[str] = "masked"
    objectives: ClassVar[Names] = ("masked",)
    files: ClassVar[str] = "plain text"
    alternative: ClassVar[str] = "a folder that mnemic data sequences made"
    suggestions: ClassVar[Names] = ("train bert-classes --start {run} --data DIR", "export {run} FOLDER")
    tokenizer: Mapping[str, Any] = dataclasses.field(
        default_factory=lambda: {"kind": "wordpiece", "vocab": 16384, "coverage": 0.9999}
    )
    format: Mapping[str, Any] = dataclasses.field(default_factory=lambda: {"kind": "full-sentences"})
    length: int = 128
    words: Literal["text", "chinese", "entities"] = "text"
    copies: int = 0
    rare_words: list[int] = dataclasses.field(default_factory=list)
    cache: str = ""
    overlap: int = 32
    truncation: Truncation = "windows"

    def __post_init__(self) -> None:
        if self.copies < 0:
            raise ConfigError(f"data.copies is 0 (always new masks) or more, not {self.copies}")
        if len(self.rare_words) not in (0, 2):
            raise ConfigError(f"data.rare_words are two numbers, such as [5, 50], or none, not {self.rare_words}")
        build(FORMATS, self.format)

    def load(self) -> LoadedData[CorpusDataset]:
        """Load or make the sequences of all splits."""
        _, tokenizer, splits = self.load_sequences()
        train, validation, test = (
            make_corpus_dataset(
                splits[split], tokenizer, copies=self.copies, rare_words=self.rare_words if split == "train" else ()
            )
            for split in SPLITS
        )
        if not len(train):
            raise CorpusError(f"there is nothing to learn from in {self.folder}: no text, no token")
        return LoadedData(tokenizer, {"vocab": len(tokenizer), "max_length": self.length}, train, validation, test)

    def dataset(self, split: Split, tokenizer: Tokenizer, labels: Sequence[str] = ()) -> CorpusDataset:
        """Return the sequences of one split; their tokenizer must be ``tokenizer``."""
        sequences = self.load_sequences()
        if sequences.tokenizer != tokenizer:
            raise CorpusError(
                f"the sequences of {self.folder} have another vocabulary than the network; train "
                "and test on the same, say with data.tokenizer = { kind = 'stored', folder = … }"
            )
        return make_corpus_dataset(sequences.splits[split], sequences.tokenizer, copies=self.copies)

    def load_sequences(self) -> SequenceFolder:
        """Load the stored sequences, or make them."""
        if is_sequence_folder(self.path):
            return self.check_sequences(load_sequence_folder(self.path), self.path, ignore_files=True)
        if not self.cache:
            with TemporaryDirectory(prefix="mnemic-") as folder:
                # Memory-mapped files stay readable after they are removed.
                return self.make_sequences(Path(folder) / "corpus")
        sequence_folder = Path(self.cache).expanduser()
        if sequence_folder.exists():
            return self.check_sequences(load_sequence_folder(sequence_folder), sequence_folder, ignore_files=False)
        return self.make_sequences(sequence_folder)

    def make_sequences(self, folder: Path) -> SequenceFolder:
        """Train the tokenizer, then make the sequences of all splits and store them."""
        tokenizer = build(TOKENIZER_BUILDERS, self.tokenizer, texts=TrainingTexts(self))
        if not isinstance(tokenizer, SubwordTokenizer):
            raise ConfigError(
                f"data.tokenizer of kind {self.tokenizer.get('kind')!r} has no [MASK]; take one of "
                "subwords, such as wordpiece"
            )
        make = SequenceMaker(tokenizer=tokenizer, format=build(FORMATS, self.format), max_tokens=self.length)
        writer = SequenceFolderWriter(folder, tokenizer)
        find_words = WORD_FINDERS[self.words]
        for split in SPLITS:
            documents = (tokenize_document(text, tokenizer, find_words) for text in self.read_split(split))
            writer.write_split(split, make(documents))
        return writer.finish(self.sequence_options | {"files": self.fingerprints})

    @property
    def fingerprints(self) -> dict[str, str]:
        """Hash the names and sizes of each split's files."""
        return {split: Corpus(tuple(paths)).fingerprint for split, paths in self.split_files.items() if paths}

    @property
    def sequence_options(self) -> dict[str, Any]:
        """The recipe keys that sequences depend on, as JSON values."""
        options = {name: getattr(self, name) for name in (*SPLIT_OPTIONS, "length", "words")}
        return json.loads(json.dumps(options | {"tokenizer": dict(self.tokenizer), "format": dict(self.format)}))

    def check_sequences(self, sequences: SequenceFolder, folder: Path, *, ignore_files: bool) -> SequenceFolder:
        """Return stored sequences, or raise if they were made with other options.

        ``ignore_files``: the files they were made of need not be on this machine, and options that
        say how they are split count only where they are set.
        """
        expected_options = self.sequence_options
        stored_options = migrate_recipe({"data": sequences.metadata})["data"]
        if ignore_files:
            defaults = [name for name in SPLIT_OPTIONS if getattr(self, name) == getattr(CorpusFiles, name)]
            expected_options = {name: value for name, value in expected_options.items() if name not in defaults}
        else:
            expected_options |= {"files": self.fingerprints}
        for name in expected_options:
            if name == "tokenizer" and kind_of(TOKENIZER_BUILDERS, self.tokenizer) is load_stored_tokenizer:
                is_same = build(TOKENIZER_BUILDERS, self.tokenizer, texts=()) == sequences.tokenizer
            else:
                is_same = stored_options.get(name) == expected_options[name]
            if not is_same:
                raise CorpusError(
                    f"the sequences in {folder} were made with another data.{name} "
                    f"({stored_options.get(name)!r}, not {expected_options[name]!r}); set it "
                    "so, or keep others elsewhere: data.cache=DIR"
                )
        return sequences


@dataclass(frozen=True)
class TrainingTexts:
    """The training documents, read again at each iteration, never all in memory."""

    files: CorpusFiles

    def __iter__(self) -> Iterator[str]:
        return self.files.read_split("train")
