"""The data set ``words``: running text for language models, from files or from kept words."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mnemic.data.contract import Part
from mnemic.data.corpora.read_documents import Corpus
from mnemic.data.corpora.split import only
from mnemic.data.language_modeling.batches import END, WordSet, joined, word_set
from mnemic.data.language_modeling.token_folder import MOST, Numbered, is_kept, keep, load_kept
from mnemic.data.text_tasks.examples import TextError
from mnemic.data.text_tasks.files import find
from mnemic.recipe import ConfigError
from mnemic.text import Tokenizer, Words

PARTS: tuple[Part, ...] = ("train", "validation", "test")
AT_ONCE = 100  # documents that are numbered together
TESTED = ("test", "valid")  # how files to test on are called


class WordData(NamedTuple):
    """Everything training and evaluation need to know of running text."""

    words: Words
    sizes: dict[str, int]
    train: WordSet
    validation: WordSet
    test: WordSet
    made: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WordFiles:
    """Documents (.jsonl, .txt; also .gz, .xz) as words, the ``vocab`` commonest and "unknown".

    ``learnt``, ``held`` and ``tested`` name files of the folder, or how their names begin. Left
    out, the test is on ``test`` files and validation on ``valid`` ones; a folder without the former
    is tested on the latter. Without a file to hold back, a share of the training documents is
    ``validation``, chosen by a hash of each text. Of
    the training documents the first ``documents`` are read; 0: all. A network reads ``length``
    words at once; in validation and test at least ``context`` of them were read before a word is
    asked for. ``folder`` may also be one that ``mnemic data words`` has made: its vocabulary and
    its documents are then what they were made with.
    """

    folder: str
    learnt: str = "train"
    held: str = ""
    tested: str = ""
    field: str = "text"
    validation: float = 0.01
    documents: int = 0
    vocab: int = 20_000
    length: int = 64
    context: int = 32

    def __post_init__(self) -> None:
        if not 3 < self.vocab <= MOST or self.documents < 0:
            raise ConfigError(
                f"data.vocab is from 4 to {MOST} and data.documents 0 or more, not {self.vocab} "
                f"and {self.documents}"
            )

    @property
    def place(self) -> Path:
        return Path(self.folder).expanduser()

    def data(self) -> WordData:
        """Read everything; the words are those of what is learnt from."""
        words, parts = self.numbered()
        train, held, test = (self.set_of(parts[part], words, part) for part in PARTS)
        if not len(train):
            raise TextError(f"{self.folder} holds no document with a word to learn from")
        return WordData(words, {"vocab": len(words), "longest": self.length}, train, held, test)

    def asked(self, part: Part, words: Tokenizer, labels: Sequence[str] = ()) -> WordSet:
        """The stretches of a part, in words that are already numbered."""
        assert isinstance(words, Words)
        if not is_kept(self.place):
            return self.set_of(self.ids(part, words), words, part)
        kept = load_kept(self.place)
        if kept.words != words:
            raise TextError(
                f"{self.folder} was numbered with another vocabulary than this network's; give "
                "the files themselves, or the folder it was trained on"
            )
        return self.set_of(kept.parts[part], words, part)

    def numbered(self) -> Numbered:
        """Vocabulary and ids of all parts, from the files or as they were kept."""
        if is_kept(self.place):
            return load_kept(self.place)
        words = Words.of(self.told("train"), (END,), vocab=self.vocab)
        return Numbered(words, {part: self.ids(part, words) for part in PARTS})

    def keep(self, folder: Path) -> dict[str, Any]:
        """Number all documents once, into a folder that can take the place of the files."""
        if is_kept(self.place):
            raise TextError(f"{self.folder} has been numbered already; give the files themselves")
        own = {k: v for k, v in asdict(self).items() if k not in ("folder", "length", "context")}
        return keep(self.numbered(), folder, own)

    def set_of(self, ids: np.ndarray, words: Words, part: Part) -> WordSet:
        context = 0 if part == "train" else self.context
        return word_set(ids, words, length=self.length, context=context)

    def ids(self, part: Part, words: Words) -> np.ndarray:
        texts, found = self.told(part), []
        while some := list(islice(texts, AT_ONCE)):
            found.append(joined(words.encode_all(some), words.id_of(END))[1:])
        return np.concatenate([joined([], words.id_of(END)), *found])

    def files(self) -> tuple[str, str]:
        """What is held back ("": nothing) and what is tested on, by name."""
        there = [path.name for path in self.place.iterdir()] if self.place.is_dir() else []
        has_test, has_valid = (any(name.startswith(own) for name in there) for own in TESTED)
        tested = self.tested or ("test" if has_test else "valid")
        both = has_test and has_valid and not self.tested
        return self.held or ("valid" if both else ""), tested

    def told(self, part: Part) -> Iterator[str]:
        """The documents of a part, read as they are asked for."""
        held, tested = self.files()
        name = {"train": self.learnt, "validation": held or self.learnt, "test": tested}
        documents = Corpus.of([find(self.folder, name[part])], field=self.field).read()
        if not held and part != "test":
            documents = only(documents, part, validation=self.validation)
        most = self.documents if part == "train" and self.documents else None
        for document in islice(documents, most):
            yield document.text
