"""From files to sets of texts: read, split, learn a vocabulary, number."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, Protocol

from mnemic.data.contract import Part
from mnemic.data.text_tasks.batches import TextSet
from mnemic.data.text_tasks.examples import TextError
from mnemic.data.text_tasks.files import find
from mnemic.recipe import build
from mnemic.text import TOKENIZERS, Room, Tokenizer, load, load_subwords
from mnemic.text.tokenizers.contract import FILE
from mnemic.text.windows import Truncation

WORDPIECE: Mapping[str, Any] = {"kind": "wordpiece", "vocab": 8000}
LEARNT: tuple[Part, ...] = ("train", "validation")


def stored(texts: Iterable[str], *, folder: str) -> Tokenizer:
    """The tokenizer in a folder, such as that of a pre-trained model or of a run of ours."""
    place = Path(folder).expanduser()
    return load(place) if (place / FILE).is_file() else load_subwords(place) or load(place)


VOCABULARIES: dict[str, Callable[..., Tokenizer]] = {**TOKENIZERS, "stored": stored}


class Files(Protocol):
    """What a recipe says of every kind of text files."""

    @property
    def folder(self) -> str: ...

    @property
    def learnt(self) -> str: ...

    @property
    def held(self) -> str: ...

    @property
    def tested(self) -> str: ...

    @property
    def validation(self) -> float: ...

    @property
    def tokenizer(self) -> Mapping[str, Any]: ...

    @property
    def length(self) -> int: ...

    @property
    def overlap(self) -> int: ...

    @property
    def truncation(self) -> Truncation: ...


class Manner(NamedTuple):
    """How the files of one kind become a set."""

    read: Callable[[Path], list[Any]]  # the examples of a file
    texts: Callable[[Sequence[Any]], Iterable[str]]  # what a vocabulary is learnt from
    labels: Callable[[Sequence[Any]], tuple[str, ...]]  # those that can be learnt
    number: Callable[[Sequence[Any], Tokenizer, Sequence[str]], Any]  # a set of this kind
    outputs: int = 0  # how many classes there are without labels: 1, where numbers are learnt
    together: Callable[[Any], Hashable] | None = None  # examples that a split must not part


class TextData(NamedTuple):
    """Everything training needs to know of a data set; what is tested is read when it is asked."""

    words: Tokenizer
    sizes: dict[str, int]  # facts the network is built from
    train: TextSet
    validation: TextSet
    made: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()


def room_of(files: Files) -> Room:
    return Room(files.length, files.overlap, files.truncation).check()


def text_data(files: Files, manner: Manner) -> TextData:
    """Read what training needs; words and labels are those of what may be learnt from."""
    room_of(files)
    learnt, back = (told(files, manner, part) for part in LEARNT)
    labels = manner.labels(learnt)
    words = build(VOCABULARIES, files.tokenizer, texts=list(manner.texts(learnt)))
    train, held = (manner.number(own, words, labels) for own in (learnt, back))
    sizes = {"vocab": len(words), "longest": files.length}
    if classes := manner.outputs or len(labels):
        sizes["classes"] = classes
    return TextData(words, sizes, train, held, labels=labels)


def told(files: Files, manner: Manner, part: Part) -> list[Any]:
    """The examples of a part; only the file that it needs is read."""
    if not 0 <= files.validation < 1:
        raise TextError(f"data.validation is a share from 0 to below 1, not {files.validation}")
    if part == "test":
        return manner.read(find(files.folder, files.tested)) if files.tested else []
    if files.held and part == "validation":
        return manner.read(find(files.folder, files.held))
    whole = manner.read(find(files.folder, files.learnt))
    if files.held:
        return whole
    return parted(whole, files.validation, manner.together)[part == "validation"]


def parted(
    examples: Sequence[Any], share: float, together: Callable[[Any], Hashable] | None = None
) -> tuple[list[Any], list[Any]]:
    """What is learnt and what is held back: a share, by dice that always fall alike.

    Taking every tenth would hold back one class alone where the file has them in turns.
    """
    groups: dict[Hashable, list[Any]] = {}
    for number, own in enumerate(examples):
        groups.setdefault(together(own) if together else number, []).append(own)
    count = max(int(len(groups) * share + 1e-9), int(share > 0 and len(groups) > 1))
    back = set(Random(0).sample(range(len(groups)), count))
    both: tuple[list[Any], list[Any]] = [], []
    for number, group in enumerate(groups.values()):
        both[number in back].extend(group)
    return both
