"""Judge the answers of a memory: the text, the file, the page and the line; or silence.

An answer is right if, after Unicode normalization (NFKC) and in small letters, it contains one of
the gold answers as whole words, has at most ``MAX_EXTRA_WORDS`` words more than that one, and
contains none of the wrong ones. Words keep the signs within them: ``0.2`` is not in ``0.25``, nor
``200`` in ``1,200``. Chinese characters count as words of their own; ``MAX_EXTRA_CHINESE`` of them
are allowed. An answer that runs over the end of a line, which may be the end of a list item, may
have only ``MAX_EXTRA_WRAPPED`` words or characters more.
"""

import filecmp
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from folder.encodings import ENCODINGS
from mnemic import Memory

MAX_EXTRA_WORDS = 6
MAX_EXTRA_CHINESE = 12
MAX_EXTRA_WRAPPED = 2
HAN = r"[\u3400-\u9fff]"
LETTER = rf"(?:(?!{HAN})\w)"
WORD = re.compile(rf"{HAN}|\+?{LETTER}+(?:(?:(?<=\d)[.,:](?=\d)|['/-]){LETTER}+)*")
NUMBERED_OTHERWISE = {".docx", ".ods", ".xls", ".xlsx"}  # by paragraphs or rows
MEMBER = "!/"  # between a file and the document inside it


class GoldQuestion(NamedTuple):
    """A question with its right answers and their position; no answers: unanswerable."""

    question: str
    family: str
    answers: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    file: str = ""
    line: tuple[int, ...] = ()  # any of these; empty: not checked
    page: tuple[int, ...] = ()
    elsewhere: tuple[tuple[str, int], ...] = ()  # further files and pages that state the answer


class Verdict(NamedTuple):
    """What a memory answered to a question, and what of it is right."""

    question: str
    family: str
    answer: str  # empty: none
    confidence: float
    citation: str
    has_answer: bool  # whether the answer is right, or rightly none
    has_file: bool
    has_position: bool
    best_guess: str  # the best answer, whatever its confidence

    @property
    def is_right(self) -> bool:
        """Report whether answer, file, page and line are right."""
        return self.has_answer and self.has_file and self.has_position


def load_questions(path: Path) -> list[GoldQuestion]:
    """Load the questions of a TOML file, answerable ones first."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    questions = [GoldQuestion(**{key: freeze(key, value) for key, value in row.items()}) for row in tables["question"]]
    return questions + [GoldQuestion(row["question"], "unanswerable") for row in tables.get("unanswerable", [])]


def freeze(key: str, value: Any) -> Any:
    """Make a tuple of a value that may be several."""
    if key in ("question", "family", "file"):
        return value
    return tuple(value) if isinstance(value, list) else (value,)


def check_lines(questions: Iterable[GoldQuestion], folder: Path) -> None:
    """Raise ``ValueError`` if a text file has no gold answer on the line that a question names."""
    for gold in questions:
        path = folder / gold.file
        if gold.line and path.suffix not in NUMBERED_OTHERWISE:
            lines = path.read_text(encoding=ENCODINGS.get(gold.file, "utf-8")).split("\n")
            named_lines = " ".join(lines[number - 1] for number in gold.line)
            if not any(answer in named_lines for answer in gold.answers):
                raise ValueError(f"{gold.file}: line {gold.line} has no {gold.answers}; correct the questions")


def split_words(text: str) -> list[str]:
    """Split a text into normalized words; see the top of this file."""
    return WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def contains_words(words: Sequence[str], part_words: Sequence[str]) -> bool:
    """Check whether words occur in a row within others."""
    size = len(part_words)
    return any(list(words[start : start + size]) == list(part_words) for start in range(len(words) - size + 1))


def is_right_answer(answer: str, gold: GoldQuestion) -> bool:
    """Check an answer's text by the rules at the top of this file."""
    words = split_words(answer)
    if any(contains_words(words, split_words(text)) for text in gold.wrong):
        return False
    is_wrapped = "\n" in answer.strip()
    return any(fits_answer(words, split_words(text), is_wrapped) for text in gold.answers)


def fits_answer(words: Sequence[str], gold_words: Sequence[str], is_wrapped: bool) -> bool:
    """Check that an answer contains the gold words and little more."""
    if is_wrapped and len(words) > len(gold_words) + MAX_EXTRA_WRAPPED:
        return False
    extra = Counter("chinese" if re.fullmatch(HAN, word) else "word" for word in words)
    extra.subtract("chinese" if re.fullmatch(HAN, word) else "word" for word in gold_words)
    is_short = extra["word"] <= MAX_EXTRA_WORDS and extra["chinese"] <= MAX_EXTRA_CHINESE
    return is_short and contains_words(words, gold_words)


def is_same_file(name: str, gold_file: str, folder: Path) -> bool:
    """Check whether a citation names the gold file, or one with the same content."""
    path, gold_path = Path(name), folder / gold_file
    if path == gold_path:
        return True
    is_plain = MEMBER not in name + gold_file and path.is_file() and gold_path.is_file()
    return is_plain and filecmp.cmp(path, gold_path, shallow=False)


def judge_answer(memory: Memory, gold: GoldQuestion, folder: Path) -> Verdict:
    """Ask a question and compare answer, file, page and line with the gold ones."""
    answer = memory.ask(gold.question)
    best_guess = answer.ranked[0].text if answer.ranked else ""
    if not answer.has_answer:
        is_silent = not gold.answers
        return Verdict(gold.question, gold.family, "", 0.0, "", is_silent, is_silent, is_silent, best_guess)
    source = answer.evidence[0]
    is_elsewhere = any(source.name == str(folder / file) and source.page == page for file, page in gold.elsewhere)
    has_position = (not gold.line or answer.line in gold.line) and (not gold.page or source.page in gold.page)
    return Verdict(
        gold.question,
        gold.family,
        answer.text,
        round(answer.score, 2),
        f"{source.name.removeprefix(f'{folder}/')}, page {source.page}, line {answer.line}",
        bool(gold.answers) and is_right_answer(answer.text, gold),
        bool(gold.answers) and (is_elsewhere or is_same_file(source.name, gold.file, folder)),
        bool(gold.answers) and (is_elsewhere or has_position),
        best_guess,
    )


def summarize_verdicts(verdicts: Iterable[Verdict]) -> dict[str, str]:
    """Count right answers, files and positions, and unanswerable questions declined."""
    verdicts = list(verdicts)
    answerable = [verdict for verdict in verdicts if verdict.family != "unanswerable"]
    declined = [verdict.has_answer for verdict in verdicts if verdict.family == "unanswerable"]
    total = len(answerable)
    counts = {
        "answer, file, page and line right": sum(verdict.is_right for verdict in answerable),
        "answer right": sum(verdict.has_answer for verdict in answerable),
        "answer and file right": sum(verdict.has_answer and verdict.has_file for verdict in answerable),
        "answered": sum(bool(verdict.answer) for verdict in answerable),
    }
    summary = {name: f"{count} of {total}" for name, count in counts.items()}
    return summary | ({"declined": f"{sum(declined)} of {len(declined)}"} if declined else {})


def format_verdicts(verdicts: Iterable[Verdict]) -> str:
    """Format verdicts as a table, one line per question."""
    rows = []
    for verdict in verdicts:
        marks = "".join(
            letter if flag else "-"
            for letter, flag in zip("AFP", (verdict.has_answer, verdict.has_file, verdict.has_position))
        )
        answer = verdict.answer.replace("\n", "\\n") or "none"
        citation = verdict.citation or f"best guess: {verdict.best_guess[:60]!r}"
        rows.append(f"{marks}  {verdict.family:<12}  {verdict.question}")
        rows.append(f"     {answer[:80]} ({verdict.confidence:.2f})  {citation}")
    return "\n".join(["A answer, F file, P page and line right; - wrong", *rows])
