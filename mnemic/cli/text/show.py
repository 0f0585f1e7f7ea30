"""``mnemic text show``: list what a memory file holds, with quotes."""

from collections.abc import Sequence
from typing import Annotated, Any

from mnemic.cli import options as opt
from mnemic.cli.render.console import AS_JSON, print_fields, print_json, print_table, print_text, print_warnings
from mnemic.cli.render.format import MAX_PASSAGE_CHARS, truncate
from mnemic.cli.text.ask import note_full_memory
from mnemic.cli.text.quote import QuoteFinder, display_name_of

MAX_SLOTS = 20  # printed by default
LIMIT_HELP = "Slots to show, those worth most, or key sentences; 0: all."
Limit = Annotated[int | None, opt.Option("--limit, -n N", LIMIT_HELP, f"{MAX_SLOTS}; all as JSON", minimum=0)]
KEY_HELP = "List the sentences of the texts that share most with the others (TextRank), not the slots."
KeySentences = Annotated[bool, opt.Option("--key-sentences", KEY_HELP)]


def show(path: opt.MemoryFile, limit: Limit = None, key_sentences: KeySentences = False) -> None:
    """Show what a memory file holds: its texts, and the sentences in its slots.

    --key-sentences reads the texts again, and shows which of their sentences share most words with
    the others, whatever the memory holds.

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
    key_rows = list_key_sentences(quotes, default if limit is None else limit) if key_sentences else []
    notes = note_full_memory(state) + quotes.format_notes()
    print_json(report | {"size": state.slots, "slots": rows, "key_sentences": key_rows, "notes": notes})
    names = [display_name_of(text.name) or f"text {number}" for number, text in enumerate(state.texts, start=1)]
    lengths = [f"{name}, {text.characters:,} characters" for name, text in zip(names, state.texts)]
    print_fields({
        "memory": f"{path}, of kind {state.kind}",
        "network": state.origin or "not known",
        "read": f"{state.seen:,} of {state.total:,} tokens, in {state.segments:,} segments",
        "texts": "; ".join(lengths) or "none",
        "slots": f"{state.filled} of {state.slots} are filled",
    })  # fmt: skip
    if key_sentences:
        print_key_sentences(key_rows)
    else:
        quotes.print_table([(slot.weight, slot.sources) for slot in shown_slots], "worth")
    if not key_sentences and len(shown_slots) < len(slots):
        print_text(f"{len(slots) - len(shown_slots)} more are worth less; --limit 0 shows them", style="dim")
    print_warnings(*notes)


def list_key_sentences(quotes: QuoteFinder, limit: int) -> list[dict[str, Any]]:
    """Rank the sentences of all texts that are still there; the first ``limit``, in order."""
    from mnemic.text.text_rank import find_key_sentences

    texts = [quotes.load_text(number) for number in range(len(quotes.texts))]
    if not any(texts):
        raise ValueError("none of the texts is there any more as it was read: key sentences are read from them")
    return [
        {
            "score": sentence.score,
            "text": texts[sentence.text][sentence.start : sentence.end],
            "file": quotes.texts[sentence.text].name,
            "at": [sentence.start, sentence.end],
        }
        for sentence in find_key_sentences(texts, limit)
    ]


def print_key_sentences(rows: Sequence[dict[str, Any]]) -> None:
    """Print key sentences with their places and scores."""
    cells = []
    for row in rows:
        citation = f"{display_name_of(row['file'])}, {row['at'][0]}-{row['at'][1]}"
        cells.append([citation, truncate(row["text"], tail_chars=MAX_PASSAGE_CHARS // 2), f"{row['score']:.2f}"])
    print_table(["text, characters", "key sentence", ">score"], cells)
