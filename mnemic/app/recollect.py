"""``mnemic ask`` for networks that carry a memory: a text of any length, or a memory on disk."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemic.app.screen import out, print_json, visible

if TYPE_CHECKING:
    from mnemic.ask import Recollection


def carries(model: Path) -> bool:
    """Whether a checkpoint's network carries a memory; False for one that cannot be read."""
    from mnemic.learn.checkpoint import RECIPE, locate, read_described
    from mnemic.learn.disk import CheckpointError

    try:
        recipe = read_described(locate(model) / RECIPE)["recipe"]
    except CheckpointError:  # whoever loads it says what is wrong
        return False
    return "carry" in recipe.get("model", {})


def ask_state(model: Path, question: str, text: str, state: Path | None, as_json: bool) -> None:
    """Read ``text`` into the memory, answer from it, and keep it in ``state``."""
    from mnemic.ask import load_memory, recollect, remember
    from mnemic.learn.checkpoint import load

    before = load_memory(state) if state is not None and state.is_file() else None
    if before is None and not text:
        raise ValueError("nothing is remembered: give a text with --story FILE or --sentence TEXT")
    checkpoint = load(model)
    memory = before if not text and before is not None else remember(checkpoint, text, before)
    answer = recollect(checkpoint, memory, question)
    if state is not None and text:
        memory.save(state)
    if as_json:
        print_json(report(answer, question, text if before is None else ""))
    else:
        tell(answer, question, text if before is None else "")


def report(answer: "Recollection", question: str, text: str) -> dict[str, Any]:
    """Evidence is offsets; the words too, where the whole text is at hand."""
    return {
        "question": question,
        "answer": answer.text,
        "probability": answer.probability,
        "evidence": [
            one._asdict() | ({"text": text[one.start : one.end]} if text else {})
            for one in answer.evidence
        ],
        "tokens": answer.tokens,
    }


def tell(answer: "Recollection", question: str, text: str) -> None:
    console = out()
    console.print(
        f"{visible(question)}\n{visible(answer.text)}  ({100 * answer.probability:.0f} %)",
        markup=False,
    )
    for one in answer.evidence:
        quoted = f"  {visible(text[one.start : one.end])}" if text else ""
        place = f"characters {one.start} to {one.end}"
        console.print(f"  {100 * one.weight:5.1f} %  {place}{quoted}", markup=False)
    console.print(f"read: all {answer.tokens} tokens", markup=False)


def text_of(story: str | None, sentences: list[str]) -> str:
    """A file as it is, or standard input, and what was told beside it."""
    parts = []
    if story == "-":
        parts.append(sys.stdin.buffer.read().decode("utf-8"))
    elif story is not None:
        path = Path(story)
        if not path.is_file():
            raise ValueError(f"there is no file {story}; give the path of a text")
        parts.append(path.read_text(encoding="utf-8"))
    return "\n".join([*parts, *sentences])
