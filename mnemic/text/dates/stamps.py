"""Find the dates that say when the text below them was written.

Such a *stamp* is the date of a message in a chat ("[8 May 2023, 10:15] Anna: …"), of a session
("DATE: 1:56 pm on 8 May, 2023"), of a mail, of a row ("ts: 2023-05-08"), or a heading of a journal.
A date in a sentence is none: "We met on 8 May 2023." The line around the date decides: without
weekday, time and punctuation nothing stands before a stamp, or a label, and the line ends, or what
somebody wrote begins.
"""

import re
from collections.abc import Iterable

from mnemic.text.dates.absolute import DateMention, find_dates
from mnemic.text.sentences import Span

MAX_LABEL_WORDS = 8  # before the date of a heading
_WEEKDAY = r"(?i:(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\b\.?)"
_TIME = (
    r"(?i:T?\d{1,2}[:.h]\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?[ap]\.?m\b\.?)?|\d{1,2}\s?[ap]\.?m\b\.?)"
    r"(?:\s?(?:Z|UTC|GMT|[A-Z]{3,4}T|[+-]\d\d:?\d\d)\b)?"
)
_FILLER = rf"(?:{_WEEKDAY}|{_TIME}|\b(?i:on|at|the|um|am|den|le)\b|[\s,;·•|(\[<@{{#*_=~>\"'–—-])"
# Lines may be made to be slow: nothing may follow a repetition that makes it try its parts anew.
_FILLERS = re.compile(rf"{_FILLER}+")  # what may stand between a label and its date
_AFTER = re.compile(rf"(?:\s*+(?:(?:,|\b(?i:at|um|-|–|—)\b)\s*+)?(?:{_TIME}|\(?{_WEEKDAY}\)?))*")
_HAS_TIME = re.compile(_TIME)
_KEY = re.compile(
    r"(?i)(?:\b|_)(?:dates?|sent|sent at|time|timestamp|ts|day|when|created(?:[ _]at)?|posted(?: on)?|written"
    r"|received|start|begin|datum|gesendet|日期|时间)\W{0,3}[:=：][ \t]*\Z"
)
_TITLE = re.compile(
    r"(?i)\b(?:session|conversation|chat|dialogue|talk|meeting|minutes|protocol|call|diary|journal|entry|log"
    r"|letter|notes?|week|day|episode|standup|report)\b[^.!?]*\Z"
)
_SPEAKER = re.compile(r"\W{0,3}[\w .'’@+-]{1,40}\W{0,3}:\s|\W{0,3}[<\[][^<>\[\]\n]{1,40}[>\]]")
_CLOSING = re.compile(r"\s*(?:[\])}>|:;–—]|-\s|\t)")
_WROTE = re.compile(r"(?i)\b(?:wrote|writes|said|schrieb|a écrit)\s*:\s*\Z")
_END = re.compile(r"[\s.,;:)\]}>*_=#~|-]*\Z")


def find_stamps(text: str, mentions: Iterable[DateMention] | None = None) -> list[DateMention]:
    """Find the dates of a text that date what follows them.

    >>> text = "[8 May 2023, 10:15] Anna: We met on 9 April 2023.\\n\\n## 12 May 2023\\n"
    >>> [text[stamp.start : stamp.end] for stamp in find_stamps(text)]
    ['8 May 2023', '12 May 2023']
    """
    mentions = find_dates(text) if mentions is None else mentions
    return [mention for mention in mentions if mention.day is not None and is_stamp(text, mention)]


def is_stamp(text: str, mention: DateMention) -> bool:
    """Check whether a date dates what follows it, by the line that it stands in."""
    start = text.rfind("\n", 0, mention.start) + 1
    end = text.find("\n", mention.end)
    before, after = text[start : mention.start], text[mention.end : len(text) if end < 0 else end]
    label = before[: find_filler(before)]
    if _KEY.search(label) or is_quotation_head(after):
        return True
    times = _AFTER.match(after)
    rest = after[times.end() :] if times else after
    has_time = bool(_HAS_TIME.search(before[len(label) :]) or _HAS_TIME.search(after[: len(after) - len(rest)]))
    if not re.search(r"\w", label):
        opens_text = bool(_CLOSING.match(rest) or _SPEAKER.match(rest))
        return bool(_END.fullmatch(rest)) or has_time or opens_text
    return follows_label(label, before[len(label) :], rest, has_time=has_time)


def find_filler(before: str) -> int:
    """Return where the weekday, time and punctuation at the end of a text begin."""
    fillers = [match.span() for match in _FILLERS.finditer(before)]
    return fillers[-1][0] if fillers and fillers[-1][1] == len(before) else len(before)


def follows_label(label: str, filler: str, rest: str, *, has_time: bool) -> bool:
    """Check whether a date behind words ends a heading or names a message."""
    if len(label.split()) > MAX_LABEL_WORDS or re.search(r"[.!?]\s", label):
        return False
    in_brackets = bool(re.search(r"[(\[<]", filler))
    if in_brackets and re.match(r"\s*[)\]>]\s*:", rest):
        return True  # Anna (8 May 2023): …
    is_set_off = in_brackets or has_time or bool(re.search(r"[,|:–—-]\s*\Z|[:–—-]\s", label[-2:] + filler))
    if not _END.fullmatch(rest) or rest.rstrip().endswith("."):
        return has_time and is_set_off and bool(re.match(r"\s*[)\]>]?\s*:\s", rest))
    return is_set_off or bool(_TITLE.search(label))


def find_head(text: str, stamp: DateMention) -> Span:
    """Find the head of a stamp: from its line's beginning to the time behind it."""
    times = _AFTER.match(text, stamp.end)
    return Span(text.rfind("\n", 0, stamp.start) + 1, times.end() if times else stamp.end)


def is_quotation_head(after: str) -> bool:
    """Check whether a line introduces what somebody wrote in a mail: "… Anna wrote:"."""
    return bool(_WROTE.search(after))
