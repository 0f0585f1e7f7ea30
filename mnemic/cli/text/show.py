"""``mnemic inspect FILE``: list the slots of a memory file, with quotes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemic.cli.documents.common import shorten_path
from mnemic.cli.render.console import get_stdout, print_json, print_warning, sanitize
from mnemic.cli.text.ask import format_location, note_full_memory, shorten_quote
from mnemic.cli.text.quote import QuoteFinder
from mnemic.cli.text_io import STDIN, STDIN_NAME

if TYPE_CHECKING:
    from mnemic.predict.memory_state import State
    from mnemic.predict.results import SlotEvidence

MAX_SLOTS = 20  # printed without --all


def inspect_state(path: Path, *, show_all: bool, as_json: bool) -> None:
    """Print the slots of a memory file, with quotes from unchanged texts."""
    from mnemic.predict.memory_state import load_state_file

    state = load_state_file(path)
    quote_finder, slots = QuoteFinder(state), state.contents()
    if as_json:
        print_json(
            build_report(state, path, slots, quote_finder)
            | {"notes": note_full_memory(state) + quote_finder.format_notes()}
        )
        return
    screen = get_stdout()
    for name, value in describe_state(state, path).items():
        screen.print(f"{name:<12} {value}", markup=False, soft_wrap=True)
    ranked = sorted(slots, key=lambda slot: -slot.weight)
    shown_slots = {slot.number for slot in ranked[: len(slots) if show_all else MAX_SLOTS]}
    for slot in (slot for slot in slots if slot.number in shown_slots):
        quote = quote_finder.quote_span(slot.sources[0].start, slot.sources[0].end)
        quotation = f"  {shorten_quote(quote.text)}" if quote.text else ""
        more = f"  and {len(slot.sources) - 1} more" if len(slot.sources) > 1 else ""
        line = f"  {100 * slot.weight:5.1f} %  {format_location(quote)}{quotation}{more}"
        screen.print(line, markup=False, soft_wrap=True)
    if len(shown_slots) < len(slots):
        screen.print(f"{len(slots) - len(shown_slots)} more are worth less; --all shows them", style="dim")
    for note in note_full_memory(state) + quote_finder.format_notes():
        print_warning(note)


def describe_state(state: "State", path: Path) -> dict[str, str]:
    """Describe a memory file in a few lines."""
    names = [STDIN_NAME if text.name == STDIN else sanitize(shorten_path(text.name)) for text in state.texts]
    texts = (
        f"{name or f'text {number}'}, {text.characters:,} characters"
        for number, (name, text) in enumerate(zip(names, state.texts), start=1)
    )
    return {
        "memory": f"{path}, of kind {state.kind}",
        "network": state.origin or "not known",
        "read": f"{state.seen:,} of {state.total:,} tokens, in {state.segments:,} segments",
        "texts": "; ".join(texts) or "none",
        "slots": f"{state.filled} of {state.slots} are filled; what each is worth:",
    }


def build_report(
    state: "State", path: Path, slots: tuple["SlotEvidence", ...], quote_finder: QuoteFinder
) -> dict[str, Any]:
    """Convert a memory file and its slots to a JSON object."""
    return {
        "memory": str(path),
        "kind": state.kind,
        "network": state.origin,
        "seen": state.seen,
        "total": state.total,
        "segments": state.segments,
        "texts": [{"name": text.name, "characters": text.characters} for text in state.texts],
        "filled": state.filled,
        "size": state.slots,
        "slots": [
            {"number": slot.number, "worth": slot.weight}
            | {"sources": [quote_finder.source_to_dict(source) for source in slot.sources]}
            for slot in slots
        ],
    }
