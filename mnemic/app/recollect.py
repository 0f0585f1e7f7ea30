"""``mnemic read --state`` and ``mnemic ask --state``: a text of any length, read into a memory."""

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemic.app.lasting import short
from mnemic.app.plot import check
from mnemic.app.progress import Bars
from mnemic.app.quotes import Quotes
from mnemic.app.screen import out, print_json, visible, warn

if TYPE_CHECKING:
    from mnemic.learn.checkpoint import Checkpoint
    from mnemic.learn.results import Recollected
    from mnemic.learn.state import State

TYPED = "-"  # standard input


def carries(model: Path) -> bool:
    """Whether a checkpoint's network answers from a memory; False for one that cannot be read."""
    from mnemic.learn.checkpoint import RECIPE, locate, read_described
    from mnemic.learn.disk import CheckpointError

    try:
        recipe = read_described(locate(model) / RECIPE)["recipe"]
    except CheckpointError:  # whoever loads it says what is wrong
        return False
    return recipe["model"].get("respond", {}).get("kind") == "predictor"


def read_into(
    checkpoint: "Checkpoint", model: Path, files: list[str], path: Path | None, *, fresh: bool
) -> None:
    """Read files into the memory at ``path``, one after another; a line of JSON a file."""
    if path is None:
        raise ValueError("this network reads into a memory: give --state FILE, then ask it")
    state = checkpoint.load_state(path) if path.is_file() and not fresh else None
    for name in files:
        before = (0, 0) if state is None else (state.seen, state.total)
        place = "" if name == TYPED else str(Path(name).absolute())
        with Bars("tokens") as bars:
            told = partial(bars.show, short(name))
            state = checkpoint.remember(text_of(name), state, name=place, told=told)
        state = replace(state, origin=origin_of(model))
        state.save(path)
        row = {
            "file": name,
            "seen": state.seen - before[0],
            "total": state.total - before[1],
            "state": str(path),
            "filled": state.filled,
            "slots": checkpoint.network.memory.slots,
            "remembered": state.seen,
        }
        print(json.dumps(row, ensure_ascii=False), flush=True)


def ask_state(
    model: Path | None,
    question: str,
    story: tuple[str | None, list[str]],
    path: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Answer from the memory at ``path``, or from a story that is read for this question alone."""
    from mnemic.learn.checkpoint import load
    from mnemic.learn.state import read_state

    if plot is not None:
        check(plot)
    text = "\n".join([*([] if story[0] is None else [text_of(story[0])]), *story[1]])
    if path is not None and text:
        raise ValueError(
            f"--state and a story are one too many: read it first, mnemic read --state {path} FILE"
        )
    if path is None and not text:
        raise ValueError("nothing is remembered: give --state FILE, --story FILE or --sentence")
    if model is None:
        assert path is not None
        model = made_by(read_state(path), path)
    checkpoint = load(model)
    if not checkpoint.progress.done:
        warn("this network is not trained to the end")
    state = checkpoint.remember(text) if path is None else checkpoint.load_state(path)
    answer, quotes = checkpoint.ask(state, question), Quotes(state, text)
    if not as_json:
        tell(answer, state, question, quotes)
    said = [] if plot is None else drawn(state, answer, question, plot)
    if as_json:
        print_json(
            report(answer, question, quotes)
            | {"filled": state.filled, "notes": said, "plot": None if plot is None else str(plot)}
        )
    elif plot is not None:
        out().print(f"drawn: {plot}", markup=False, soft_wrap=True)


def drawn(state: "State", answer: "Recollected", question: str, plot: Path) -> list[str]:
    """Draw the memory; what should be said of the picture is said, and returned."""
    from mnemic.app.plot_state import draw

    said = draw(state, answer, question, plot)
    for note in said:
        warn(note)
    return said


def made_by(state: "State", path: Path) -> Path:
    """Where the network is that a memory came from."""
    if not state.origin:
        raise ValueError(f"{path} does not say where its network is: give --model DIR")
    return Path(state.origin)


def origin_of(model: Path) -> str:
    """A folder by its whole path; the name of a network that came with the package as it is."""
    return str(model.absolute()) if model.is_dir() else str(model)


def report(answer: "Recollected", question: str, quotes: Quotes) -> dict[str, Any]:
    """Evidence is offsets; the words too, where the text is at hand."""
    return {
        "question": question,
        "answer": words_of(answer, quotes),
        "probability": answer.probability,
        "evidence": [quotes.report(one) for one in answer.evidence],
        "slots": [
            own._asdict() | {"sources": [quotes.report(one) for one in own.sources]}
            for own in answer.slots
        ],
        "seen": answer.seen,
        "total": answer.total,
    }


def tell(
    answer: "Recollected", state: "State", question: str, quotes: Quotes, most: int = 5
) -> None:
    console = out()
    console.print(
        f"{visible(question)}\n{visible(words_of(answer, quotes) or 'see below')}"
        f"  ({100 * answer.probability:.0f} %)",
        markup=False,
    )
    for one in answer.evidence[:most]:
        found = quotes.at(one.start, one.end)
        named = f"{visible(short(found.name))}, " if found.name else ""
        place = f"{named}characters {found.start} to {found.end}"
        words = f"  {visible(found.text)}" if found.text else ""
        console.print(f"  {100 * one.weight:5.1f} %  {place}{words}", markup=False, soft_wrap=True)
    console.print(
        f"read: {answer.seen} of {answer.total} tokens; {state.filled} slots are filled",
        markup=False,
    )
    for name in quotes.changed:
        warn(f"{short(name)} is not there any more or has changed since it was read: no quotes")


def words_of(answer: "Recollected", quotes: Quotes) -> str:
    """An answer's words: those that were said, or those that were read most, if at hand."""
    if answer.text or not answer.evidence:
        return answer.text
    best = answer.evidence[0]
    return quotes.at(best.start, best.end).text or ""


def text_of(name: str) -> str:
    """A file as it is, or standard input."""
    if name == TYPED:
        return sys.stdin.buffer.read().decode("utf-8")
    path = Path(name)
    if not path.is_file():
        raise ValueError(f"there is no file {name}; give the path of a text")
    return path.read_text(encoding="utf-8")
