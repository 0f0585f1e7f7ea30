"""Plain texts as a data set of a recipe: files, or a folder of sequences made of them."""

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

from mnemic.data.contract import Part
from mnemic.data.corpora.batches import CorpusSet, corpus_set
from mnemic.data.corpora.document import CorpusError, Document
from mnemic.data.corpora.files import files_of
from mnemic.data.corpora.formats import FORMATS
from mnemic.data.corpora.make_sequences import Maker
from mnemic.data.corpora.read_documents import Corpus
from mnemic.data.corpora.sequence_folder import Kept, Making, Sequences, is_kept, load_kept
from mnemic.data.corpora.split import only
from mnemic.data.corpora.tokens import FindWords, tokenised
from mnemic.data.text_tasks.splits import VOCABULARIES
from mnemic.recipe import ConfigError, build
from mnemic.text import Subwords, Tokenizer
from mnemic.text.tokenizers.word_starts import chinese_words
from mnemic.text.windows import Truncation

PARTS: tuple[Part, ...] = ("train", "validation", "test")
WORDS: dict[str, FindWords | None] = {"text": None, "chinese": chinese_words}


class CorpusData(NamedTuple):
    """Everything training and evaluation need to know of a corpus."""

    words: Subwords
    sizes: dict[str, int]  # facts the network is built from
    train: CorpusSet
    validation: CorpusSet
    test: CorpusSet
    made: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CorpusFiles:
    """Documents to learn a language from: ``.jsonl`` or ``.txt``, plain or packed.

    ``held`` and ``tested`` are how the names of the files begin that are kept apart; ``learnt``
    are those that begin so, or all others. Without ``held`` a share ``validation`` of the documents
    is held back. ``kept`` is a folder for the sequences made of them, which are made once; without
    it they are made anew each time. It may itself be given as ``folder``. ``words`` says what a
    word is where whole words are masked, ``copies`` how many masks each sequence has (0: always
    new ones). ``overlap`` and ``truncation`` are for long texts that the network is asked about.
    """

    folder: str
    learnt: str = ""
    held: str = ""
    tested: str = ""
    validation: float = 0.01
    field: str = "text"
    tokenizer: Mapping[str, Any] = dataclasses.field(
        default_factory=lambda: {"kind": "wordpiece", "vocab": 16384, "coverage": 0.9999}
    )
    format: Mapping[str, Any] = dataclasses.field(
        default_factory=lambda: {"kind": "full-sentences"}
    )
    length: int = 128
    words: Literal["text", "chinese"] = "text"
    copies: int = 0
    kept: str = ""
    overlap: int = 32
    truncation: Truncation = "windows"

    def __post_init__(self) -> None:
        if self.copies < 0:
            raise ConfigError(f"data.copies is 0 (always new masks) or more, not {self.copies}")
        build(FORMATS, self.format)

    def data(self) -> CorpusData:
        found = self.sequences()
        words = found.tokenizer
        train, held, test = (corpus_set_of(found, part, self.copies) for part in PARTS)
        if not len(train):
            raise CorpusError(f"there is nothing to learn from in {self.folder}: no text, no token")
        return CorpusData(words, {"vocab": len(words), "longest": self.length}, train, held, test)

    def asked(self, part: Part, words: Tokenizer, labels: Sequence[str] = ()) -> CorpusSet:
        """The sequences of a part; ``words`` must be those they were made with."""
        found = self.sequences()
        if found.tokenizer != words:
            raise CorpusError(
                f"the sequences of {self.folder} have another vocabulary than the network; train "
                "and test on the same, say with data.tokenizer = { kind = 'stored', folder = … }"
            )
        return corpus_set_of(found, part, self.copies)

    def sequences(self) -> Kept:
        """What is kept, or was made just now."""
        if is_kept(self.place):
            return self.checked(load_kept(self.place), self.place, recipe_alone=True)
        if not self.kept:
            with TemporaryDirectory(prefix="mnemic-") as folder:
                return self.make(Path(folder) / "corpus")  # mapped files live on without a name
        kept = Path(self.kept).expanduser()
        if kept.exists():
            return self.checked(load_kept(kept), kept, recipe_alone=False)
        return self.make(kept)

    def make(self, folder: Path) -> Kept:
        """Read all files: once for the vocabulary, where it is learnt, and once for each part."""
        tokenizer = build(VOCABULARIES, self.tokenizer, texts=Texts(lambda: self.read("train")))
        if not isinstance(tokenizer, Subwords):
            raise ConfigError(
                f"data.tokenizer of kind {self.tokenizer.get('kind')!r} has no [MASK]; take one of "
                "subwords, such as wordpiece"
            )
        kind = build(FORMATS, self.format)
        maker = Maker(tokenizer=tokenizer, format=kind, most=self.length)
        making = Making(folder, tokenizer)
        for part in PARTS:
            making.add(part, maker(tokenised(self.read(part), tokenizer, WORDS[self.words])))
        return making.finish(self.about | {"files": self.fingerprints})

    def read(self, part: Part) -> Iterator[Document]:
        """The documents of a part."""
        names = self.files[part]
        if not names and part == "validation" and not self.held:
            names = self.files["train"]
        documents = Corpus(tuple(names), self.field).read() if names else iter(())
        if self.held:
            return documents
        if part == "test":
            return documents
        return only(documents, part, validation=self.validation)

    @property
    def place(self) -> Path:
        return Path(self.folder).expanduser()

    @cached_property
    def files(self) -> dict[Part, list[Path]]:
        """The files of each part."""
        every = files_of([self.place])
        apart = {
            part: [path for path in every if name and path.name.startswith(name)]
            for part, name in (("validation", self.held), ("test", self.tested))
        }
        for part, name in (("validation", self.held), ("test", self.tested)):
            if name and not apart[part]:
                raise CorpusError(f"no file in {self.place} has a name that begins with {name!r}")
        taken = {path for paths in apart.values() for path in paths}
        rest = [path for path in every if path not in taken and path.name.startswith(self.learnt)]
        if not rest:
            raise CorpusError(f"no file in {self.place} to learn from; check data.learnt")
        return {"train": rest, "validation": apart["validation"], "test": apart["test"]}

    @property
    def fingerprints(self) -> dict[str, str]:
        """What tells other files from these."""
        return {part: Corpus(tuple(own)).fingerprint for part, own in self.files.items() if own}

    @property
    def about(self) -> dict[str, Any]:
        """All of the recipe that sequences hang on, as JSON has it."""
        names = ("learnt", "held", "tested", "validation", "field", "length", "words")
        whole = {name: getattr(self, name) for name in names}
        parts = {"tokenizer": dict(self.tokenizer), "format": dict(self.format)}
        return json.loads(json.dumps(whole | parts))

    def checked(self, found: Kept, folder: Path, *, recipe_alone: bool) -> Kept:
        """Kept sequences, if they are those that the recipe asks for.

        ``recipe_alone``: the files they were made of need not be on this machine.
        """
        wanted = self.about
        names: tuple[str, ...] = ("length", "words", "format", "tokenizer")
        chosen = ("learnt", "held", "tested", "validation", "field")
        names += tuple(name for name in chosen if getattr(self, name) != getattr(CorpusFiles, name))
        if not recipe_alone:
            wanted |= {"files": self.fingerprints}
            names = tuple(wanted)
        for name in names:
            if name == "tokenizer" and self.tokenizer.get("kind") == "stored":
                same = build(VOCABULARIES, self.tokenizer, texts=()) == found.tokenizer
            else:
                same = found.about.get(name) == wanted[name]
            if not same:
                raise CorpusError(
                    f"the sequences in {folder} were made with another data.{name} "
                    f"({found.about.get(name)!r}, not {wanted[name]!r}); set it so, or keep "
                    "others elsewhere: data.kept=DIR"
                )
        return found


@dataclass(frozen=True)
class Texts:
    """The texts of documents, which can be gone through again, and are never all in memory."""

    read: Callable[[], Iterator[Document]]

    def __iter__(self) -> Iterator[str]:
        return (document.text for document in self.read())


def corpus_set_of(kept: Kept, part: Part, copies: int) -> CorpusSet:
    own: Sequences = kept.parts[part]
    return corpus_set(own, kept.tokenizer, copies=copies)
