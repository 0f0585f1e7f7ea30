"""Data source of classification as text to text: answers are names of classes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from mnemic.data.contract import Names
from mnemic.data.seq2seq.batches import AnswerStart
from mnemic.data.seq2seq.dataset import BYTE_BPE, SelectBy, Seq2SeqSource
from mnemic.data.text_tasks.examples import LabeledExample, TextError
from mnemic.data.text_tasks.splits import TextFiles
from mnemic.data.text_tasks.tables import read_labeled

STEPS_OF_ONE = 5  # T5 rounds numbers to fifths


@dataclass(frozen=True, kw_only=True)
class ClassesAsText(Seq2SeqSource, TextFiles):
    """Texts or pairs of texts, whose class or number is said in words (T5).

    Raffel et al. 2020 (arXiv:1910.10683), section 2.4 and appendix D. A network reads ``TASK
    sentence: …`` or, with ``pairs``, ``TASK sentence1: … sentence2: …`` and says the label:
    ``names`` has what it is called, if the files call it otherwise. ``numbers`` are said to the
    nearest 0.2. ``columns`` are as for ``classes``, and ``exact`` is then the accuracy.
    """

    files: ClassVar[str] = "text"
    alternative: ClassVar[str] = "your own .tsv or .jsonl files"
    task: str = "task"
    pairs: bool = False
    numbers: bool = False
    names: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)
    start: AnswerStart = "cls"
    select_by: SelectBy = "exact"
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: {**BYTE_BPE, "vocab": 8000})

    def list_scores(self) -> Names:
        """List the scores of numbers; classes are exact or wrong."""
        return ("numbers",) if self.numbers else ()

    def read_file(self, path: Path) -> list[LabeledExample]:
        """Read the texts or pairs of one file, and name their labels."""
        examples = read_labeled(path, self.columns, paired=self.pairs)
        return [LabeledExample(self.write_text(example), None, self.name_label(example.label)) for example in examples]

    def write_text(self, example: LabeledExample) -> str:
        """Write what a network reads of an example."""
        if example.pair is None:
            return f"{self.task} sentence: {example.text}"
        return f"{self.task} sentence1: {example.text} sentence2: {example.pair}"

    def name_label(self, label: str) -> str:
        """Name a class, or round a number."""
        if not self.numbers:
            return str(self.names.get(label, label))
        try:
            return f"{round(float(label) * STEPS_OF_ONE) / STEPS_OF_ONE:.1f}"
        except ValueError:
            raise TextError(
                f"data.numbers is true, but the label {label!r} is no number: set data.numbers=false"
            ) from None
