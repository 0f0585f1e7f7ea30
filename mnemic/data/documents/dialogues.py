"""Generate dialogues with speakers and dates, and questions about who said what and when."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from mnemic.data.documents import pools
from mnemic.data.documents.dialogue_wordings import SMALL_TALK, TOPICS
from mnemic.data.documents.pools import Draw
from mnemic.data.documents.times import (
    DAY_FORMATS,
    WEEKDAYS,
    SpokenTime,
    draw_day,
    list_future_times,
    list_past_times,
    name_american_day,
    name_day,
)
from mnemic.data.documents.writer import DocumentWriter, GeneratedQuestion, Spans, ask_question

MAX_SESSIONS, MAX_DAYS_BETWEEN = 3, 60
LIST_SIZES = (2, 2, 3, 3, 4, 5)


class Remark(NamedTuple):
    """What a speaker told about a topic, and where it stands."""

    speaker: str
    topic: str
    value: str
    value_spans: Spans
    when: SpokenTime | None
    when_spans: Spans


def write_dialogue(draw: Draw, writer: DocumentWriter) -> list[GeneratedQuestion]:
    """Write a dialogue of one to three days, and ask about it."""
    speakers = draw.sample(pools.FIRST_NAMES, 3 if draw.flip(0.2) else 2)
    layout = draw.generator.choice(LAYOUTS)
    tasks = draw.generator.sample(
        [(speaker, topic) for speaker in speakers for topic in TOPICS], draw.generator.randint(3, 6)
    )
    day, remarks = draw_day(draw.generator), list[Remark]()
    num_sessions = min(draw.generator.randint(1, MAX_SESSIONS), len(tasks))
    for session in range(num_sessions):
        minute = draw.generator.randint(8 * 60, 20 * 60)
        if layout.header is not None:
            writer.add_line(layout.header(day, minute))
        session_tasks = tasks[session::num_sessions]
        talk = iter(draw.sample(SMALL_TALK, 6))
        for speaker, topic in session_tasks:
            if draw.flip(0.7):
                listener = draw.generator.choice(speakers)
                minute += draw.generator.randint(1, 4)
                writer.add_line(layout.prefix(listener, day, minute) + next(talk))
            minute += draw.generator.randint(1, 4)
            remarks.append(write_remark(draw, writer, layout.prefix(speaker, day, minute), (speaker, topic), day))
        day += timedelta(draw.generator.randint(1, MAX_DAYS_BETWEEN))
    return ask_about_remarks(draw, remarks, speakers)


def write_remark(draw: Draw, writer: DocumentWriter, prefix: str, task: tuple[str, str], day: date) -> Remark:
    """Write the line in which a speaker tells something."""
    speaker, name = task
    topic = TOPICS[name]
    template = draw.choose(topic.statements)
    items = draw.sample(topic.values, draw.generator.choice(LIST_SIZES) if topic.is_list else 1)
    when = (
        draw.generator.choice((list_future_times if topic.is_future else list_past_times)(day)) if topic.when else None
    )
    phrase = "" if when is None else when.phrase
    is_first = template.startswith("{when}")
    spans = writer.add_line(
        prefix.replace("{", "").replace("}", "") + template,
        value=items,
        when=phrase[:1].upper() + phrase[1:] if is_first else phrase,
    )
    return Remark(speaker, name, " ".join(items), spans["value"], when, spans.get("when", ()))


def ask_about_remarks(draw: Draw, remarks: Sequence[Remark], speakers: Sequence[str]) -> list[GeneratedQuestion]:
    """Ask for each remark's value and time, and for what nobody said."""
    questions: list[GeneratedQuestion] = []
    for remark in remarks:
        topic = TOPICS[remark.topic]
        spans = remark.value_spans
        questions.append(ask_question(draw.choose(topic.questions), spans, speaker=remark.speaker))
        if remark.when is not None:
            template = draw.choose(topic.when)
            values = {"speaker": remark.speaker, "value": remark.value}
            questions.append(ask_question(template, remark.when_spans, remark.when.date, **values))
    return questions + ask_without_answer(draw, remarks, speakers)


def ask_without_answer(draw: Draw, remarks: Sequence[Remark], speakers: Sequence[str]) -> list[GeneratedQuestion]:
    """Ask about the wrong speaker, another value, or a topic that nobody mentioned."""
    questions: list[GeneratedQuestion] = []
    pairs = {(remark.speaker, remark.topic) for remark in remarks}
    for remark in remarks:
        topic = TOPICS[remark.topic]
        if listeners := [speaker for speaker in speakers if (speaker, remark.topic) not in pairs]:
            questions.append(ask_question(draw.choose(topic.questions), speaker=draw.generator.choice(listeners)))
        if topic.when:
            value = draw.generator.choice([v for v in pools.select_pool(topic.values, draw.split) if v != remark.value])
            questions.append(ask_question(draw.choose(topic.when), speaker=remark.speaker, value=value))
    if missing := [topic for name, topic in TOPICS.items() if name not in {remark.topic for remark in remarks}]:
        topic = draw.generator.choice(missing)
        questions.append(ask_question(draw.choose(topic.questions), speaker=draw.generator.choice(list(speakers))))
    return draw.generator.sample(questions, min(len(questions), max(len(remarks) // 2, 1)))


class Layout(NamedTuple):
    """How a dialogue shows days and speakers."""

    header: Callable[[date, int], str] | None  # of a day; None: every line has its day
    prefix: Callable[[str, date, int], str]  # of a line


def clock(minute: int) -> str:
    """Write a time of day as 13:56."""
    return f"{minute // 60}:{minute % 60:02}"


def format_clock_12h(minute: int) -> str:
    """Write a time of day as 1:56 pm."""
    hour = minute // 60
    return f"{(hour - 1) % 12 + 1}:{minute % 60:02} {'pm' if hour > 11 else 'am'}"


def speaker_prefix(speaker: str, day: date, minute: int) -> str:
    """Put the speaker before a line."""
    return f"{speaker}: "


LAYOUTS = (
    Layout(lambda day, minute: f"{format_clock_12h(minute)} on {name_day(day)}", speaker_prefix),
    Layout(lambda day, minute: f"--- {name_american_day(day)} ---", speaker_prefix),
    Layout(lambda day, minute: f"Date: {DAY_FORMATS[minute % 3](day)}", speaker_prefix),
    Layout(
        lambda day, minute: f"{WEEKDAYS[day.weekday()]}, {name_day(day)}",
        lambda speaker, day, minute: f"[{clock(minute)}] {speaker}: ",
    ),
    Layout(None, lambda speaker, day, minute: f"[{day.isoformat()} {clock(minute)}] {speaker}: "),
    Layout(None, lambda speaker, day, minute: f"{name_day(day)}, {clock(minute)} - {speaker}: "),
    Layout(None, lambda speaker, day, minute: f"{speaker} ({name_american_day(day)}): "),
)
