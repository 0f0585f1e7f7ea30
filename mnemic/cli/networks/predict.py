"""``mnemic predict``: predict with a trained network and print one JSON line per text."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from mnemic.cli.declare import Argument, Option
from mnemic.cli.networks.load import load_network
from mnemic.cli.options import DeviceOption, JsonOption, ModelOption, refuse_options
from mnemic.cli.render.console import print_json_line, print_warnings
from mnemic.cli.render.progress import ProgressBars
from mnemic.cli.text_io import STDIN, STDIN_NAME, decode_utf8, read_text

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint

BATCH_SIZE = 256  # texts per update of the progress bar


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
GENERATIVE_KINDS = ("next-token", "seq2seq")  # responses of networks that write texts
FILES_HELP = "Files with one text per line, or .jsonl, .tsv or .csv; - or nothing: standard input."
JSONL_HELP = "Read JSON lines with text, text_a and text_b, or question and text."
OVERLAP_HELP = "Overlap of the windows of a long text, in tokens."
TRUNCATION_HELP = "How to read a long text: windows, first (only its beginning) or error."


def predict(
    model: ModelOption,
    files: Annotated[list[str] | None, Argument("FILES", FILES_HELP)] = None,
    question: Annotated[str | None, Option("--question", "The question to ask about every text.")] = None,
    whole_file: Annotated[bool, Option("--whole", "Read each file as one text.")] = False,
    jsonl: Annotated[bool, Option("--jsonl", JSONL_HELP)] = False,
    embed: Annotated[bool, Option("--embed", "Print the embedding of each text.")] = False,
    overlap: Annotated[int | None, Option("--overlap", OVERLAP_HELP, "as trained")] = None,
    truncation: Annotated[str | None, Option("--truncation", TRUNCATION_HELP, "as trained")] = None,
    beams: Annotated[int | None, Option("--beams", "Beam width; 1: greedy.", "1", minimum=1)] = None,
    num_words: Annotated[int | None, Option("--words", "Continue each text by this many words.", minimum=0)] = None,
    seed: Annotated[int | None, Option("--seed", "Seed of the words of a continuation.", "0")] = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Predict classes, numbers, entities or answers for texts, as JSON lines.

    Every line reports how many tokens of the text were read; offsets count characters.

    A language model computes the perplexity of each text, or with --words continues it.

    Example: mnemic predict --model runs/bert-classes reviews.txt

    From a pipe: echo "a lovely film" | mnemic predict --model runs/bert-classes
    """
    if (files or []).count(STDIN) > 1:
        raise ValueError("standard input (-) can be read once: name it once, and files beside it")
    checkpoint, notes = load_network(model, device)
    print_warnings(notes)
    check_network(checkpoint, embed)
    window_options = {"--overlap": overlap, "--truncation": truncation}
    if checkpoint.recipe["model"]["respond"]["kind"] in GENERATIVE_KINDS and not embed:
        refuse_options(window_options, "this network reads each text whole")
    else:
        generation_options = {"--words": num_words, "--beams": beams, "--seed": seed}
        refuse_options(generation_options, "this network does not continue texts")
    input_format = input_format_of(checkpoint, embed)
    inputs = [
        text_input
        for name in files or [STDIN]
        for text_input in read_inputs(name, input_format, question, whole_file=whole_file, jsonl=jsonl)
    ]
    read_kwargs = {"overlap": overlap, "truncation": truncation}
    generate_kwargs = {"beams": beams or 1, "num_words": num_words or 0, "seed": seed or 0}
    with ProgressBars("texts") as bars:
        for start in range(0, len(inputs), BATCH_SIZE):
            batch = inputs[start : start + BATCH_SIZE]
            rows = predict_texts(checkpoint, batch, embed, read_kwargs, generate_kwargs)
            for text_input, row in zip(batch, rows):
                location = {"file": text_input.file} | ({"line": text_input.line} if text_input.line else {})
                print_json_line(location | row)
            bars.show("reading", min(start + BATCH_SIZE, len(inputs)), len(inputs))


def check_network(checkpoint: "Checkpoint", embed: bool) -> None:
    """Raise if a network has no predictions for single texts."""
    from mnemic.predict.long_text import require_memory_model
    from mnemic.respond import FROM_MEMORY

    respond = checkpoint.recipe["model"]["respond"]["kind"]
    if respond in FROM_MEMORY:
        require_memory_model(checkpoint)  # raises if it cannot be asked
        raise ValueError("this network reads into a memory that is asked: mnemic text read MEMORY FILE --model DIR")
    if respond == "masked" and not embed:
        raise ValueError("this network is only pre-trained and has no answers yet: give --embed")


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
    from mnemic.predict import text_tasks

    kind = checkpoint.recipe["model"]["respond"]["kind"]
    if kind in GENERATIVE_KINDS and not embed:
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
    inputs_or_pairs: list[Any] = [
        text_input.texts if len(text_input.texts) > 1 else text_input.texts[0] for text_input in inputs
    ]
    if not checkpoint.labels:
        return [*map(result_to_dict, text_tasks.predict_numbers(checkpoint, inputs_or_pairs, **read_kwargs))]
    predictions = text_tasks.classify_texts(checkpoint, inputs_or_pairs, **read_kwargs)
    return [result_to_dict(prediction) | {"ranked": dict(prediction.ranked)} for prediction in predictions]


def generate_texts(
    checkpoint: "Checkpoint", texts: Sequence[str], *, beams: int, num_words: int, seed: int
) -> list[dict[str, Any]]:
    """Generate an answer or a continuation, or compute the perplexity, of each text."""
    from mnemic.predict.generate import continue_texts, generate_answers, measure_perplexity

    if checkpoint.recipe["model"]["respond"]["kind"] == "seq2seq":
        if num_words:
            raise ValueError("this network answers texts; --words is for language models")
        return [asdict(result) for result in generate_answers(checkpoint, texts, num_beams=beams)]
    if beams > 1:
        raise ValueError("a language model samples its words; --beams is for networks that answer")
    if num_words:
        continuations = continue_texts(checkpoint, texts, max_words=num_words, seed=seed)
        return [{k: v for k, v in asdict(result).items() if k != "ranked"} for result in continuations]
    return [asdict(result) for result in measure_perplexity(checkpoint, texts)]


def result_to_dict(result: Any) -> dict[str, Any]:
    """Convert a result to a JSON object, with its slots if it has any."""
    values = asdict(result)
    slots = values.pop("slots", ())
    slot_rows = [slot._asdict() | {"sources": [source._asdict() for source in slot.sources]} for slot in slots]
    return values | ({"slots": slot_rows} if slot_rows else {})
