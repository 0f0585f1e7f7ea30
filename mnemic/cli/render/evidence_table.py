"""Print an answer about a story, with a table of the sentences read."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from mnemic.cli.render.captions import UPDATE_GATE_LABEL, compute_unread_weights, format_column_titles, labels_of
from mnemic.cli.render.colormap import MIN_VISIBLE, CellColors, pick_gate_colors, pick_weight_colors, to_hex
from mnemic.cli.render.console import get_stdout, sanitize

if TYPE_CHECKING:
    from mnemic.predict import SentenceEvidence, SlotActivity, StoryAnswer

MIN_SHADED = 0.02  # smaller weights have no background color
BLOCKS = "·▁▂▃▄▅▆▇█"  # closed to fully open


def print_story_answer(answer: "StoryAnswer", question: str, limit: int | None) -> None:
    """Print an answer with at most ``limit`` sentences of evidence; None prints all."""
    screen = get_stdout()
    best, *alternatives = answer.ranked
    alternatives_text = ", ".join(f"{word} {probability:.2f}" for word, probability in alternatives)
    screen.print(f"[dim]question[/]     {escape(sanitize(question))}")
    screen.print(f"[dim]answer[/]       [bold]{escape(best[0])}[/]")
    screen.print(f"[dim]probability[/]  {best[1]:.2f}  [dim](next: {escape(alternatives_text)})[/]")
    if not answer.evidence:
        return
    screen.print(build_evidence_table(answer, limit))
    if answer.slots is not None:
        name, weight = answer.slots.names[answer.slots.most_read], max(answer.slots.read)
        screen.print(
            f"a column of blocks is a slot, as high as it opened; most read: slot {sanitize(name)} ({weight:.2f})",
            style="dim",
            markup=False,
        )
    num_hidden = len(answer.evidence) - (limit or len(answer.evidence))
    if num_hidden > 0:
        item = answer.item
        screen.print(f"{num_hidden} more {item}s were read less; --all shows them", style="dim")


def build_evidence_table(answer: "StoryAnswer", limit: int | None) -> Table:
    """Build a table of sentences in story order, with their weight per hop."""
    sentences = answer.best_evidence(limit or len(answer.evidence))
    table = Table("", answer.item, header_style="bold")
    table.columns[0].justify = "right"
    for title in format_column_titles(answer):
        table.add_column(title, justify="right", min_width=5)
    if answer.slots is not None:
        table.add_column("slots' gates", no_wrap=True)
    for evidence in sorted(sentences, key=lambda evidence: evidence.sentence):
        number = Text(str(evidence.sentence + 1), style="dim")
        cells = map(format_weight, evidence.weights)
        table.add_row(number, Text(sanitize(evidence.text)), *cells, *format_slot_gates(answer, evidence))
    if any(weight > MIN_VISIBLE for weight in compute_unread_weights(answer)):
        table.add_section()
        table.add_row(
            "", Text(labels_of(answer).unread_label, style="dim"), *map(format_weight, compute_unread_weights(answer))
        )
    if answer.taken:
        table.add_section()
        table.add_row(
            "", Text(UPDATE_GATE_LABEL, style="dim"), *(format_weight(gate, pick_gate_colors) for gate in answer.taken)
        )
    if answer.slots is not None:
        table.add_section()
        gap = [""] * len(answer.evidence[0].weights)
        table.add_row("", Text("(read of each slot)", style="dim"), *gap, format_slot_reads(answer.slots))
    return table


def format_slot_gates(answer: "StoryAnswer", evidence: "SentenceEvidence") -> list[Text]:
    """Format how far each slot's gate opened for a sentence; empty without slots."""
    if answer.slots is None:
        return []
    row = [candidate.sentence for candidate in answer.evidence].index(evidence.sentence)
    return [format_blocks(answer.slots.gates[row])]


def format_blocks(gates: tuple[float, ...]) -> Text:
    """Format gates as a line of block characters, one per slot."""
    line = Text()
    for gate in gates:
        color = to_hex(pick_gate_colors(max(gate, 0.4)).background)
        line.append(BLOCKS[round(gate * (len(BLOCKS) - 1))], style=color if gate > MIN_SHADED else "dim")
    return line


def format_slot_reads(slots: "SlotActivity") -> Text:
    """Format the read weights of the slots as blocks, relative to the largest."""
    return format_blocks(tuple(weight / max(slots.read) for weight in slots.read))


def format_weight(weight: float, pick_colors: Callable[[float], CellColors] = pick_weight_colors) -> Text:
    """Format a weight on a background that is darker for a larger weight."""
    if weight < MIN_VISIBLE:
        return Text("·", style="dim")
    background, foreground = map(to_hex, pick_colors(weight))
    return Text(f"{weight:.2f}", style=f"{foreground} on {background}" if weight >= MIN_SHADED else "")
