"""Write questions ahead: a network asks what each passage answers (doc2query).

Nogueira et al. 2019 (arXiv:1904.08375): a passage is easier to find if questions that it answers
are searched, too. Where we differ: the network reads an answer with the passage, and the answers
are names and numbers of it; the questions are keys beside the passage, not words of it.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mnemic.recipe import ConfigError
from mnemic.store.contract import StoreError
from mnemic.store.question_keys import QuestionRow
from mnemic.store.relational import Store
from mnemic.store.retrieve.embedders import Embedder
from mnemic.store.retrieve.models import load_with_digest
from mnemic.text.documents import replace_unstorable
from mnemic.text.tokenizers.word_starts import find_capitalized_runs

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint

DATA_KIND = "question-generation"  # of the recipe of a network that writes questions
MAX_QUESTIONS = 5  # per passage
MAX_QUESTION_CHARS = 300
PASSAGES_PER_STEP = 16
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NAME = re.compile(r"(?<=[a-z,;:] )[A-Z]\w+")  # one capitalized word within a sentence


class QuestionWriter(Protocol):
    """A model that writes questions which a passage answers."""

    def write(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the questions of each passage; none where it has nothing to ask for."""


class Candidate(NamedTuple):
    """A stretch of a passage that a question may ask for."""

    start: int
    end: int


class NetworkWriter:
    """A network trained by the recipe ``question-generation``, which asks for names and numbers."""

    def __init__(self, folder: str | Path) -> None:
        try:
            self.checkpoint: Checkpoint = load_with_digest(Path(folder).expanduser())[0]
        except ConfigError as error:
            raise StoreError(f"no network that writes questions in {folder}: {error}") from error
        kind = self.checkpoint.recipe["data"].get("kind")
        if kind != DATA_KIND:
            raise StoreError(
                f"the network in {folder} was trained on data of kind {kind!r}; one that writes questions comes from: "
                "mnemic train question-generation --data SQUAD"
            )

    def write(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the questions of each passage, at most ``MAX_QUESTIONS``, each once."""
        from mnemic.data.seq2seq.question_generation import AnswerInPassage, write_sources
        from mnemic.predict.generate import generate_answers

        cases = [
            (number, AnswerInPassage(text, text[start:end], start))
            for number, text in enumerate(texts)
            for start, end in find_candidates(text)
        ]
        questions: list[list[str]] = [[] for _ in texts]
        if cases:
            tokenizer, max_tokens = self.checkpoint.tokenizer, self.checkpoint.sizes["max_length"]
            sources = write_sources([case for _, case in cases], tokenizer, max_tokens)  # type: ignore[arg-type]
            for (number, _), result in zip(cases, generate_answers(self.checkpoint, sources)):
                question = clean_question(result.text)
                if question and question not in questions[number]:
                    questions[number].append(question)
        return questions


def resolve_writer(writer: str | Path | QuestionWriter) -> QuestionWriter:
    """Load a writer of questions from a folder; return a writer as it is."""
    return NetworkWriter(writer) if isinstance(writer, str | Path) else writer


def find_candidates(text: str) -> list[Candidate]:
    """Find names and numbers of a passage, evenly over it, each text once.

    >>> text = "In 1822 Ada Lovelace saw the house in London."
    >>> [text[start:end] for start, end in find_candidates(text)]
    ['1822', 'Ada Lovelace', 'London']
    """
    runs = [Candidate(span.start, span.end) for span in find_capitalized_runs(text)]
    singles = [Candidate(*match.span()) for pattern in (_NUMBER, _NAME) for match in pattern.finditer(text)]
    inside = [single for single in singles if not any(run.start <= single.start < run.end for run in runs)]
    by_text = {text[start:end]: Candidate(start, end) for start, end in sorted([*runs, *inside], reverse=True)}
    candidates = sorted(by_text.values())
    step = max(len(candidates) / MAX_QUESTIONS, 1.0)
    return [candidates[int(number * step)] for number in range(min(len(candidates), MAX_QUESTIONS))]


def clean_question(text: str) -> str:
    """Return a generated question as one line of a bounded length."""
    return " ".join(replace_unstorable(text).split())[:MAX_QUESTION_CHARS]


def write_missing_questions(
    store: Store, embedder: Embedder | None, writer: QuestionWriter
) -> Iterator[tuple[int, int]]:
    """Write the questions of all passages that have none yet; yield done and total.

    Each step is one transaction, so that an interrupted call can be made again.
    """
    done, total = 0, store.count_slots_without_questions()
    for slots in store.list_slots_without_questions():
        for start in range(0, len(slots), PASSAGES_PER_STEP):
            batch = slots[start : start + PASSAGES_PER_STEP]
            questions = writer.write([slot.passage.text for slot in batch])
            rows = [QuestionRow(slot.id, lines) for slot, lines in zip(batch, questions)]
            with store.transaction():
                store.put_questions(embed_questions(rows, embedder))
            done += len(batch)
            yield done, total


def embed_questions(rows: Sequence[QuestionRow], embedder: Embedder | None) -> list[QuestionRow]:
    """Add the vectors of questions, if there is an embedder."""
    texts = [question for row in rows for question in row.questions]
    if embedder is None or not texts:
        return list(rows)
    vectors, embedded, end = embedder.embed(texts), [], 0
    for row in rows:
        start, end = end, end + len(row.questions)
        embedded.append(row._replace(vectors=vectors[start:end]) if row.questions else row)
    return embedded
