"""Load readers by name: the shipped one, or the checkpoint of a folder."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mnemic.checkpoint.shipped import READERS, list_text_models
from mnemic.store.answer.confidence import AnswerSpan, Reader
from mnemic.store.contract import StoreError
from mnemic.store.retrieve.models import find_shipped_folder, load_with_digest
from mnemic.text.windows import WindowError

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint
    from mnemic.text.tokenizers.contract import Tokenizer

NO_READER = "none"


class SpanReader:
    """A reader that extracts spans with a mnemic checkpoint, as ``Model.answer`` does.

    The checkpoint is loaded on first use. All passages of a question are read in one batch.
    """

    def __init__(self, folder: Path | str = READERS[0]) -> None:
        self.folder = folder  # a name: a checkpoint that ships with the package

    @cached_property
    def checkpoint(self) -> "Checkpoint":
        """The checkpoint, loaded on first use; an error if it cannot answer questions."""
        folder = find_shipped_folder(self.folder) if isinstance(self.folder, str) else self.folder
        checkpoint, _ = load_with_digest(folder)  # before other imports of torch
        from mnemic.predict.methods import check_method

        check_method(checkpoint, "answer")
        return checkpoint

    @property
    def tokenizer(self) -> "Tokenizer":
        """The tokenizer of its texts."""
        return self.checkpoint.tokenizer

    def answer(self, question: str, passages: Sequence[str]) -> list[AnswerSpan]:
        """Return the best span of each passage."""
        checkpoint = self.checkpoint
        from mnemic.predict.text_tasks import answer_questions

        try:
            answers = answer_questions(checkpoint, [(question, passage) for passage in passages])
        except WindowError as error:
            raise StoreError(
                f"the question of {len(question.split())} words leaves the reader no room for a "
                f"passage; ask a shorter one, or with the reader {NO_READER}"
            ) from error
        return [
            AnswerSpan(answer.start, answer.end, answer.score, answer.no_answer, answer.relevance) for answer in answers
        ]


def resolve_reader(reader: str | Reader | None) -> Reader | None:
    """Make a reader from a name or folder; return a reader as it is."""
    if reader is None or reader == NO_READER:
        return None
    if not isinstance(reader, str):
        return reader
    if reader in list_text_models():
        return SpanReader(reader)
    folder = Path(reader).expanduser()
    if not folder.is_dir():
        raise StoreError(
            f"no reader {reader!r}; there are {', '.join(READERS)}, {NO_READER} and folders of checkpoints"
        )
    return SpanReader(folder)
