"""Measure how often a memory resolves relative times in conversations to the right date.

    python benchmarks/dialogue_dates.py [--pool dev|final] [--seed 0] [--count 200] [--together]

Each generated conversation has two speakers, three or four days, and four events that one of them
names with a relative time ("I sold my old car last Friday"), among small talk. It is written as
one of several chat programs, journals or mailboxes would, remembered as a file, and asked "When did
Anna sell the old car?". An answer is right if its date is exactly the period that is meant: the
day, week (Monday to Sunday), weekend, month or year. Every fifth conversation also names an event
with words that nobody can resolve ("a few years ago"), where any date is wrong; and each is asked
for one event that nobody spoke of.

By default each conversation is a memory of its own; with --together all are in one. The two pools
have no wording in common: times and rules were chosen with dev, final is for the last measurement.
"""

import argparse
import json
import tempfile
import time
from calendar import day_abbr, day_name, month_name
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import dialogue_pools

from mnemic import Answer, Memory

POOLS = {"dev": dialogue_pools.DEV, "final": dialogue_pools.FINAL}
MONTH_FIRST = ("discord", "brackets-us")  # forms whose dates say the month first
DAY_FIRST = ("whatsapp",)

GOOD = ("right", "vague, not resolved", "never said, not resolved")


class Message(NamedTuple):
    """What somebody said, and when."""

    at: datetime
    speaker: str
    text: str


class Question(NamedTuple):
    """A question, the words of the time, and its period in ISO 8601; empty: nobody knows it."""

    text: str
    words: str
    iso: str


class Conversation(NamedTuple):
    """A transcript with questions."""

    name: str
    text: str
    questions: list[Question]


def compute_iso(words: str, kind: str, number: int, message_day: date) -> str:
    """Compute the period of a time by counting on a calendar; the wording has no part in it."""
    if kind == "day":
        return (message_day + timedelta(number)).isoformat()
    if kind in ("week", "weekend"):
        monday = message_day - timedelta(message_day.weekday()) + timedelta(7 * number)
        first = monday + timedelta(5 if kind == "weekend" else 0)
        return f"{first}/{monday + timedelta(6)}"
    if kind == "weekday":
        weekday = next(index for index, name in enumerate(day_name) if name in words)
        day = message_day + timedelta(number)
        while day.weekday() != weekday:
            day += timedelta(number)
        return day.isoformat()
    if kind == "year":
        return str(message_day.year + number)
    year, month = message_day.year, message_day.month
    while True:  # count months, one by one
        month += 1 if number > 0 else -1
        year, month = year + (month > 12) - (month < 1), (month - 1) % 12 + 1
        number -= 0 if kind == "named" else 1 if number > 0 else -1
        if month_name[month] in words if kind == "named" else number == 0:
            return f"{year}-{month:02}"


def generate_conversations(pool: dialogue_pools.Pool, seed: int, count: int) -> Iterator[Conversation]:
    """Generate conversations; in all of them, a speaker does a thing once."""
    generator = Random(seed)
    pairs = [(name, event) for name in pool.names for event in pool.events]
    for number in range(count):
        if number % (len(pairs) // 8) == 0:
            unused = {name: generator.sample(pool.events, len(pool.events)) for name in pool.names}
        form = pool.forms[number % len(pool.forms)]
        speakers = sorted(generator.sample(pool.names, 2), key=lambda name: -len(unused[name]))
        days = choose_days(generator, form)
        messages = [
            Message(day + timedelta(minutes=generator.randrange(600)), generator.choice(speakers), text)
            for day in days
            for text in generator.sample(pool.fillers, generator.randrange(4, 8))
        ]
        questions = []
        num_vague = number % 5 == 0
        for index in range(4 + num_vague):
            day = generator.choice(days) + timedelta(minutes=generator.randrange(600))
            name = speakers[0] if form == "journal" else speakers[index % 2]
            event = unused[name].pop() if unused[name] else generator.choice(pool.events)
            message, question = tell_event(generator, pool, name, event, day, is_vague=index == 4)
            messages.append(message)
            questions.append(question)
        if unused[speakers[-1]]:
            asked = unused[speakers[-1]][0][0]
            questions.append(Question(f"When did {speakers[-1]} {asked}?", "", ""))
        yield Conversation(f"{form}-{number}", FORMS[form](sorted(messages), speakers), questions)


def choose_days(generator: Random, form: str) -> list[datetime]:
    """Choose the days of a conversation; one of them shows whether days or months come first."""
    while True:
        first = datetime(generator.randrange(2018, 2025), generator.randrange(1, 13), generator.randrange(1, 28), 9)
        days = [first + timedelta(days=generator.randrange(0, 60)) for _ in range(generator.choice((3, 4)))]
        if form not in MONTH_FIRST + DAY_FIRST or any(day.day > 12 for day in days):
            return sorted(days)


def tell_event(
    generator: Random,
    pool: dialogue_pools.Pool,
    name: str,
    event: tuple[str, str, str],
    day: datetime,
    *,
    is_vague: bool,
) -> tuple[Message, Question]:
    """Put an event into a message, and ask for its time."""
    asked, past, future = event
    is_past = is_vague or generator.random() < 0.7
    words, kind, number = generator.choice(pool.past if is_past else pool.future)
    while kind == "weekend" and day.weekday() > 4:  # on a Sunday, speakers differ in what the last weekend is
        words, kind, number = generator.choice(pool.past if is_past else pool.future)
    words = generator.choice(pool.vague) if is_vague else words
    frame = generator.choice(pool.past_frames if is_past else pool.future_frames)
    text = frame.format(event=past if is_past else future, time=words)
    ask = generator.choice(("When {verb} {name} {asked}?",) * 4 + ("On what date {verb} {name} {asked}?",))
    question = ask.format(verb="did" if is_past else "will", name=name, asked=asked)
    iso = "" if is_vague else compute_iso(words, kind, number, day.date())
    return Message(day, name, text[0].upper() + text[1:]), Question(question, words, iso)


def write_lines(head: str) -> Any:
    """Return a form with a line per message, whose head is a format of date and speaker."""
    return lambda messages, speakers: "\n".join(f"{format_head(head, message)}{message.text}" for message in messages)


def write_days(head: str, line: str) -> Any:
    """Return a form with a head per day and a line per message."""

    def write(messages: list[Message], speakers: list[str]) -> str:
        lines: list[str] = []
        day = None
        for message in messages:
            if message.at.date() != day:
                day = message.at.date()
                lines.append(f"\n{format_head(head, message)}\n")
            lines.append(f"{format_head(line, message)}{message.text}")
        return "\n".join(lines) + "\n"

    return write


def format_head(head: str, message: Message) -> str:
    """Format the date, time and speaker of a message."""
    at = message.at
    ending = "th" if 10 < at.day < 20 else {1: "st", 2: "nd", 3: "rd"}.get(at.day % 10, "th")
    return head.format(
        at=at, d=at.day, m=at.month, y=at.year, ending=ending, who=message.speaker,
        clock=f"{(at.hour + 11) % 12 + 1}:{at:%M}",
        half=f"{at:%p}", month=month_name[at.month], weekday=day_name[at.weekday()], short=day_abbr[at.weekday()],
    )  # fmt: skip


def write_journal(messages: list[Message], speakers: list[str]) -> str:
    """Write a journal: all messages of the first speaker, and the small talk, as prose."""
    head = write_days("{weekday} {d} {month} {y}\n", "")
    return f"Diary of {speakers[0]}\n{head(messages, speakers)}"


def write_mails(messages: list[Message], speakers: list[str]) -> str:
    """Write a mailbox: a mail per day and speaker."""
    mails: dict[tuple[date, str], list[Message]] = {}
    for message in messages:
        mails.setdefault((message.at.date(), message.speaker), []).append(message)
    texts = []
    for (_, name), group in mails.items():
        reader = next(speaker for speaker in speakers if speaker != name)
        head = format_head(
            "From x@example.org\nFrom: {who} <x@example.org>\nDate: {short}, {d:02} {at:%b} {y} {at:%H:%M}:00 +0100",
            group[0],
        )
        body = " ".join(message.text for message in group)
        texts.append(
            f"{head}\nTo: {reader} <y@example.org>\nSubject: Hello\n\nHi {reader},\n\n{body}\n\nBest wishes\n{name}\n"
        )
    return "\n".join(texts)


FORMS = {
    "brackets": write_lines("[{d} {month} {y}, {at:%H:%M}] {who}: "),
    "whatsapp": write_lines("{d:02}/{m:02}/{y}, {at:%H:%M} - {who}: "),
    "iso": write_lines("{at:%Y-%m-%d %H:%M} <{who}> "),
    "session": write_days("Session ({d} {month} {y})\n", "{who}: "),
    "heading": write_days("## {y}-{m:02}-{d:02}\n", "- {who}: "),
    "discord": write_lines("\n{who} — {m:02}/{d:02}/{y} {clock} {half}\n"),
    "brackets-us": write_lines("[{m}/{d}/{at:%y}, {clock}:22 {half}] {who}: "),
    "signal": write_lines("\nFrom: {who}\nSent: {short}, {d:02} {at:%b} {y} {at:%H:%M}:12\n\n"),
    "date-line": write_days("DATE: {clock} {half} on {d} {month}, {y}\n", "{who}: "),
    "divider": write_days("----- {weekday}, {month} {d}{ending}, {y} -----", "{who}  {clock} {half}\n"),
    "journal": write_journal,
    "mail": write_mails,
}
SUFFIXES = {"heading": ".md", "mail": ".mbox"}


def judge_answer(answer: Answer, question: Question) -> str:
    """Say whether the date of an answer is right, or what went wrong."""
    iso = answer.date.iso if answer.date else ""
    if not question.iso:
        kind = "vague" if question.words else "never said"
        return f"{kind}, {'resolved' if iso else 'not resolved'}"
    if iso == question.iso:
        return "right"
    if not answer.has_answer:
        return "right but withheld" if question.words in [ranked.text for ranked in answer.ranked[:1]] else "no answer"
    if answer.date is None:
        return "a date of a message" if any(letter.isdigit() for letter in answer.text) else "no time"
    return "right words, wrong date" if answer.date.words in question.words else "another time"


def measure(conversations: list[Conversation], *, together: bool, is_verbose: bool) -> dict[str, Any]:
    """Remember conversations, ask their questions and count the outcomes."""
    outcomes, by_form = Counter[str](), Counter[tuple[str, bool]]()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for conversation in conversations:
            path = Path(folder, conversation.name).with_suffix(SUFFIXES.get(conversation.name.split("-")[0], ".txt"))
            path.write_text(conversation.text, encoding="utf-8")
        if together:
            Memory(Path(folder, "all.db")).remember(folder)
        for conversation in conversations:
            path = next(Path(folder).glob(f"{conversation.name}.*"))
            with Memory(Path(folder, "all.db" if together else f"{conversation.name}.db")) as memory:
                if not together:
                    memory.remember(path)
                for question in conversation.questions:
                    answer = memory.ask(question.text)
                    outcome = judge_answer(answer, question)
                    outcomes[outcome] += 1
                    by_form[conversation.name.rsplit("-", 1)[0], outcome in GOOD] += 1
                    if is_verbose and outcome not in GOOD:
                        date_text = f"{answer.date.words} = {answer.date.iso}" if answer.date else ""
                        best = [(ranked.text, round(ranked.score, 2)) for ranked in answer.ranked[:3]]
                        print(f"{outcome} | {conversation.name} | {question} | {date_text} | {best}", flush=True)
    num_clear = sum(number for outcome, number in outcomes.items() if "resolved" not in outcome)
    forms = sorted({form for form, _ in by_form})
    return {
        "right %": round(100 * outcomes["right"] / num_clear, 1),
        "questions": num_clear,
        "outcomes": dict(outcomes.most_common()),
        "by form": {
            form: round(100 * by_form[form, True] / (by_form[form, True] + by_form[form, False])) for form in forms
        },
        "seconds": round(time.perf_counter() - started),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pool", choices=list(POOLS), default="dev")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    conversations = list(generate_conversations(POOLS[args.pool], args.seed, args.count))
    result = measure(conversations, together=args.together, is_verbose=args.verbose)
    print(json.dumps({"pool": args.pool, "seed": args.seed, "together": args.together} | result))


if __name__ == "__main__":
    main()
