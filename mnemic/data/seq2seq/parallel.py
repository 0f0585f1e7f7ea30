"""Data source of translation: two files of lines that belong together, one per language."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from mnemic.data.contract import Names
from mnemic.data.seq2seq.batches import AnswerStart
from mnemic.data.seq2seq.dataset import BYTE_BPE, SelectBy, Seq2SeqSource
from mnemic.data.text_tasks.examples import LabeledExample, TextError
from mnemic.data.text_tasks.files import read_lines
from mnemic.data.text_tasks.splits import TextFiles


@dataclass(frozen=True, kw_only=True)
class ParallelFiles(Seq2SeqSource, TextFiles):
    """Lines and their translations: ``train.en`` and ``train.de`` (.gz, .xz), as in Multi30k.

    ``source`` and ``target`` are the languages, a part of the files' names after a dot;
    ``train_file``, ``validation_file`` and ``test_file`` are how the names begin. One tokenizer is
    trained on both languages. ``select_by`` is the metric that selects the best weights.
    """

    files: ClassVar[str] = "parallel text"
    alternative: ClassVar[str] = "texts with answers, data.kind=seq2seq"
    scores: ClassVar[Names] = ("bleu", "chrf")
    source: str = "en"
    target: str = "de"
    validation_file: str = "val"
    start: AnswerStart = "cls"
    select_by: SelectBy = "perplexity"
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: {**BYTE_BPE, "vocab": 8000})
    length: int = 128

    def read_named(self, name: str) -> list[LabeledExample]:
        """Read the lines of both languages of the files whose names begin with ``name``."""
        paths = [self.find_language(name, language) for language in (self.source, self.target)]
        texts, translations = map(read_texts, paths)
        if len(texts) != len(translations) or not texts:
            raise TextError(
                f"{paths[0]} has {len(texts)} lines and {paths[1]} has {len(translations)}: line by line the two "
                "belong together, at least one"
            )
        return [LabeledExample(text, None, translation) for text, translation in zip(texts, translations)]

    def find_language(self, name: str, language: str) -> Path:
        """Find the only file whose name begins with ``name`` and has the language's suffix."""
        if not self.path.is_dir():
            raise TextError(f"no folder {str(self.path)!r}; give the one with the data's files: --data DIR")
        names = sorted(path.name for path in self.path.iterdir() if path.is_file())
        matches = [file for file in names if file.startswith(name) and language in file.split(".")[1:]]
        if len(matches) != 1:
            raise TextError(
                f"{'no' if not matches else 'more than one'} file named {name!r} … .{language} in {self.path} (there: "
                f"{', '.join(matches or names) or 'no files'}); set data.source and data.target, or data.train_file, "
                "data.validation_file and data.test_file"
            )
        return self.path / matches[0]


def read_texts(path: Path) -> list[str]:
    """Read the lines of a file, without blanks around them."""
    return [line.strip() for _, line in read_lines(path)]
