"""Find the time of an event in conversations, not that of its message.

Of "[8 May 2023, 10:15] Anna: I moved yesterday" only "yesterday" says when she moved. A reader that
was not trained on conversations often points at the date of the message, or at the time of another
event near it. Here its spans move to the time in the sentence that has clearly more words of the
question, and lose confidence the fewer their sentence has. Other texts than conversations, journals
and mails stay as the reader has read them.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from mnemic.store.answer.confidence import SpanFeatures
from mnemic.store.answer.rank import SlotSpan, compute_name_overlap, compute_word_overlap
from mnemic.store.answer.surroundings import NO_SURROUNDINGS, SPEAKER, Surroundings
from mnemic.store.contract import MemorySlot
from mnemic.store.retrieve.query_words import extract_words
from mnemic.text.dates.absolute import find_dates
from mnemic.text.dates.english import PRESENT
from mnemic.text.dates.relative import TimeSpan, find_times, fits_tense, guess_tense
from mnemic.text.dates.stamps import find_head, find_stamps
from mnemic.text.sentences import Span

MIN_GAIN = 0.3  # of the question's words that another sentence must have more
MIN_SHARED = 2  # words that it has at all
PENALTY = 3.0  # log-odds that a span loses if its sentence has no word of the question, and another all
MIN_SPEAKER_LINES = 2  # "Anna: …", of a conversation whose passage has no date
BONUS = 3.0  # log-odds that a time gains if its sentence has all; a reader is unsure of the language of chats
TIME_WORDS = frozenset(("day", "date", "week", "weeke", "month", "year", "time", "days", "long", "ago"))
STEM_LENGTH = 5  # characters: adopt, adopted
_ASKS_TIME = re.compile(
    r"(?i)\A\W*(?:and |so |but |then )?when\b|\b(?:since|until|till|from|know|remember|me|by) when\b|\bwhen\W*\Z"
    r"|\bhow (?:long|recently|many \w+) ago\b"
    r"|\b(?:what|which)(?: \w+){0,2}? (?:days?|dates?|months?|years?|weeks?|weekends?|weekdays?|seasons?)\b"
    r"|\Awhat was the (?:day|date)\b|\A\w+(?: \w+)* date\W*\Z|什么时[候间]|何时|哪一?[天年月日]|几[月号]"
)


def asks_time(question: str) -> bool:
    """Check whether a question asks for a time.

    >>> asks_time("When did Anna move?"), asks_time("What did Anna say when she moved?")
    (True, False)
    """
    return bool(_ASKS_TIME.search(question))


_LINE = re.compile(r"[^\n]*\S[^\n]*")
_STOP = re.compile(r"[.!?;]+[\"'”’)]*(?=\s|\Z)|[。！？；]")
Candidates = list[tuple[SlotSpan, SpanFeatures]]


class Utterance(NamedTuple):
    """A sentence of a conversation, its times, and the question's words in it."""

    span: Span
    head: Span  # of its message: date and speaker; empty before the first
    times: tuple[TimeSpan, ...]
    num_shared: int  # words of the question
    overlap: float  # share of them


def focus_on_times(
    question: str,
    candidates: Candidates | None,
    read_above: Callable[[MemorySlot], Surroundings] = lambda slot: NO_SURROUNDINGS,
) -> Candidates | None:
    """Move spans of a time question to the times of events in conversations.

    ``read_above`` reads what names the speaker of a passage and stands above it.
    """
    if candidates is None or not asks_time(question):
        return candidates
    slots = {span.slot.id: span.slot for span, _ in candidates}
    above = {slot.id: read_above(slot) for slot in slots.values()}
    utterances = {slot.id: list_utterances(question, slot.passage.text, above[slot.id]) for slot in slots.values()}
    best = max((row.overlap for rows in utterances.values() for row in rows if row.times), default=0.0)
    focused = []
    for span, features in candidates:
        if rows := utterances[span.slot.id] if span.end > span.start else []:
            span, overlap, has_time = focus_on_time(span, rows)
            context = [f"{above[span.slot.id].text}\n{span.slot.passage.text}"]
            features = features._replace(
                word_overlap=max(features.word_overlap, *compute_word_overlap(question, context)),
                name_overlap=max(features.name_overlap, *compute_name_overlap(question, context)),
                answer_log_odds=features.answer_log_odds + BONUS * overlap**2 * has_time - PENALTY * (best - overlap),
            )
        focused.append((span, features))
    return focused


def focus_on_time(span: SlotSpan, utterances: Sequence[Utterance]) -> tuple[SlotSpan, float, bool]:
    """Return the time that a span means, its overlap, whether it is a time."""
    around = [row for row in utterances if row.span.start < span.end and span.start < row.span.end]
    below = [row for row in utterances if row.head.start < span.end and span.start < row.head.end]
    row = around[0] if around else max(below, key=lambda row: row.overlap, default=None)
    rows = [row for row in utterances if row.times and row.num_shared >= MIN_SHARED]
    best = max(rows, key=lambda row: row.overlap, default=None)
    if best and (row is None or best.overlap >= row.overlap + MIN_GAIN):
        row = best
    if row is None or not row.times:
        return span, row.overlap if row else 0.0, False
    inside = [time for time in row.times if time.start < span.end and span.start < time.end]
    time = (inside or row.times)[0]
    return span._replace(start=time.start, end=time.end), row.overlap, True


def list_utterances(question: str, text: str, above: Surroundings = NO_SURROUNDINGS) -> list[Utterance]:
    """List the sentences of a conversation, journal or mail; none of another text."""
    dates = find_dates(text)
    heads = [find_head(text, stamp) for stamp in find_stamps(text, dates)]
    num_speakers = sum(bool(SPEAKER.match(line.group())) for line in _LINE.finditer(text))
    if not heads and not above.is_dated and num_speakers < MIN_SPEAKER_LINES:
        return []
    above_stems = stem_words(above.text) if above.text.strip() else frozenset()
    question_stems = stem_words(question) - TIME_WORDS or stem_words(question)
    tense = None if PRESENT.search(question) else guess_tense(question)
    times = [time for time in find_times(text, dates) if fits_tense(time, tense)]
    utterances: list[Utterance] = []
    bounds = [Span(0, 0), *heads, Span(len(text), len(text))]
    for head, after in pairwise(bounds):
        for line in _LINE.finditer(text, head.end, max(after.start, head.end)):
            speaker = SPEAKER.match(line.group())
            named_stems = above_stems | stem_words(text[head.start : head.end] + (speaker.group() if speaker else ""))
            for span in split_utterances(text, Span(*line.span())):
                stems = question_stems & (named_stems | stem_words(text[span.start : span.end]))
                inside = tuple(time for time in times if span.start <= time.start < span.end)
                utterances.append(Utterance(span, head, inside, len(stems), len(stems) / max(len(question_stems), 1)))
    return utterances


def stem_words(text: str) -> frozenset[str]:
    """Return the beginnings of the words of a text."""
    return frozenset(word[:STEM_LENGTH] for word in extract_words(text))


def split_utterances(text: str, line: Span) -> list[Span]:
    """Split a line after stops; one too many does no harm here."""
    ends = [match.end() for match in _STOP.finditer(text, line.start, line.end)]
    spans = map(Span, [line.start, *ends], [*ends, line.end])
    return [span for span in spans if text[span.start : span.end].strip()]
