"""``mnemic predict``: predict with a trained network and print one JSON line per text."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from mnemic.cli import options as opt
from mnemic.cli.networks.load import choose_task, load_network
from mnemic.cli.networks.predict_pictures import METHODS as PICTURE_METHODS
from mnemic.cli.networks.predict_pictures import predict_pictures
from mnemic.cli.render.console import print_json_line, print_warnings
from mnemic.cli.render.plot_story import check_plot_path
from mnemic.cli.render.progress import ProgressBars
from mnemic.cli.text_io import STDIN, STDIN_NAME, check_stdin, decode_utf8, read_text
from mnemic.recipe import join_words, kind_of

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint

BATCH_SIZE = 256  # texts per update of the progress bar


class TextInput(NamedTuple):
    """A text with its second text or question, and its file and line."""

    location: dict[str, Any]
    texts: tuple[str, ...]


WINDOW_METHODS = ("classify", "rate", "tag", "answer", "embed")
LANGUAGE_METHODS = ("complete", "perplexity")
TAKERS = {  # option → the methods that take it, and why the others do not
    "--overlap": (WINDOW_METHODS, "this network reads each text whole"),
    "--truncation": (WINDOW_METHODS, "this network reads each text whole"),
    "--beams": (("generate", "caption"), "this network samples its words, or writes none"),
    "--plot": (("caption",), "this network writes no captions"),
    "--words": (LANGUAGE_METHODS, "this network does not continue texts"),
    "--seed": (LANGUAGE_METHODS, "this network does not continue texts"),
}
FILES_HELP = "Files with one text per line, or .jsonl, .tsv or .csv; - or nothing: standard input."
JSONL_HELP = "Read JSON lines with text, text_a and text_b, or question and text."
OVERLAP_HELP = "Overlap of the windows of a long text, in tokens."
PLOT_HELP = "Plot where the network looked in the first picture: .png, .svg or .pdf."
TRUNCATION_HELP = "How to read a long text: windows, first (only its beginning) or error."


def predict(
    model: opt.Model,
    files: Annotated[list[str] | None, opt.Argument("FILES", FILES_HELP)] = None,
    question: Annotated[str | None, opt.Option("--question", "The question to ask about every text.")] = None,
    whole_file: Annotated[bool, opt.Option("--whole", "Read each file as one text.")] = False,
    jsonl: Annotated[bool, opt.Option("--jsonl", JSONL_HELP)] = False,
    task: opt.Task = None,
    embed: Annotated[bool, opt.Option("--embed", "Print the embedding of each text.")] = False,
    overlap: Annotated[int | None, opt.Option("--overlap", OVERLAP_HELP, "as trained")] = None,
    truncation: Annotated[str | None, opt.Option("--truncation", TRUNCATION_HELP, "as trained")] = None,
    beams: Annotated[int | None, opt.Option("--beams", "Beam width; 1: greedy.", "1", minimum=1)] = None,
    num_words: Annotated[int | None, opt.Option("--words", "Continue each text by this many words.", minimum=0)] = None,
    seed: Annotated[int | None, opt.Option("--seed", "Seed of the words of a continuation.", "0")] = None,
    device: opt.Device = "auto",
    plot: Annotated[Path | None, opt.Option("--plot FILE", PLOT_HELP)] = None,
) -> None:
    """Predict classes, numbers, entities or answers for texts, as JSON lines.

    Every line reports how many tokens of the text were read; offsets count characters.

    A language model computes the perplexity of each text, or with --words continues it. A network
    that learned several tasks does the one that --task names. A network that looks at pictures
    describes those of .npy files, detects their objects, or finds the words of their captions,
    which are in a .jsonl file beside them.

    Example: mnemic predict --model runs/bert-classes reviews.txt

    From a pipe: echo "a lovely film" | mnemic predict --model runs/bert-classes
    """
    from mnemic.data import DATASETS
    from mnemic.data.contract import DataSource

    check_plot_path(plot)
    names = check_stdin(files)
    checkpoint, notes = load_network(model, device)
    print_warnings(*notes)
    checkpoint = choose_task(checkpoint, task)
    method = choose_method(checkpoint, embed, num_words)
    options: dict[str, Any] = {"--plot": plot}
    options |= {
        "--overlap": overlap,
        "--truncation": truncation,
        "--beams": beams,
        "--words": num_words,
        "--seed": seed,
    }
    for name, value in options.items():
        methods, reason = TAKERS[name]
        if value is not None and method not in methods:
            raise ValueError(f"{reason}: leave out {name}")
    if method in PICTURE_METHODS:
        predict_pictures(checkpoint, method, names, beams or 1, plot)
        return
    kwargs = {"overlap": overlap, "truncation": truncation, "num_beams": beams, "max_words": num_words, "seed": seed}
    kwargs = {name: value for name, value in kwargs.items() if value is not None and method != "perplexity"}
    data_kind = DataSource if embed else kind_of(DATASETS, checkpoint.recipe["data"])  # embeddings are of single texts
    inputs = [text for name in names for text in read_inputs(name, data_kind, question, whole_file, jsonl)]
    with ProgressBars("texts") as bars:
        for start in range(0, len(inputs), BATCH_SIZE):
            batch = inputs[start : start + BATCH_SIZE]
            for text_input, row in zip(batch, predict_texts(checkpoint, method, batch, kwargs)):
                print_json_line(text_input.location | row)
            bars.show("reading", min(start + BATCH_SIZE, len(inputs)), len(inputs))


def choose_method(checkpoint: "Checkpoint", embed: bool, num_words: int | None) -> str:
    """Choose the method that predicts from texts; raise if there is none."""
    from mnemic.data import DATASETS
    from mnemic.predict.long_text import require_memory_model
    from mnemic.predict.methods import MethodError, describe_missing, methods_of
    from mnemic.predict.tasks import list_tasks

    methods = methods_of(checkpoint)
    if "select_task" in methods and not embed:
        raise ValueError(
            f"this network learned several tasks: give --task NAME, of {join_words(list_tasks(checkpoint))}"
        )
    if "remember" in methods:
        require_memory_model(checkpoint)  # raises if it cannot be asked
        raise ValueError("this network reads into a memory that is asked: mnemic text read MEMORY FILE --model DIR")
    if kind_of(DATASETS, checkpoint.recipe["data"]).layout == "pictures" and methods[0] not in PICTURE_METHODS:
        raise ValueError("this network classifies the pictures of its data alone: mnemic evaluate measures it")
    if methods == ("embed",) and not embed:
        raise ValueError("this network is only pre-trained and has no answers yet: give --embed")
    if methods == ("ask_story",):
        raise MethodError(describe_missing("predict", methods))
    if embed:
        return "embed"
    return methods[0] if "perplexity" not in methods else "complete" if num_words else "perplexity"


def read_inputs(name: str, data_kind: Any, question: str | None, whole_file: bool, jsonl: bool) -> Iterator[TextInput]:
    """Read the texts of a file or of standard input, in the network's format."""
    if question is not None and "question" not in data_kind.input_fields[0]:
        raise ValueError(f"this network {data_kind.input_description}: leave --question out")
    rows = read_table_rows(name, jsonl)
    if rows is not None and not whole_file:
        for number, row in rows:
            location = f"{name}, line {number}"
            if question is not None and "question" in row:
                raise ValueError(f"{location} has a question of its own: leave --question out")
            question_field = {} if question is None else {"question": question}
            texts = select_texts(row | question_field, data_kind, location)
            yield TextInput({"file": name, "line": number}, texts)
        return
    question_texts = () if question is None else (question,)
    if len(question_texts) + 1 < len(data_kind.input_fields[0]):
        request = "give --question TEXT, or" if "question" in data_kind.input_fields[0] else "give"
        names = " and ".join(data_kind.input_fields[0])
        raise ValueError(f"this network {data_kind.input_description}: {request} JSON lines with {names}")
    if whole_file:
        yield TextInput({"file": name}, (*question_texts, read_whole_file(name)))
        return
    for number, line in read_lines(name):
        if line.strip():
            yield TextInput({"file": name, "line": number}, (*question_texts, line))


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
    from mnemic.data.text_tasks.tables import parse_json_lines, read_rows

    path = Path(name)
    if jsonl or (".jsonl" in path.suffixes and name != STDIN):
        return parse_json_lines(read_lines(name), name)
    return read_rows(path, {}) if {".tsv", ".csv"} & {*path.suffixes} else None


def select_texts(row: dict[str, Any], data_kind: Any, location: str) -> tuple[str, ...]:
    """Select the fields of a row that the network reads."""
    from mnemic.data.text_tasks.examples import TextError

    for names in data_kind.input_fields:
        if all(isinstance(row.get(name), str) for name in names):
            return tuple(row[name] for name in names)
    expected = ", or ".join(" and ".join(names) for names in data_kind.input_fields)
    for name in {name for names in data_kind.input_fields for name in names} & row.keys():
        if not isinstance(row[name], str):
            raise TextError(f"{location}: {name} is a text, not {json.dumps(row[name])[:40]}")
    present = ", ".join(map(str, row)) or "nothing"
    raise TextError(f"{location}: this network {data_kind.input_description}: expected {expected}; there is {present}")


def predict_texts(
    checkpoint: "Checkpoint", method: str, inputs: Sequence[TextInput], kwargs: dict[str, Any]
) -> list[dict[str, Any]]:
    """Predict a batch of texts; return JSON objects, with quotes beside offsets."""
    from mnemic.predict.model import Model

    model: Any = Model(checkpoint)
    texts = [text_input.texts[-1] for text_input in inputs]
    if method == "embed":
        embeddings = model.embed(texts, **kwargs)
        numbers = zip(embeddings.vectors.tolist(), embeddings.seen, embeddings.total)
        return [{"vector": vector, "seen": seen, "total": total} for vector, seen, total in numbers]
    if method == "answer":
        answers = model.answer([text_input.texts[0] for text_input in inputs], texts, **kwargs)
        quotes = [answer.quote(text) if answer.has_answer else None for answer, text in zip(answers, texts)]
        return [{"answer": quote} | result_to_dict(answer) for quote, answer in zip(quotes, answers)]
    results = getattr(model, method)([pair if len(pair) > 1 else pair[0] for _, pair in inputs], **kwargs)
    rows = [result_to_dict(result) for result in results]
    for row, result, text in zip(rows, results, texts):
        if method == "classify":
            row["ranked"] = dict(result.ranked)
        elif method == "tag":
            row["entities"] = [{"text": entity.quote(text)} | result_to_dict(entity) for entity in result.entities]
        elif method == "complete":
            del row["ranked"]
    return rows


def result_to_dict(result: Any) -> dict[str, Any]:
    """Convert a result to a JSON object, with its slots if it has any."""
    values = asdict(result)
    slots = values.pop("slots", ())
    slot_rows = [slot._asdict() | {"sources": [source._asdict() for source in slot.sources]} for slot in slots]
    return values | ({"slots": slot_rows} if slot_rows else {})
