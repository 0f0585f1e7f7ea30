"""``mnemic inspect FILE``: what a memory holds of the texts that were read into it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemic.cli.documents.common import short
from mnemic.cli.render.console import out, print_json, visible, warn
from mnemic.cli.text.ask import brief, full, place
from mnemic.cli.text.quote import Quotes
from mnemic.cli.text_io import SPOKEN, TYPED

if TYPE_CHECKING:
    from mnemic.predict.memory_state import State
    from mnemic.predict.results import Slot

SHOWN = 20  # slots, unless all are asked for


def inspect_state(path: Path, *, everything: bool, as_json: bool) -> None:
    """Tell of a memory, slot by slot, quoted from the files as long as they have not changed."""
    from mnemic.predict.memory_state import read_state

    state = read_state(path)
    quotes, slots = Quotes(state), state.contents()
    if as_json:
        print_json(report(state, path, slots, quotes) | {"notes": full(state) + quotes.notes()})
        return
    screen = out()
    for name, value in facts(state, path).items():
        screen.print(f"{name:<12} {value}", markup=False, soft_wrap=True)
    ranked = sorted(slots, key=lambda own: -own.weight)
    best = {own.number for own in ranked[: len(slots) if everything else SHOWN]}
    for own in (own for own in slots if own.number in best):
        found = quotes.at(own.sources[0].start, own.sources[0].end)
        words = f"  {brief(found.text)}" if found.text else ""
        more = f"  and {len(own.sources) - 1} more" if len(own.sources) > 1 else ""
        line = f"  {100 * own.weight:5.1f} %  {place(found)}{words}{more}"
        screen.print(line, markup=False, soft_wrap=True)
    if len(best) < len(slots):
        screen.print(f"{len(slots) - len(best)} more are worth less; --all shows them", style="dim")
    for note in full(state) + quotes.notes():
        warn(note)


def facts(state: "State", path: Path) -> dict[str, str]:
    """A memory in a few lines."""
    named = [SPOKEN if own.name == TYPED else visible(short(own.name)) for own in state.texts]
    texts = (
        f"{name or f'text {number}'}, {own.characters:,} characters"
        for number, (name, own) in enumerate(zip(named, state.texts), start=1)
    )
    return {
        "memory": f"{path}, of kind {state.kind}",
        "network": state.origin or "not known",
        "read": f"{state.seen:,} of {state.total:,} tokens, in {state.segments:,} segments",
        "texts": "; ".join(texts) or "none",
        "slots": f"{state.filled} of {state.slots} are filled; what each is worth:",
    }


def report(state: "State", path: Path, slots: tuple["Slot", ...], quotes: Quotes) -> dict[str, Any]:
    return {
        "memory": str(path),
        "kind": state.kind,
        "network": state.origin,
        "seen": state.seen,
        "total": state.total,
        "segments": state.segments,
        "texts": [{"name": own.name, "characters": own.characters} for own in state.texts],
        "filled": state.filled,
        "size": state.slots,
        "slots": [
            {"number": own.number, "worth": own.weight}
            | {"sources": [quotes.report(one) for one in own.sources]}
            for own in slots
        ],
    }
