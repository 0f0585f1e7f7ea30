"""Compare readers on questions of many domains, each file of questions a domain.

Each question is read with its own text. Finished domains are saved, so an interrupted table
resumes.
"""

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from mnemic.checkpoint.atomic_files import hash_file, write_json
from mnemic.checkpoint.folder import WEIGHTS, Checkpoint, find_checkpoint, load_checkpoint
from mnemic.checkpoint.lock import lock_folder
from mnemic.data.text_tasks.encode_windows import encode_questions
from mnemic.data.text_tasks.examples import QuestionExample, TextError
from mnemic.data.text_tasks.files import read_lines
from mnemic.data.text_tasks.question_lines import read_question_lines
from mnemic.data.text_tasks.squad import read_squad
from mnemic.evaluate.answer_thresholds import apply_threshold, average_answers, evaluate_spans
from mnemic.evaluate.curves import roc_auc
from mnemic.evaluate.intervals import wilson_interval
from mnemic.predict.methods import check_method
from mnemic.predict.results import NO_ANSWER_THRESHOLD
from mnemic.predict.text_tasks import build_window_options
from mnemic.recipe import ConfigError
from mnemic.reproduce.rows import append_rows, describe_hardware, describe_versions, read_rows
from mnemic.text.questions import normalize_question

ROWS_FILE = "rows.jsonl"
SUFFIXES = (".json", ".jsonl")  # may be followed by .gz or .xz


@dataclass(frozen=True, kw_only=True)
class DomainsTable:
    """The settings of a table of domains: files, readers, and questions per file."""

    data: Sequence[str]  # files of questions, or folders of them
    models: Sequence[str] = ("reader",)
    limit: int = 0  # questions of each file, drawn by their ids; 0: all
    device: str = "cpu"

    def __post_init__(self) -> None:
        if not self.models or self.limit < 0:
            raise ConfigError(f"a table takes at least one reader and a limit from 0 on, not {self.limit}")

    def list_files(self) -> list[Path]:
        """List the files of questions, one per domain."""
        files = []
        for name in self.data:
            path = Path(name).expanduser()
            paths = [file for file in sorted(path.glob("*")) if has_questions(file)] if path.is_dir() else [path]
            if not path.exists() or not paths:
                raise ConfigError(
                    f"no files of questions about texts in {name!r}: .jsonl or SQuAD's .json, also .gz or .xz"
                )
            files += paths
        return files


class DomainStep(NamedTuple):
    """The progress of a table: the reader and the domain that is read next."""

    model: str
    domain: str
    number: int  # from 0
    total: int


def evaluate_missing_domains(table: DomainsTable, folder: Path) -> Generator[DomainStep, None, None]:
    """Read the questions of each missing domain with each reader; then call ``save_domains``."""
    files, total = table.list_files(), len(table.models) * len(table.list_files())
    with lock_folder(folder):
        for model_number, model in enumerate(table.models):
            checkpoint = load_checkpoint(model)
            check_method(checkpoint, "answer")
            checkpoint.network.to(table.device)
            for number, file in enumerate(files):
                yield DomainStep(model, domain_of(file), model_number * len(files) + number, total)
                key = row_key(model, file, table.limit)
                if key not in load_rows(folder):
                    examples = sample_questions(read_domain(file), table.limit)
                    row = {"key": key, "model": model, "domain": domain_of(file)}
                    append_rows(folder / ROWS_FILE, [row | evaluate_domain(checkpoint, examples)])


def has_questions(file: Path) -> bool:
    """Whether a file has questions about texts, by its name and first line."""
    if not file.is_file() or not set(file.suffixes) & {*SUFFIXES}:
        return False
    if ".json" in file.suffixes:
        return True
    _, line = next(read_lines(file), (0, ""))
    return '"context"' in line


def read_domain(file: Path) -> list[QuestionExample]:
    """Read the questions of a file that are answered by a span, in one form."""
    examples = read_squad(file) if ".json" in file.suffixes else read_question_lines(file)
    examples = [example for example in examples if example.is_extractive]
    if not examples:
        raise TextError(f"{file} holds no questions that are answered by a part of a text")
    return [example._replace(question=normalize_question(example.question)) for example in examples]


def sample_questions(examples: Sequence[QuestionExample], limit: int) -> list[QuestionExample]:
    """Draw ``limit`` questions by a hash of their ids; 0: all."""
    if not limit or len(examples) <= limit:
        return list(examples)
    return sorted(examples, key=lambda example: sha256(example.question_id.encode()).digest())[:limit]


def evaluate_domain(checkpoint: Checkpoint, examples: Sequence[QuestionExample]) -> dict[str, Any]:
    """Answer questions with a reader; return its metrics in percent, with 95 % intervals.

    F1 and exact match are of questions that have an answer, which is always given. "f1_or_none" is
    SQuAD 2.0's, and "auroc" that of "no answer"; both need questions without an answer.
    """
    dataset = encode_questions(examples, checkpoint.tokenizer, build_window_options(checkpoint))
    start = time.perf_counter()
    predictions = evaluate_spans(checkpoint.network, dataset.to(checkpoint.network.device))
    seconds = time.perf_counter() - start
    answerable = [case for case in predictions if case.has_answer]
    row: dict[str, Any] = {"questions": len(predictions), "answerable": len(answerable)}
    if answerable:
        row |= {name: 100 * value for name, value in average_answers(answerable).items()}
        low, high = wilson_interval(row["f1"] / 100, len(answerable))
        row["f1_interval"] = [100 * low, 100 * high]
    if len(answerable) < len(predictions):
        row["f1_or_none"] = 100 * apply_threshold(predictions, 1 - NO_ANSWER_THRESHOLD).f1
    if 0 < len(answerable) < len(predictions):
        scores = [case.probability for case in predictions], [case.has_answer for case in predictions]
        row["auroc"] = 100 * roc_auc(*scores)
    return row | {"seconds": round(seconds, 2), "hardware": describe_hardware(checkpoint.network.device)}


def save_domains(table: DomainsTable, folder: Path) -> dict[str, Any]:
    """Save the rows of a table, by domain and reader, as ``table.json``."""
    rows = load_rows(folder)
    result = {
        "table": "domains",
        "models": list(table.models),
        "limit": table.limit,
        "domains": {
            domain_of(file): {model: rows[row_key(model, file, table.limit)] for model in table.models}
            for file in table.list_files()
        },
        "versions": describe_versions(),
    }
    write_json(folder / "table.json", result)
    return result


def domain_of(file: Path) -> str:
    """Return the name of a file's domain: the file's, without its suffixes."""
    return file.name.split(".")[0]


def row_key(model: str, file: Path, limit: int) -> str:
    """Return what a row depends on: the weights, the questions and their number."""
    weights = hash_file(find_checkpoint(Path(model)) / WEIGHTS)
    return f"{weights[:16]} {hash_file(file)[:16]} {limit}"


def load_rows(folder: Path) -> dict[str, dict[str, Any]]:
    """Load the finished rows by their key."""
    return {row["key"]: row for row in read_rows(folder / ROWS_FILE)}
