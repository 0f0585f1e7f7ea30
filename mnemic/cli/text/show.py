"""``mnemic text show``: list what a memory file holds, with quotes."""

from typing import TYPE_CHECKING, Annotated, Any

from mnemic.cli.declare import Option
from mnemic.cli.options import JsonOption
from mnemic.cli.render.console import get_stdout, print_fields, print_json, print_text, print_warnings
from mnemic.cli.render.evidence_table import evidence_table
from mnemic.cli.text.ask import PLACE_TITLE, MemArgument, note_full_memory
from mnemic.cli.text.quote import QuoteFinder, display_name_of

if TYPE_CHECKING:
    from mnemic.predict.memory_state import State

MAX_SLOTS = 20  # printed by default
LIMIT_HELP = "Slots to show, those worth most; 0: all."


def show(
    path: MemArgument,
    limit: Annotated[int | None, Option("--limit, -n N", LIMIT_HELP, f"{MAX_SLOTS}; all as JSON", minimum=0)] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a memory file holds: its texts, and the sentences in its slots.

    Example: mnemic text show notes.mem
    """
    from mnemic.predict.memory_state import load_state_file

    state = load_state_file(path)
    quotes, slots = QuoteFinder(state), state.contents()
    default = 0 if as_json else MAX_SLOTS
    most_worth = sorted(slots, key=lambda slot: -slot.weight)[: (default if limit is None else limit) or None]
    shown_slots = [slot for slot in slots if slot in most_worth]
    if as_json:
        rows = [
            {"number": slot.number, "worth": slot.weight}
            | {"sources": [quotes.source_to_dict(source) for source in slot.sources]}
            for slot in shown_slots
        ]
        notes = note_full_memory(state) + quotes.format_notes()
        print_json({"memory": str(path)} | describe_state(state) | {"slots": rows, "notes": notes})
        return
    texts = (
        f"{display_name_of(text.name) or f'text {number}'}, {text.characters:,} characters"
        for number, text in enumerate(state.texts, start=1)
    )
    print_fields({
        "memory": f"{path}, of kind {state.kind}",
        "network": state.origin or "not known",
        "read": f"{state.seen:,} of {state.total:,} tokens, in {state.segments:,} segments",
        "texts": "; ".join(texts) or "none",
        "slots": f"{state.filled} of {state.slots} are filled",
    })  # fmt: skip
    table_rows = []
    for slot in shown_slots:
        suffix = f"  and {len(slot.sources) - 1} more" if len(slot.sources) > 1 else ""
        table_rows.append(quotes.to_row(slot.sources[0].start, slot.sources[0].end, slot.weight, suffix))
    if table_rows:
        get_stdout().print(evidence_table(table_rows, ["worth"], place_title=PLACE_TITLE))
    if len(shown_slots) < len(slots):
        print_text(f"{len(slots) - len(shown_slots)} more are worth less; --limit 0 shows them", style="dim")
    print_warnings(note_full_memory(state) + quotes.format_notes())


def describe_state(state: "State") -> dict[str, Any]:
    """Describe a memory file as a JSON object."""
    return {
        "kind": state.kind,
        "network": state.origin,
        "seen": state.seen,
        "total": state.total,
        "segments": state.segments,
        "texts": [{"name": text.name, "characters": text.characters} for text in state.texts],
        "filled": state.filled,
        "size": state.slots,
    }
