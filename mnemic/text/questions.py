"""Forms of questions: one normal form, and those that people type."""

import re
import unicodedata
from random import Random

from mnemic.text.stop_words import STOP_WORDS

# Quotes and dashes that stand for one of ASCII.
_ASCII = str.maketrans(
    {"‘": "'", "’": "'", "‛": "'", "`": "'", "“": '"', "”": '"', "„": '"', "–": "-", "—": "-", "−": "-"}
)
_WORD = re.compile(r"\w+(?:['-]\w+)*")
_MIN_MISSPELLED = 5  # letters of a word that may get a typing error

# Blanks that a tokenizer has put beside punctuation: a character that a question must have, what is
# looked for then, and its replacement.
_REPAIRS = tuple(
    (character, re.compile(pattern), replacement)
    for character, pattern, replacement in (
        ("'", r"''", '"'),
        ('"', r'"\s*([^"]*?)\s*"', r'"\1"'),  # inside quotation marks
        ("'", r"(?<!s )(?<!\S)'\s+([^']+?)\s+'(?!\w)", r"'\1'"),
        ("'", r"\s*n\s?'\s?t\b", "n't"),  # do n't
        ("'", r"(\w)\s?'\s?(s|re|ve|ll|d|m)\b", r"\1'\2"),  # what 's
        ("'", r"(?<=s) '(?= \w)", "'"),  # annelids ' larvae
        (" ", r"\s+([?!,;:.%)\]}])", r"\1"),
        (" ", r"([(\[{$£€#])\s+", r"\1"),
        (" ", r"(?<=\d)([.:])\s+(?=\d)", r"\1"),  # 2. 3
        (",", r"(?<=\d),\s+(?=\d{3}\b)", ","),  # 10, 000, but not "in 1990, 12 people"
        (".", r"\b(\w)\.\s+(?=\w\.)", r"\1."),  # u. s.
        ("/", r"(?<=\w)\s*/\s*(?=\w)", "/"),
        ("&", r"\b(\w{1,2})\s*&\s*(\w)\b", r"\1&\2"),  # at & t
        ("+", r"(?<=\d)\s+\+", "+"),
        ("-", r"(?<=[\d%])\s*-\s*(?=\d)", "-"),
    )
)


def normalize_question(question: str) -> str:
    """Bring a question into the form that tokenized and typed ones share.

    Lower case without accents, with plain quotation marks, and without the blanks beside
    punctuation that a tokenizer leaves. So neither case nor blanks show where it comes from.

    >>> normalize_question("What 's  the U. S. share ( 2. 5 % ) of “ São Paulo ” ?")
    'what\\'s the u.s. share (2.5%) of "sao paulo"?'
    """
    text = " ".join(question.translate(_ASCII).lower().split())
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    for character, pattern, replacement in _REPAIRS:
        if character in text:
            text = pattern.sub(replacement, text)
    return text.strip()


def drop_question_mark(question: str) -> str:
    """Remove the marks at the end of a question."""
    return question.rstrip("?!. ") or question


def extract_keywords(question: str) -> str:
    """Return the words of a question that are no stop words.

    That is what people type into a search field. If all are stop words, the question comes back.

    >>> extract_keywords("When does the contract with Northwind end?")
    'contract Northwind end'
    """
    keywords = [word for word in _WORD.findall(question) if word.lower().partition("'")[0] not in STOP_WORDS]
    return " ".join(keywords) or question


def misspell(question: str, generator: Random) -> str:
    """Put one typing error into a long word: letters swapped, missing or doubled.

    >>> misspell("Who wrote Dracula?", Random(0)) != "Who wrote Dracula?"
    True
    """
    words = [match for match in _WORD.finditer(question) if len(match[0]) >= _MIN_MISSPELLED]
    if not words:
        return question
    word = generator.choice(words)
    position = word.start() + generator.randrange(1, len(word[0]) - 1)
    first, second = question[position], question[position + 1]
    change = generator.choice((second + first, first, first + first + second))
    return question[:position] + change + question[position + 2 :]
