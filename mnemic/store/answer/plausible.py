"""Check whether a span can be an answer at all.

No answer are words of the question alone, an amount without a number, and the name of a value
("deputy: Piet") if the question asks for something else of that value.
"""

import re

from mnemic.store.retrieve.query_words import extract_words
from mnemic.text.sentences import Span

_WORD = re.compile(r"\w+")
_AMOUNT = re.compile(r"(?i)\bhow (?:many|tall|wide|deep|heavy|old|far)\b")
_NUMBER = re.compile(
    r"(?i)[\d½¼¾]|\b(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty"
    r"|fifty|sixty|seventy|eighty|ninety|hundred\w*|thousand\w*|\w+illions?|dozens?|half|third|quarter|pair|couple"
    r"|both|all|most|many|few|several|some|none|no|once|twice|single|every|each|zero)\b"
)
_REST_OF_KEY = re.compile(r"[^\n:=]{0,40}?[ \t*\"]*[:=][ \t]+(?P<value>[^\n]*)")


def is_plausible(question: str, text: str, span: Span) -> bool:
    """Check whether a span of a passage's text can be the answer to a question."""
    answer = text[span.start : span.end]
    if repeats_question(question, answer) or (_AMOUNT.search(question) and not _NUMBER.search(answer)):
        return False
    return not is_other_key(question, text, span)


def repeats_question(question: str, answer: str) -> bool:
    """Check whether an answer has only words of a question without a choice."""
    question_words = set(_WORD.findall(question.lower()))
    words = set(_WORD.findall(answer.lower()))
    return bool(words) and words <= question_words and "or" not in question_words


def is_other_key(question: str, text: str, span: Span) -> bool:
    """Check whether a span names a value that lacks words of the question.

    "Landlord: Ann" answers who Ann is, but not when Ann was born.
    """
    rest = _REST_OF_KEY.match(text, span.end)
    line_start = text.rfind("\n", 0, span.start) + 1
    if rest is None or any(mark in text[line_start : span.end] for mark in (": ", "= ", "; ")):
        return False
    value_words = extract_words(rest["value"])
    return any(word not in value_words for word in extract_words(question))
