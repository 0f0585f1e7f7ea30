"""``mnemic text show``: list what a memory file holds, with quotes."""

from typing import Annotated

from mnemic.cli import options as opt
from mnemic.cli.render.console import AS_JSON, print_fields, print_json, print_text, print_warnings
from mnemic.cli.text.ask import note_full_memory
from mnemic.cli.text.quote import QuoteFinder, display_name_of

MAX_SLOTS = 20  # printed by default
LIMIT_HELP = "Slots to show, those worth most; 0: all."
Limit = Annotated[int | None, opt.Option("--limit, -n N", LIMIT_HELP, f"{MAX_SLOTS}; all as JSON", minimum=0)]


def show(path: opt.MemoryFile, limit: Limit = None) -> None:
    """Show what a memory file holds: its texts, and the sentences in its slots.

    Example: mnemic text show notes.mem
    """
    from mnemic.predict.memory_state import load_state_file

    state = load_state_file(path)
    quotes, slots = QuoteFinder(state), state.contents()
    default = 0 if AS_JSON.get() else MAX_SLOTS
    most_worth = sorted(slots, key=lambda slot: -slot.weight)[: (default if limit is None else limit) or None]
    shown_slots = [slot for slot in slots if slot in most_worth]
    rows = []
    for slot in shown_slots:
        sources = [quotes.source_to_dict(source) for source in slot.sources]
        rows.append({"number": slot.number, "worth": slot.weight, "sources": sources})
    report = {"memory": str(path), "kind": state.kind, "network": state.origin, "seen": state.seen}
    texts = [{"name": text.name, "characters": text.characters} for text in state.texts]
    report |= {"total": state.total, "segments": state.segments, "texts": texts, "filled": state.filled}
    notes = note_full_memory(state) + quotes.format_notes()
    print_json(report | {"size": state.slots, "slots": rows, "notes": notes})
    names = [display_name_of(text.name) or f"text {number}" for number, text in enumerate(state.texts, start=1)]
    lengths = [f"{name}, {text.characters:,} characters" for name, text in zip(names, state.texts)]
    print_fields({
        "memory": f"{path}, of kind {state.kind}",
        "network": state.origin or "not known",
        "read": f"{state.seen:,} of {state.total:,} tokens, in {state.segments:,} segments",
        "texts": "; ".join(lengths) or "none",
        "slots": f"{state.filled} of {state.slots} are filled",
    })  # fmt: skip
    quotes.print_table([(slot.weight, slot.sources) for slot in shown_slots], "worth")
    if len(shown_slots) < len(slots):
        print_text(f"{len(slots) - len(shown_slots)} more are worth less; --limit 0 shows them", style="dim")
    print_warnings(*notes)
