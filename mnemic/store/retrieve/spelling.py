"""Correct misspelled words of a question by the memory's own words.

A word is changed only if no passage has it, it is no common English word, and a word of the memory
that begins with the same letter is near: one typing error (a letter too many, missing, wrong, or
two exchanged; Damerau 1964), or two in a word of eight letters or more. In a word of four or five
letters another letter makes another word, so that only the other three errors count.

The full-text index has stems, so that its terms are compared with the beginnings of a word; the
words themselves are then read in a few of the passages that have the stem.
"""

import json
import re
from collections.abc import Iterator
from functools import cache

from mnemic.checkpoint.shipped import READERS
from mnemic.store.contract import MemorySlot, StoreError
from mnemic.store.relational import Store
from mnemic.store.retrieve.models import find_shipped_folder
from mnemic.text.stop_words import STOP_WORDS

MIN_LENGTH, LONG_LENGTH = 4, 8  # letters of a word that is corrected, and of one with two errors
SHORT_LENGTH = 5  # up to here, a wrong letter is no error
MAX_SUFFIX = 6  # letters that a stemmer may have taken from a word
NUM_TERMS, NUM_SLOTS = 12, 4  # terms whose words are read, and passages per term
_WORD = re.compile(r"\w+")


def correct_spelling(store: Store, question: str) -> str:
    """Return a question with its misspelled words corrected; the others are as they were.

    A search of "insurence premum" becomes one of "insurance premium".
    """

    def correct(match: re.Match[str]) -> str:
        word = match[0].lower()
        if len(word) < MIN_LENGTH or word in STOP_WORDS or not (word.isascii() and word.isalpha()):
            return match[0]
        correction = find_correction(store, word)
        is_name = match.start() > 0 and match[0][0].isupper()
        if correction is None or (is_name and len(correction) == len(word) and sorted(correction) != sorted(word)):
            return match[0]  # of names, one letter makes another one
        return correction.capitalize() if match[0][0].isupper() else correction

    return _WORD.sub(correct, question)


def find_correction(store: Store, word: str) -> str | None:
    """Return the word of the memory that was meant; None: there is none."""
    known_slots = store.get_slots([match.slot_id for match in store.search_bm25(word, NUM_SLOTS)])
    known_words = set(list_words(known_slots))  # some of them have its stem
    if word in known_words or is_common(word):  # the latter takes a moment when first called
        return None
    if known_slots:
        return find_same_form(word, known_words)
    max_errors = 2 if len(word) >= LONG_LENGTH else 1
    terms = []
    for term, count in store.list_terms(word[0]):
        is_near = len(set(term) - set(word)) <= max_errors and len(word) - MAX_SUFFIX <= len(term) <= len(word) + 1
        if is_near and (errors := count_prefix_errors(word, term)) <= max_errors:
            terms.append((errors, -count, term))
    candidates = []
    for _, count, term in sorted(terms)[:NUM_TERMS]:
        for candidate in list_words(store.get_slots(store.find_term_slots(term, NUM_SLOTS))):
            if candidate[0] == word[0] and is_typing_error(word, candidate, max_errors):
                candidates.append((count_errors(word, candidate), count, candidate))
    return min(candidates)[2] if candidates else None


def find_same_form(word: str, words: set[str]) -> str | None:
    """Return a word of equal length and ending with one error, such as insurence."""
    if len(word) <= SHORT_LENGTH:
        return None
    same_form = [known for known in sorted(words) if len(known) == len(word) and known[-2:] == word[-2:]]
    return next((known for known in same_form if known[0] == word[0] and count_errors(word, known) == 1), None)


def is_typing_error(word: str, candidate: str, max_errors: int) -> bool:
    """Return whether ``word`` may be ``candidate`` with typing errors."""
    if len(word) <= SHORT_LENGTH and len(candidate) == len(word) and sorted(candidate) != sorted(word):
        return False
    return 0 < count_errors(word, candidate) <= max_errors


def list_words(slots: list[MemorySlot]) -> Iterator[str]:
    """Yield the words of passages in lower case."""
    for slot in slots:
        yield from (match[0].lower() for match in _WORD.finditer(slot.passage.text))


def count_errors(word: str, candidate: str) -> int:
    """Return the number of typing errors between two words (Damerau 1964)."""
    return compute_error_rows(word, candidate)[-1]


def count_prefix_errors(word: str, term: str) -> int:
    """Return the least number of errors between a term and a beginning of a word."""
    return min(compute_error_rows(word, term))


def compute_error_rows(word: str, candidate: str) -> list[int]:
    """Return the errors between ``candidate`` and every beginning of ``word``."""
    previous, row = list[int](), list(range(len(word) + 1))
    for number, letter in enumerate(candidate, start=1):
        before, previous, row = previous, row, [number]
        for position, word_letter in enumerate(word, start=1):
            cost = min(row[-1] + 1, previous[position] + 1, previous[position - 1] + (letter != word_letter))
            if number > 1 and position > 1 and (letter, word_letter) == (word[position - 2], candidate[number - 2]):
                cost = min(cost, before[position - 2] + 1)  # two letters exchanged
            row.append(cost)
    return row


def is_common(word: str) -> bool:
    """Return whether a word, or the word it is a form of, is common."""
    stems = [word, *(word.removesuffix(suffix) for suffix in ("s", "es", "ed", "ing", "er", "ly"))]
    return any(form in load_common_words() for stem in stems for form in (stem, f"{stem}e") if len(stem) > 2)


@cache
def load_common_words() -> frozenset[str]:
    """Load common English words: the whole words among the shipped reader's tokens."""
    try:
        text = (find_shipped_folder(READERS[0]) / "tokenizer.json").read_text(encoding="utf-8")
    except (StoreError, OSError):  # an installation without weights
        return frozenset()
    return frozenset(token for token in json.loads(text)["model"]["vocab"] if token.isalpha())
