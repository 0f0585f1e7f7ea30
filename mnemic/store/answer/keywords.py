"""Phrase keywords as questions: a reader is trained on questions, and "rent" is none."""

import re

MAX_KEYWORDS = 5  # more words without a question word are a statement, and read as they are
QUESTION_WORD_TEXT = """
    who whom whose what when where which why how is are was were am be do does did can could will
    would shall should has have had may might must name list tell describe give explain
"""
QUESTION_WORDS = frozenset(QUESTION_WORD_TEXT.split())


def is_keywords(text: str) -> bool:
    """Return whether a text is a few words, not a question."""
    words = re.findall(r"\w+", text.lower())
    return "?" not in text and 0 < len(words) <= MAX_KEYWORDS and QUESTION_WORDS.isdisjoint(words)


def phrase_question(text: str) -> str:
    """Phrase keywords as a question for a reader; return a question as it is."""
    return f"What is the {text.strip(' .!:')}?" if is_keywords(text) else text
