"""``mnemic read``: predict with a trained network and print one JSON line per text."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from mnemic.cli.options import DeviceOption, ModelOption, SeedOption, refuse_options, resolve_device
from mnemic.cli.render.console import print_warning
from mnemic.cli.render.progress import ProgressBars
from mnemic.cli.text.read import ReadRequest, read_files_into_state
from mnemic.cli.text_io import STDIN, STDIN_NAME, decode_utf8, read_text

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint

BATCH_SIZE = 256  # texts per update of the progress bar
TEXT_OPTIONS = (  # parameters of ``read`` that --state refuses
    "question", "whole_file", "jsonl", "embed", "overlap", "truncation", "beams", "num_words",
    "seed",
)  # fmt: skip


class TextInput(NamedTuple):
    """A text with its second text or question, and its file and line."""

    file: str
    line: int  # from 1; 0: the whole file
    texts: tuple[str, ...]


class InputFormat(NamedTuple):
    """The input of a network: a description, and alternative sets of field names."""

    description: str
    fields: tuple[tuple[str, ...], ...]


SINGLE_TEXT = InputFormat("reads one text at a time", (("text",), ("sentence",)))
INPUT_FORMATS = {
    "pairs": InputFormat("compares two texts", (("text_a", "text_b"), ("sentence1", "sentence2"))),
    "spans": InputFormat("answers questions about texts", (("question", "text"),)),
}


def read(
    context: typer.Context,
    model: ModelOption,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILES]",
            help="Files with one text per line, or .jsonl, .tsv or .csv; - or nothing: standard "
            "input. With --state: plain texts, each read as a whole.",
        ),
    ] = None,
    question: Annotated[str | None, typer.Option("--question", help="The question to ask about every text.")] = None,
    whole_file: Annotated[bool, typer.Option("--whole", help="Read each file as one text.")] = False,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Read JSON lines with text, text_a and text_b, or question and text.")
    ] = False,
    embed: Annotated[bool, typer.Option("--embed", help="Print the embedding of each text.")] = False,
    overlap: Annotated[
        int | None,
        typer.Option("--overlap", help="Overlap of the windows of a long text, in tokens.", show_default="as trained"),
    ] = None,
    truncation: Annotated[
        str | None,
        typer.Option(
            "--truncation",
            help="How to read a long text: windows, first (only its beginning) or error.",
            show_default="as trained",
        ),
    ] = None,
    beams: Annotated[int, typer.Option("--beams", min=1, help="Beam width; 1: greedy.")] = 1,
    num_words: Annotated[int, typer.Option("--words", min=0, help="Continue each text by this many words.")] = 0,
    state: Annotated[
        Path | None,
        typer.Option("--state", metavar="FILE", help="Read whole files into this memory file, or continue it."),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start the memory of --state again.")] = False,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
) -> None:
    """Predict classes, numbers, entities or answers for texts, as JSON lines.

    Every line reports how many tokens of the text were read; offsets count characters.

    A language model computes the perplexity of each text, or with --words continues it.

    Example: mnemic read --model runs/bert-classes reviews.txt

    From a pipe: echo "a lovely film" | mnemic read --model runs/bert-classes

    A text of any length into a memory: mnemic read --model runs/keeps --state notes.mem novel.txt
    """  # fmt: skip
    from mnemic.checkpoint.folder import load_checkpoint
    from mnemic.predict.long_text import require_memory_model

    if (files or []).count(STDIN) > 1:
        raise ValueError("standard input (-) can be read once: name it once, and files beside it")
    if state is not None:
        refuse_options(context, TEXT_OPTIONS, "--state reads whole plain texts, and prints what was read")
        read_files_into_state(ReadRequest(model, files or [STDIN], state, fresh, device))
        return
    refuse_options(context, ["fresh"], "--fresh starts a memory again, and without --state there is none")
    checkpoint = load_checkpoint(model)
    checkpoint.network.to(resolve_device(device))
    if not checkpoint.progress.done:
        print_warning("this network is not trained to the end")
    if reads_into_memory(checkpoint):
        require_memory_model(checkpoint)  # raises if it cannot be asked
        raise ValueError("this network reads into a memory: give --state FILE, then ask it")
    respond = checkpoint.recipe["model"]["respond"]["kind"]
    if respond == "masked" and not embed:
        raise ValueError("this network is only pre-trained and has no answers yet: give --embed")
    if embed or respond not in ("next-token", "seq2seq"):
        refuse_options(context, ("num_words", "beams", "seed"), "this network does not continue texts")
    inputs = [
        text_input
        for name in files or [STDIN]
        for text_input in read_inputs(
            name, input_format_of(checkpoint, embed), question, whole_file=whole_file, jsonl=jsonl
        )
    ]
    read_kwargs = {"overlap": overlap, "truncation": truncation}
    generate_kwargs = {"beams": beams, "num_words": num_words, "seed": seed}
    with ProgressBars("texts") as bars:
        for start in range(0, len(inputs), BATCH_SIZE):
            batch = inputs[start : start + BATCH_SIZE]
            for text_input, prediction in zip(
                batch, predict_texts(checkpoint, batch, embed, read_kwargs, generate_kwargs)
            ):
                location = {"file": text_input.file} | ({"line": text_input.line} if text_input.line else {})
                print(json.dumps(location | prediction, ensure_ascii=False), flush=True)
            bars.show("reading", min(start + BATCH_SIZE, len(inputs)), len(inputs))


def reads_into_memory(checkpoint: "Checkpoint") -> bool:
    """Check whether a network reads texts into a memory that is asked later."""
    from mnemic.respond import FROM_MEMORY

    return checkpoint.recipe["model"]["respond"]["kind"] in FROM_MEMORY


def input_format_of(checkpoint: "Checkpoint", embed: bool) -> InputFormat:
    """Look up the input format of a network; embeddings take single texts."""
    from mnemic.data import RESPONSE_OF

    kind = checkpoint.recipe["data"].get("kind", "")
    return (
        SINGLE_TEXT if embed else INPUT_FORMATS.get(kind) or INPUT_FORMATS.get(RESPONSE_OF.get(kind, ""), SINGLE_TEXT)
    )


def read_inputs(
    name: str, input_format: InputFormat, question: str | None, *, whole_file: bool, jsonl: bool
) -> Iterator[TextInput]:
    """Read the texts of a file or of standard input, in the network's format."""
    if question is not None and "question" not in input_format.fields[0]:
        raise ValueError(f"this network {input_format.description}: leave --question out")
    rows = read_table_rows(name, jsonl)
    if rows is not None and not whole_file:
        for number, row in rows:
            location = f"{name}, line {number}"
            if question is not None and "question" in row:
                raise ValueError(f"{location} has a question of its own: leave --question out")
            question_field = {} if question is None else {"question": question}
            yield TextInput(name, number, select_texts(row | question_field, input_format, location))
        return
    question_texts = () if question is None else (question,)
    if len(question_texts) + 1 < len(input_format.fields[0]):
        request = "give --question TEXT, or" if "question" in input_format.fields[0] else "give"
        names = " and ".join(input_format.fields[0])
        raise ValueError(f"this network {input_format.description}: {request} JSON lines with {names}")
    if whole_file:
        yield TextInput(name, 0, (*question_texts, read_whole_file(name)))
        return
    for number, line in read_lines(name):
        if line.strip():
            yield TextInput(name, number, (*question_texts, line))


def read_whole_file(name: str) -> str:
    """Read a file as one text, decompressed if needed, so that offsets stay valid."""
    from mnemic.data.text_tasks.files import OPENERS, read_bytes

    is_compressed = name != STDIN and Path(name).suffix in OPENERS
    return decode_utf8(read_bytes(Path(name)), name) if is_compressed else read_text(name)


def read_lines(name: str) -> Iterator[tuple[int, str]]:
    """Read the numbered lines of a file or of standard input."""
    from mnemic.data.text_tasks import files

    return files.decode_lines(sys.stdin.buffer, STDIN_NAME) if name == STDIN else files.read_lines(Path(name))


def read_table_rows(name: str, jsonl: bool) -> Iterator[tuple[int, dict[str, Any]]] | None:
    """Read the rows of a JSON lines, TSV or CSV file; None for plain text."""
    from mnemic.data.text_tasks.labelled import parse_json_lines, read_rows

    path = Path(name)
    if jsonl or (".jsonl" in path.suffixes and name != STDIN):
        return parse_json_lines(read_lines(name), name)
    return read_rows(path, {}) if {".tsv", ".csv"} & {*path.suffixes} else None


def select_texts(row: dict[str, Any], input_format: InputFormat, location: str) -> tuple[str, ...]:
    """Select the fields of a row that the network reads."""
    from mnemic.data.text_tasks.examples import TextError

    for names in input_format.fields:
        if all(isinstance(row.get(name), str) for name in names):
            return tuple(row[name] for name in names)
    expected = ", or ".join(" and ".join(names) for names in input_format.fields)
    known = {name for names in input_format.fields for name in names}
    for name in known & row.keys():
        if not isinstance(row[name], str):
            raise TextError(f"{location}: {name} is a text, not {json.dumps(row[name])[:40]}")
    present = ", ".join(map(str, row)) or "nothing"
    raise TextError(f"{location}: this network {input_format.description}: expected {expected}; there is {present}")


def predict_texts(
    checkpoint: "Checkpoint",
    inputs: Sequence[TextInput],
    embed: bool,
    read_kwargs: dict[str, Any],
    generate_kwargs: dict[str, Any],
) -> list[dict[str, Any]]:
    """Predict a batch of texts; return JSON objects, with quotes beside offsets."""
    from mnemic.cli.networks.speech import generate_texts
    from mnemic.predict import text_tasks

    kind = checkpoint.recipe["model"]["respond"]["kind"]
    if kind in ("next-token", "seq2seq") and not embed:
        if any(value is not None for value in read_kwargs.values()):
            raise ValueError("this network reads each text whole: leave out --overlap, --truncation")
        return generate_texts(checkpoint, [text_input.texts[-1] for text_input in inputs], **generate_kwargs)
    if embed:
        embeddings = text_tasks.embed_texts(checkpoint, [text_input.texts[-1] for text_input in inputs], **read_kwargs)
        rows = zip(embeddings.vectors.tolist(), embeddings.seen, embeddings.total)
        return [{"vector": vector, "seen": seen, "total": total} for vector, seen, total in rows]
    if kind == "spans":
        questions = [(text_input.texts[0], text_input.texts[1]) for text_input in inputs]
        answers = text_tasks.answer_questions(checkpoint, questions, **read_kwargs)
        return [
            {"answer": answer.quote(text) if answer.has_answer else None} | result_to_dict(answer)
            for answer, (_, text) in zip(answers, questions)
        ]
    if kind == "tags":
        texts = [text_input.texts[-1] for text_input in inputs]
        return [
            result_to_dict(tagged_text)
            | {"entities": [{"text": entity.quote(text)} | result_to_dict(entity) for entity in tagged_text.entities]}
            for tagged_text, text in zip(text_tasks.tag_entities(checkpoint, texts, **read_kwargs), texts)
        ]
    pairs_or_texts: list[Any] = [
        text_input.texts if len(text_input.texts) > 1 else text_input.texts[0] for text_input in inputs
    ]
    if not checkpoint.labels:
        return [
            result_to_dict(number) for number in text_tasks.predict_numbers(checkpoint, pairs_or_texts, **read_kwargs)
        ]
    predictions = text_tasks.classify_texts(checkpoint, pairs_or_texts, **read_kwargs)
    return [result_to_dict(prediction) | {"ranked": dict(prediction.ranked)} for prediction in predictions]


def result_to_dict(result: Any) -> dict[str, Any]:
    """Convert a result to a JSON object, with its slots if it has any."""
    values = asdict(result)
    slots = values.pop("slots", ())
    slot_rows = [slot._asdict() | {"sources": [source._asdict() for source in slot.sources]} for slot in slots]
    return values | ({"slots": slot_rows} if slot_rows else {})
