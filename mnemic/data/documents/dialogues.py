"""Generate dialogues with speakers and dates, and questions about who said what and when."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from mnemic.data.documents import pools
from mnemic.data.documents.dialogue_wordings import SMALL_TALK, TOPICS
from mnemic.data.documents.pools import SplitSampler
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


def write_dialogue(sampler: SplitSampler, writer: DocumentWriter) -> list[GeneratedQuestion]:
    """Write a dialogue of one to three days, and ask about it."""
    speakers = sampler.sample(pools.FIRST_NAMES, 3 if sampler.flip(0.2) else 2)
    layout = sampler.generator.choice(LAYOUTS)
    tasks = sampler.generator.sample(
        [(speaker, topic) for speaker in speakers for topic in TOPICS], sampler.generator.randint(3, 6)
    )
    day, remarks = draw_day(sampler.generator), list[Remark]()
    num_sessions = min(sampler.generator.randint(1, MAX_SESSIONS), len(tasks))
    for session in range(num_sessions):
        minute = sampler.generator.randint(8 * 60, 20 * 60)
        if layout.header is not None:
            writer.add_line(layout.header(day, minute))
        session_tasks = tasks[session::num_sessions]
        talk = iter(sampler.sample(SMALL_TALK, 6))
        for speaker, topic in session_tasks:
            if sampler.flip(0.7):
                listener = sampler.generator.choice(speakers)
                minute += sampler.generator.randint(1, 4)
                writer.add_line(layout.prefix(listener, day, minute) + next(talk))
            minute += sampler.generator.randint(1, 4)
            remarks.append(write_remark(sampler, writer, layout.prefix(speaker, day, minute), (speaker, topic), day))
        day += timedelta(sampler.generator.randint(1, MAX_DAYS_BETWEEN))
    return ask_about_remarks(sampler, remarks, speakers)


def write_remark(
    sampler: SplitSampler, writer: DocumentWriter, prefix: str, task: tuple[str, str], day: date
) -> Remark:
    """Write the line in which a speaker tells something."""
    speaker, name = task
    topic = TOPICS[name]
    template = sampler.choose(topic.statements)
    items = sampler.sample(topic.values, sampler.generator.choice(LIST_SIZES) if topic.is_list else 1)
    when = (
        sampler.generator.choice((list_future_times if topic.is_future else list_past_times)(day))
        if topic.when
        else None
    )
    phrase = "" if when is None else when.phrase
    is_first = template.startswith("{when}")
    spans = writer.add_line(
        prefix.replace("{", "").replace("}", "") + template,
        value=items,
        when=phrase[:1].upper() + phrase[1:] if is_first else phrase,
    )
    return Remark(speaker, name, " ".join(items), spans["value"], when, spans.get("when", ()))


def ask_about_remarks(
    sampler: SplitSampler, remarks: Sequence[Remark], speakers: Sequence[str]
) -> list[GeneratedQuestion]:
    """Ask for each remark's value and time, and for what nobody said."""
    questions: list[GeneratedQuestion] = []
    for remark in remarks:
        topic = TOPICS[remark.topic]
        spans = remark.value_spans
        questions.append(ask_question(sampler.choose(topic.questions), spans, speaker=remark.speaker))
        if remark.when is not None:
            template = sampler.choose(topic.when)
            values = {"speaker": remark.speaker, "value": remark.value}
            questions.append(ask_question(template, remark.when_spans, remark.when.date, **values))
    return questions + ask_without_answer(sampler, remarks, speakers)


def ask_without_answer(
    sampler: SplitSampler, remarks: Sequence[Remark], speakers: Sequence[str]
) -> list[GeneratedQuestion]:
    """Ask about the wrong speaker, another value, or a topic that nobody mentioned."""
    questions: list[GeneratedQuestion] = []
    pairs = {(remark.speaker, remark.topic) for remark in remarks}
    for remark in remarks:
        topic = TOPICS[remark.topic]
        if listeners := [speaker for speaker in speakers if (speaker, remark.topic) not in pairs]:
            questions.append(ask_question(sampler.choose(topic.questions), speaker=sampler.generator.choice(listeners)))
        if topic.when:
            value = sampler.generator.choice(
                [v for v in pools.select_pool(topic.values, sampler.split) if v != remark.value]
            )
            questions.append(ask_question(sampler.choose(topic.when), speaker=remark.speaker, value=value))
    if missing := [topic for name, topic in TOPICS.items() if name not in {remark.topic for remark in remarks}]:
        topic = sampler.generator.choice(missing)
        questions.append(
            ask_question(sampler.choose(topic.questions), speaker=sampler.generator.choice(list(speakers)))
        )
    return sampler.generator.sample(questions, min(len(questions), max(len(remarks) // 2, 1)))


class Layout(NamedTuple):
    """How a dialogue shows days and speakers."""

    header: Callable[[date, int], str] | None  # of a day; None: every line has its day
    prefix: Callable[[str, date, int], str]  # of a line


def format_clock_24h(minute: int) -> str:
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
        lambda speaker, day, minute: f"[{format_clock_24h(minute)}] {speaker}: ",
    ),
    Layout(None, lambda speaker, day, minute: f"[{day.isoformat()} {format_clock_24h(minute)}] {speaker}: "),
    Layout(None, lambda speaker, day, minute: f"{name_day(day)}, {format_clock_24h(minute)} - {speaker}: "),
    Layout(None, lambda speaker, day, minute: f"{speaker} ({name_american_day(day)}): "),
)
