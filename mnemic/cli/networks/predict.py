"""``mnemic read``: what a trained network says of texts, a line of JSON a text."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from mnemic.cli.options import Device, Model, Seed, device_of, refuse
from mnemic.cli.render.console import warn
from mnemic.cli.render.progress import Bars
from mnemic.cli.text.read import Wish, read_into
from mnemic.cli.text_io import SPOKEN, TYPED, decoded, text_of

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint

AT_ONCE = 256  # texts between two moves of the bar
OF_TEXTS = (  # parameters of ``read`` that mean nothing to a memory
    "question", "whole", "jsonl", "embed", "overlap", "truncation", "beams", "words", "seed",
)  # fmt: skip


class Unit(NamedTuple):
    """A text to read, with its partner or question, and where it comes from."""

    file: str
    line: int  # from 1; 0: the whole file
    texts: tuple[str, ...]


class Wanted(NamedTuple):
    """What a network reads at once: its fields in JSON lines and tables, any of these sets."""

    said: str
    fields: tuple[tuple[str, ...], ...]


ONE = Wanted("reads one text at a time", (("text",), ("sentence",)))
WANTED = {
    "pairs": Wanted("compares two texts", (("text_a", "text_b"), ("sentence1", "sentence2"))),
    "spans": Wanted("answers questions about texts", (("question", "text"),)),
}


def read(
    context: typer.Context,
    model: Model,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILES]",
            help="Texts, one a line; .jsonl, .tsv or .csv files; - or nothing: standard input. "
            "With --state: plain texts, each read as a whole.",
        ),
    ] = None,
    question: Annotated[
        str | None, typer.Option("--question", help="What to ask of every text.")
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="A file is one text, not many.")] = False,
    jsonl: Annotated[
        bool,
        typer.Option(
            "--jsonl", help="JSON lines with text, text_a and text_b, or question and text."
        ),
    ] = False,
    embed: Annotated[bool, typer.Option("--embed", help="Print each text's vector.")] = False,
    overlap: Annotated[
        int | None,
        typer.Option(
            "--overlap", help="Tokens that windows of a long text share.", show_default="as trained"
        ),
    ] = None,
    truncation: Annotated[
        str | None,
        typer.Option(
            "--truncation",
            help="What to do with a long text: windows, first (only its beginning) or error.",
            show_default="as trained",
        ),
    ] = None,
    beams: Annotated[
        int, typer.Option("--beams", min=1, help="Answers that are thought of at once; 1: greedy.")
    ] = 1,
    words: Annotated[
        int, typer.Option("--words", min=0, help="Go on with each text for so many words.")
    ] = 0,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state", metavar="FILE", help="Read whole files into this memory, or go on with it."
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin the memory of --state anew.")
    ] = False,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """Read texts with a trained network: classes, numbers, entities or answers as JSON lines.

    Every line says how many tokens were seen of how many; offsets count characters of the text.

    A language model says how likely each text is (its perplexity), or with --words goes on with it.

    Example: mnemic read --model runs/bert-classes reviews.txt

    From a pipe: echo "a lovely film" | mnemic read --model runs/bert-classes

    A text of any length into a memory: mnemic read --model runs/keeps --state notes.mem novel.txt
    """  # fmt: skip
    from mnemic.checkpoint.folder import load
    from mnemic.predict.long_text import carrier_of
    from mnemic.predict.text_tasks import OTHERS

    if (files or []).count(TYPED) > 1:
        raise ValueError("standard input (-) can be read once: name it once, and files beside it")
    if state is not None:
        refuse(context, OF_TEXTS, "--state reads whole plain texts, and prints what was read")
        read_into(Wish(model, files or [TYPED], state, fresh, device))
        return
    refuse(context, ["fresh"], "--fresh begins a memory anew, and without --state there is none")
    checkpoint = load(model)
    checkpoint.network.to(device_of(device))
    if not checkpoint.progress.done:
        warn("this network is not trained to the end")
    if remembers(checkpoint):
        carrier_of(checkpoint)  # whose error says why it cannot be asked
        raise ValueError("this network reads into a memory: give --state FILE, then ask it")
    respond = checkpoint.recipe["model"]["respond"]["kind"]
    if respond == "masked" and not embed:
        raise ValueError("this network was pre-trained, and knows no answers yet: give --embed")
    if embed or respond not in OTHERS:
        refuse(context, ("words", "beams", "seed"), "this network does not go on with texts")
    units = [
        unit
        for name in files or [TYPED]
        for unit in units_of(name, wanted_of(checkpoint, embed), question, whole=whole, jsonl=jsonl)
    ]
    how = {"overlap": overlap, "truncation": truncation}
    speech = {"beams": beams, "words": words, "seed": seed}
    with Bars("texts") as bars:
        for start in range(0, len(units), AT_ONCE):
            part = units[start : start + AT_ONCE]
            for unit, said in zip(part, said_of(checkpoint, part, embed, how, speech)):
                place = {"file": unit.file} | ({"line": unit.line} if unit.line else {})
                print(json.dumps(place | said, ensure_ascii=False), flush=True)
            bars.show("reading", min(start + AT_ONCE, len(units)), len(units))


def remembers(checkpoint: "Checkpoint") -> bool:
    """Whether a network reads into a memory that is asked afterwards."""
    from mnemic.respond import FROM_MEMORY

    return checkpoint.recipe["model"]["respond"]["kind"] in FROM_MEMORY


def wanted_of(checkpoint: "Checkpoint", embed: bool) -> Wanted:
    """What this network reads; a vector is of one text."""
    from mnemic.data import RESPONSE_OF

    kind = checkpoint.recipe["data"].get("kind", "")
    return ONE if embed else WANTED.get(kind) or WANTED.get(RESPONSE_OF.get(kind, ""), ONE)


def units_of(
    name: str, wanted: Wanted, question: str | None, *, whole: bool, jsonl: bool
) -> Iterator[Unit]:
    """The texts of a file, or of standard input."""
    if question is not None and "question" not in wanted.fields[0]:
        raise ValueError(f"this network {wanted.said}: leave --question out")
    rows = rows_in(name, jsonl)
    if rows is not None and not whole:
        for number, row in rows:
            where = f"{name}, line {number}"
            if question is not None and "question" in row:
                raise ValueError(f"{where} has a question of its own: leave --question out")
            asked = {} if question is None else {"question": question}
            yield Unit(name, number, texts_of(row | asked, wanted, where))
        return
    given = () if question is None else (question,)
    if len(given) + 1 < len(wanted.fields[0]):
        ask = "give --question TEXT, or" if "question" in wanted.fields[0] else "give"
        names = " and ".join(wanted.fields[0])
        raise ValueError(f"this network {wanted.said}: {ask} JSON lines with {names}")
    if whole:
        yield Unit(name, 0, (*given, whole_of(name)))
        return
    for number, line in lines_of(name):
        if line.strip():
            yield Unit(name, number, (*given, line))


def whole_of(name: str) -> str:
    """A file as it is, unpacked, so that offsets count its characters."""
    from mnemic.data.text_tasks.files import OPENERS, content

    packed = name != TYPED and Path(name).suffix in OPENERS
    return decoded(content(Path(name)), name) if packed else text_of(name)


def lines_of(name: str) -> Iterator[tuple[int, str]]:
    """The numbered lines of a file, or of standard input."""
    from mnemic.data.text_tasks import files

    return files.decoded(sys.stdin.buffer, SPOKEN) if name == TYPED else files.lines(Path(name))


def rows_in(name: str, jsonl: bool) -> Iterator[tuple[int, dict[str, Any]]] | None:
    """The rows of JSON lines or a table with a header; None for a plain text."""
    from mnemic.data.text_tasks.labelled import json_objects, rows_of

    path = Path(name)
    if jsonl or (".jsonl" in path.suffixes and name != TYPED):
        return json_objects(lines_of(name), name)
    return rows_of(path, {}) if {".tsv", ".csv"} & {*path.suffixes} else None


def texts_of(row: dict[str, Any], wanted: Wanted, where: str) -> tuple[str, ...]:
    """The texts of a row that this network reads."""
    from mnemic.data.text_tasks.examples import TextError

    for names in wanted.fields:
        if all(isinstance(row.get(name), str) for name in names):
            return tuple(row[name] for name in names)
    expected = ", or ".join(" and ".join(names) for names in wanted.fields)
    known = {name for names in wanted.fields for name in names}
    for name in known & row.keys():
        if not isinstance(row[name], str):
            raise TextError(f"{where}: {name} is a text, not {json.dumps(row[name])[:40]}")
    have = ", ".join(map(str, row)) or "nothing"
    raise TextError(f"{where}: this network {wanted.said}: expected {expected}; there is {have}")


def said_of(
    checkpoint: "Checkpoint",
    units: Sequence[Unit],
    embed: bool,
    how: dict[str, Any],
    speech: dict[str, Any],
) -> list[dict[str, Any]]:
    """What the network says, as plain values; what is quoted stands beside its offsets."""
    from mnemic.cli.networks.speech import speech_of
    from mnemic.predict import text_tasks as reader

    kind = checkpoint.recipe["model"]["respond"]["kind"]
    if kind in reader.OTHERS and not embed:
        if any(value is not None for value in how.values()):
            raise ValueError(
                "this network reads each text whole: leave out --overlap, --truncation"
            )
        return speech_of(checkpoint, [unit.texts[-1] for unit in units], **speech)
    if embed:
        found = reader.embed(checkpoint, [unit.texts[-1] for unit in units], **how)
        counts = zip(found.vectors.tolist(), found.seen, found.total)
        return [{"vector": own, "seen": seen, "total": total} for own, seen, total in counts]
    if kind == "spans":
        asked = [(unit.texts[0], unit.texts[1]) for unit in units]
        answers = reader.answer_all(checkpoint, asked, **how)
        return [
            {"answer": own.quote(text) if own.found else None} | plain(own)
            for own, (_, text) in zip(answers, asked)
        ]
    if kind == "tags":
        texts = [unit.texts[-1] for unit in units]
        return [
            plain(own)
            | {"entities": [{"text": one.quote(text)} | plain(one) for one in own.entities]}
            for own, text in zip(reader.tag(checkpoint, texts, **how), texts)
        ]
    both: list[Any] = [unit.texts if len(unit.texts) > 1 else unit.texts[0] for unit in units]
    if not checkpoint.labels:
        return [plain(own) for own in reader.rate(checkpoint, both, **how)]
    said = reader.classify(checkpoint, both, **how)
    return [plain(own) | {"ranked": dict(own.ranked)} for own in said]


def plain(own: Any) -> dict[str, Any]:
    """A result as plain values; the slots that were read are told where there is a memory."""
    found = asdict(own)
    slots = found.pop("slots", ())
    told = [
        one._asdict() | {"sources": [source._asdict() for source in one.sources]} for one in slots
    ]
    return found | ({"slots": told} if told else {})
