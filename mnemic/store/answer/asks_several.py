"""Recognize questions that ask for several things: "Which three cities …", "List …"."""

import re

NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBER = rf"(?:{'|'.join(NUMBERS)}|[2-9]|1[0-2])"
# Nouns that end with s and name a single thing, and verbs and other words that do so.
_SINGULAR = frozenset(
    """is was has does as this his its news series species class business address process basis analysis
    status bus gas lens physics mathematics politics economics always perhaps thus us yes plus press
    loss boss cross grass glass dress chess stress success access progress across unless towards
    whereas sometimes less cause""".split()  # noqa: SIM905
)
_IRREGULAR = frozenset(
    "people children men women mice feet teeth geese sheep fish criteria phenomena data media".split()  # noqa: SIM905
)
_LIST = re.compile(r"(?i)\A\W*(?:please )?(?:list|name|enumerate|give(?: me)?|tell me|mention) (?P<rest>.+)")
_WHICH = re.compile(r"(?i)\b(?:which|what) (?P<rest>[^?.!]+)")
_BE = re.compile(
    rf"(?i)\b(?:who|what|which) (?:are|were) (?:(?:the|all|its|their|some|{_NUMBER})\b)+ ?(?P<rest>[^?.!]*)"
)
_OF = re.compile(rf"(?i)\bwhich (?:{_NUMBER}|of (?:the|these|those)\b.* (?:are|were|have|do)\b)")
_COUNT = re.compile(rf"(?i)\b(?P<count>{_NUMBER})\b")
_WORD = re.compile(r"[\w'’-]+")
_VERBS = frozenset(  # after them no plural is the noun that is asked for
    """is was do did does are were can will would should has have had goes makes takes gives comes lives
    plays contains means gets says wants works
    leads runs owns belongs uses sells begins starts ends shows holds stands needs keeps""".split()  # noqa: SIM905
)
_DETERMINERS = frozenset(("the", "a", "an", "both", "his", "her", "its", "their", "this", "these"))
MAX_NOUN_WORDS = 4  # from the question word to the end of its noun
_CHINESE = re.compile("哪些|有谁|列出|分别")


def asks_several(question: str) -> bool:
    """Check whether a question asks for several things.

    >>> asks_several("Which three cities did she see?"), asks_several("Which city did she see?")
    (True, False)
    >>> asks_several("Who are the members of the board?"), asks_several("Who is the chair?")
    (True, False)
    """
    if _OF.search(question) or _CHINESE.search(question):
        return True
    if (match := _BE.search(question)) and (not match["rest"] or has_plural(match["rest"], len(match["rest"]))):
        return True
    matches = (_LIST.search(question), _WHICH.search(question))
    return any(match is not None and has_plural(match["rest"], MAX_NOUN_WORDS) for match in matches)


def has_plural(text: str, limit: int) -> bool:
    """Check whether a plural noun is among the first words."""
    words = [word.lower() for word in _WORD.findall(text)]
    for word, after in list(zip(words, [*words[1:], ""]))[:limit]:
        if word in _VERBS | _SINGULAR or word.endswith(("'s", "’s")):
            return False
        if is_plural(word):
            return after not in _DETERMINERS  # "which bus stops the", "which square stops both"
    return False


def is_plural(word: str) -> bool:
    """Check whether a word looks like a plural noun."""
    return word in _IRREGULAR or (
        len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is", "ics")) and word not in _SINGULAR
    )


def count_asked(question: str) -> int | None:
    """Return how many things a question asks for, if it says so."""
    match = _COUNT.search(question)
    if match is None:
        return None
    return int(match["count"]) if match["count"].isdigit() else NUMBERS.index(match["count"].lower()) + 2
