"""Make questions that a text nearly answers, by replacing words of those it answers.

Half of SQuAD 2.0's unanswerable questions differ from an answerable one about the same text by one
or two words: "smallest" for "largest", "didn't" for "did", another name or year (Rajpurkar et al.
2018, arXiv:1806.03822, table 2). Such replacements are learned from the training questions, and
made to others (Zhu et al. 2019, arXiv:1906.06045, compare rules and networks that do so).
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from random import Random

from mnemic.data.text_tasks.examples import QuestionExample
from mnemic.text.stop_words import STOP_WORDS

ALTERED_SUFFIX = "-altered"  # of the id of a copy
MAX_WORDS = 2  # that are replaced at once
MIN_COUNT = 3  # how often a replacement must have been made, to be learned
CHANGES = {"name": 0.35, "word": 0.45, "negation": 0.2}  # how often each is tried
NEGATIONS = frozenset({"not", "no", "never", "without"})
AUXILIARIES = frozenset(
    {"is", "are", "was", "were", "do", "does", "did", "can", "could", "has", "have", "had", "will", "would", "should"}
)

_WORD = re.compile(r"\w+(?:['.,-]\w+)*")
_NAME = re.compile(r"(?<=[\w,;] )[A-Z][\w'-]+|\d[\d.,]*\d|\d")  # not the first word of a sentence

Words = tuple[str, ...]


@dataclass(frozen=True)
class Replacements:
    """What each word, or two, was replaced by, and how often where it occurred."""

    by_words: Mapping[Words, Sequence[tuple[Words, float]]]

    def find(self, words: Sequence[str]) -> Iterator[tuple[int, Words, Words, float]]:
        """Find the replacements in a question: their place, old and new words, and their rates."""
        for start in range(len(words)):
            for length in range(1, MAX_WORDS + 1):
                old = tuple(words[start : start + length])
                if len(old) == length:
                    for new, rate in self.by_words.get(old, ()):
                        yield start, old, new, rate


def learn_replacements(examples: Sequence[QuestionExample]) -> Replacements:
    """Learn replacements from unanswerable questions and the nearest answerable ones."""
    by_text: dict[str, tuple[list[list[str]], list[list[str]]]] = {}
    for example in examples:
        pair = by_text.setdefault(" ".join(example.text.split()), ([], []))
        pair[bool(example.answers)].append(split_words(example.question))
    counts: Counter[tuple[Words, Words]] = Counter()
    for unanswerable, answerable in by_text.values():
        for words in unanswerable:
            edits = [edit for right_words in answerable if (edit := find_edit(right_words, words)) is not None]
            if edits:
                counts[min(edits, key=lambda edit: max(map(len, edit)))] += 1
    occurrences = Counter(
        words[start : start + length]
        for _, answerable in by_text.values()
        for words in map(tuple, answerable)
        for length in range(1, MAX_WORDS + 1)
        for start in range(len(words) - length + 1)
    )
    by_words: dict[Words, list[tuple[Words, float]]] = {}
    for (old, new), count in counts.items():
        if count >= MIN_COUNT and changes_meaning(old, new):
            by_words.setdefault(old, []).append((new, count / occurrences[old]))
    return Replacements(by_words)


def split_words(question: str) -> list[str]:
    """Return the words of a question in lower case."""
    return [word.lower() for word in _WORD.findall(question)]


def find_edit(old: Sequence[str], new: Sequence[str]) -> tuple[Words, Words] | None:
    """Find the few words to replace to make one question of another.

    Where words are only inserted, the word before them is replaced, too.

    >>> find_edit("what is the largest city".split(), "what is the smallest city".split())
    (('largest',), ('smallest',))
    >>> find_edit("who is known".split(), "who is not known".split())
    (('is',), ('is', 'not'))
    """
    before = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new)))
    limit = min(len(old), len(new)) - before
    after = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old[::-1][:limit], new[::-1])))
    before -= before > 0 and before + after == len(old)
    edit = tuple(old[before : len(old) - after]), tuple(new[before : len(new) - after])
    return edit if edit[0] != edit[1] and all(0 < len(words) <= MAX_WORDS for words in edit) else None


def changes_meaning(old: Words, new: Words) -> bool:
    """Whether a replacement changes a word with meaning, or negates an auxiliary."""
    if is_negation(old, new):
        return set(old) <= AUXILIARIES
    return any(word not in STOP_WORDS for word in set(old) ^ set(new))


def is_negation(old: Words, new: Words) -> bool:
    """Whether a replacement only adds a negation, or takes one away."""
    positive = [[word.removesuffix("n't") for word in words if word not in NEGATIONS] for words in (old, new)]
    return positive[0] == positive[1]


def alter_questions(
    examples: Sequence[QuestionExample], replacements: Replacements, share: float, seed: int
) -> list[QuestionExample]:
    """Make unanswerable copies of a share of the answerable questions of an article."""
    names = [name for text in dict.fromkeys(example.text for example in examples) for name in find_names(text)]
    altered = []
    for example in examples:
        generator = Random(f"alter/{seed}/{example.question_id}/{example.question}")
        if example.answers and example.is_extractive and generator.random() < share:
            question = alter_question(example, replacements, names, generator)
            if question is not None:
                question_id = f"{example.question_id}{ALTERED_SUFFIX}"
                copy = example._replace(question=question, question_id=question_id, start=-1)
                altered.append(copy._replace(answers=(), answer_starts=(), needs_all=False))
    return altered


def find_names(text: str) -> list[str]:
    """Find names and numbers in a text: capitalized words inside sentences, and digits."""
    return [match[0].strip(".,") for match in _NAME.finditer(text)]


def alter_question(
    example: QuestionExample, replacements: Replacements, names: Sequence[str], generator: Random
) -> str | None:
    """Replace a word of a question, or negate it; None if that is impossible.

    A name or number of the text is replaced by another one of ``names``, of the same kind; other
    words by what replaced them in the questions learned from, drawn by their rates.
    """
    matches = list(_WORD.finditer(example.question))
    words = [match[0].lower() for match in matches]
    change = generator.choices(list(CHANGES), list(CHANGES.values()))[0]
    if change == "name":
        text_names = {name.lower() for name in find_names(example.text)} - STOP_WORDS
        pairs = [
            (position, name)
            for position, word in enumerate(words)
            if word in text_names
            for name in names
            if is_other_name(name, word, words)
        ]
        if not pairs:
            return None
        position, name = generator.choice(pairs)
        new = name.lower() if words[position] == matches[position][0] else name
        return replace_words(example.question, matches[position : position + 1], (new,))
    candidates = [row for row in replacements.find(words) if is_negation(row[1], row[2]) == (change == "negation")]
    if not candidates:
        return None
    start, old, replacement, _ = generator.choices(candidates, [rate for *_, rate in candidates])[0]
    return replace_words(example.question, matches[start : start + len(old)], replacement)


def is_other_name(name: str, word: str, words: Sequence[str]) -> bool:
    """Check whether a name may replace a word: same kind, and new.

    Numbers are of one kind if they have one length.
    """
    same_kind = name[0].isdigit() == word[0].isdigit() and (not word[0].isdigit() or len(name) == len(word))
    return same_kind and name.lower() not in words and name.lower() not in STOP_WORDS


def replace_words(question: str, matches: Sequence[re.Match[str]], new: Sequence[str]) -> str:
    """Replace neighboring words of a question."""
    return question[: matches[0].start()] + " ".join(new) + question[matches[-1].end() :]
