"""Readers by their names: the one that comes with the package, or a folder's."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mnemic.store.answer.confidence import Reader, Span
from mnemic.store.contract import StoreError
from mnemic.store.retrieve.models import SHIPPED, loaded, shipped
from mnemic.text.windows import WindowError

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint

NONE = "none"


class SpanReader:
    """A network of ours that answers with spans, as ``Checkpoint.answer`` does.

    It is loaded when it is first asked. All passages of a question are read together.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder  # None: the one that comes with the package

    @cached_property
    def checkpoint(self) -> "Checkpoint":
        from mnemic.predict.text_tasks import allowed

        found, _ = loaded(self.folder or shipped())
        allowed(found, "answer")
        return found

    def answer(self, question: str, passages: Sequence[str]) -> list[Span]:
        from mnemic.predict.text_tasks import answer_all

        try:
            said = answer_all(self.checkpoint, [(question, passage) for passage in passages])
        except WindowError as error:
            raise StoreError(
                f"the question of {len(question.split())} words leaves the reader no room for a "
                f"passage; ask a shorter one, or with the reader {NONE}"
            ) from error
        return [Span(own.start, own.end, own.score, own.no_answer) for own in said]


def reader_of(wanted: str | Reader | None) -> Reader | None:
    """A reader by its name, or by the folder of a checkpoint; None: an answer is a sentence."""
    if wanted is None or wanted == NONE:
        return None
    return named(wanted) if isinstance(wanted, str) else wanted


def named(name: str) -> Reader:
    if name == SHIPPED:
        return SpanReader()
    folder = Path(name).expanduser()
    if not folder.is_dir():
        choice = f"there are {SHIPPED}, {NONE} and folders of checkpoints"
        raise StoreError(f"no reader {name!r}; {choice}")
    return SpanReader(folder)
