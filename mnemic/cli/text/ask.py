"""``mnemic ask --state``: an answer from the memory of a text of any length, with its evidence."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemic.cli.documents.ask import lines
from mnemic.cli.documents.common import short
from mnemic.cli.render.console import CUT, cut, out, print_json, visible, warn
from mnemic.cli.render.plot_story import check
from mnemic.cli.render.progress import Bars
from mnemic.cli.text.extract import Said, said
from mnemic.cli.text.quote import Quote, Quotes
from mnemic.cli.text_io import SPOKEN, TYPED, text_of

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint
    from mnemic.predict.memory_state import State
    from mnemic.predict.results import Recollected

SHOWN = 5  # stretches of evidence, unless all are asked for
FULL = {  # what becomes of a memory whose slots are all filled, by its kind
    "keeps": "what was worth least is no longer kept",
    "bert-mass": "what comes now is blended into what they hold",
}


def carries(model: Path) -> bool:
    """Whether a checkpoint's network answers from a memory; False for one that cannot be read."""
    from mnemic.checkpoint.atomic_files import CheckpointError
    from mnemic.checkpoint.folder import RECIPE, locate, read_described
    from mnemic.respond import FROM_MEMORY

    try:
        recipe = read_described(locate(model) / RECIPE)["recipe"]
    except CheckpointError:  # whoever loads it says what is wrong
        return False
    return recipe["model"].get("respond", {}).get("kind") in FROM_MEMORY


def ask_state(
    model: Path | None,
    question: str,
    story: tuple[str | None, list[str]],
    path: Path | None,
    plot: Path | None,
    *,
    everything: bool,
    as_json: bool,
) -> None:
    """Answer from the memory at ``path``, or from a story that is read for this question alone."""
    from mnemic.predict import long_text
    from mnemic.predict.long_text import speaks

    if plot is not None:
        check(plot)
    text = "\n".join([*([] if story[0] is None else [text_of(story[0])]), *story[1]])
    checkpoint, state = remembered(model, text, path)
    answer, quotes = long_text.ask(checkpoint, state, question), Quotes(state, text)
    words = said(answer, question, quotes, speaks=speaks(checkpoint))
    notes = [] if checkpoint.progress.done else ["this network is not trained to the end"]
    told: dict[str, Any] = {}
    if as_json:
        told = report(answer, words, question, quotes)
        told |= {"filled": state.filled, "size": state.slots}
    else:
        out().print(f"{visible(question)}\n{spoken(words)}", markup=False)
        tell(answer, state, quotes, len(answer.evidence) if everything else SHOWN)
    notes += [*words.notes, *full(state), *quotes.notes()]
    for note in notes:
        warn(note)
    if words.probability is not None:
        answer = replace(answer, text=words.text, probability=words.probability)
    notes += [] if plot is None else drawn(state, answer, question, plot)
    if as_json:
        print_json(told | {"notes": notes, "plot": None if plot is None else str(plot)})
    elif plot is not None:
        out().print(f"drawn: {plot}", markup=False, soft_wrap=True)


def ask_states(model: Path | None, file: Path, path: Path) -> None:
    """Answer a file of questions, one a line, a line of JSON each."""
    from mnemic.predict import long_text
    from mnemic.predict.long_text import speaks

    questions = list(lines(file))
    if not questions:
        raise ValueError(f"{file} holds no question; write one a line")
    checkpoint, state = remembered(model, "", path)
    quotes, voice = Quotes(state), speaks(checkpoint)
    with Bars("questions") as bars:
        for number, question in enumerate(questions):
            answer = long_text.ask(checkpoint, state, question)
            words = said(answer, question, quotes, speaks=voice)
            told = report(answer, words, question, quotes) | {"notes": list(words.notes)}
            print(json.dumps(told, ensure_ascii=False), flush=True)
            bars.show("asking", number + 1, len(questions))
    for note in [*full(state), *quotes.notes()]:
        warn(note)


def remembered(model: Path | None, text: str, path: Path | None) -> tuple["Checkpoint", "State"]:
    """The network that is asked and its memory, which holds something."""
    from mnemic.checkpoint.folder import load
    from mnemic.predict import long_text
    from mnemic.predict.memory_state import read_state

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
    state = (
        long_text.remember(checkpoint, text)
        if path is None
        else long_text.load_state(checkpoint, path)
    )
    if not state.filled:
        read = f"mnemic read --model {model} --state {path} FILE"
        how = "tell another story" if path is None else f"read a text into {path}: {read}"
        raise ValueError(f"nothing is remembered of the {state.seen} tokens that were read; {how}")
    return checkpoint, state


def full(state: "State") -> list[str]:
    """Said of a memory that has no free slot."""
    if state.filled < state.slots:
        return []
    return [f"all {state.slots} slots are filled: {FULL[state.kind]}"]


def drawn(state: "State", answer: "Recollected", question: str, plot: Path) -> list[str]:
    """Draw the memory; what should be said of the picture is said, and returned."""
    from mnemic.cli.render.plot_state import draw

    notes = draw(state, answer, question, plot)
    for note in notes:
        warn(note)
    return notes


def made_by(state: "State", path: Path) -> Path:
    """Where the network is that a memory came from."""
    from mnemic.checkpoint.atomic_files import CheckpointError
    from mnemic.checkpoint.folder import locate

    if not state.origin:
        raise ValueError(f"{path} does not say where its network is: give --model DIR")
    try:
        locate(Path(state.origin))
    except CheckpointError:
        raise ValueError(
            f"the network of {path} was {state.origin}, and is not there any more: give --model DIR"
        ) from None
    return Path(state.origin)


def report(answer: "Recollected", words: Said, question: str, quotes: Quotes) -> dict[str, Any]:
    """Evidence is offsets; the words too, where the text is at hand."""
    return {
        "question": question,
        "answer": words.text,
        "probability": words.probability,
        "evidence": [quotes.report(one) for one in answer.evidence],
        "slots": [
            own._asdict() | {"sources": [quotes.report(one) for one in own.sources]}
            for own in answer.slots
        ],
        "seen": answer.seen,
        "total": answer.total,
    }


def spoken(words: Said) -> str:
    """The answer, and how sure it is; without words, what is left to look at."""
    if not words.text or words.probability is None:
        return "no answer in words: see below"
    return f"{brief(words.text)}  ({100 * words.probability:.0f} %)"


def tell(answer: "Recollected", state: "State", quotes: Quotes, most: int) -> None:
    """The evidence, most read first, and how much was read and kept."""
    console = out()
    for one in answer.evidence[:most]:
        found = quotes.at(one.start, one.end)
        words = f"  {brief(found.text)}" if found.text else ""
        console.print(
            f"  {100 * one.weight:5.1f} %  {place(found)}{words}", markup=False, soft_wrap=True
        )
    if (hidden := len(answer.evidence) - most) > 0:
        console.print(f"{hidden} more were read less; --all shows them", style="dim")
    console.print(
        f"read: {answer.seen} of {answer.total} tokens; {state.filled} of {state.slots} slots are "
        "filled",
        markup=False,
    )


def brief(text: str) -> str:
    """A quotation on the screen: its beginning and its end, if it is long."""
    return visible(cut(text, tail=CUT // 2))


def place(found: Quote) -> str:
    """Where a quote stands, for a person: offsets count within the text that is named."""
    named = SPOKEN if found.name == TYPED else visible(short(found.name))
    if not named and found.number:
        named = f"text {found.number}"
    return f"{named}{', ' if named else ''}characters {found.start} to {found.end}"
