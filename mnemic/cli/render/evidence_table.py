"""An answer on the screen: the word, and a table of the sentences that were read."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from mnemic.cli.render.captions import TAKEN, columns, manner, unread
from mnemic.cli.render.colormap import FAINT, Shade, hexadecimal, open_shade, shade
from mnemic.cli.render.console import out, visible

if TYPE_CHECKING:
    from mnemic.predict import Answer, Evidence, Slots

PLAIN = 0.02  # smaller weights have no ground
BLOCKS = "·▁▂▃▄▅▆▇█"  # shut to wide open


def tell(answer: "Answer", question: str, most: int | None) -> None:
    """The answer and its evidence; ``most`` sentences, or all."""
    screen = out()
    best, *others = answer.ranked
    also = ", ".join(f"{word} {chance:.2f}" for word, chance in others)
    screen.print(f"[dim]question[/]     {escape(visible(question))}")
    screen.print(f"[dim]answer[/]       [bold]{escape(best[0])}[/]")
    screen.print(f"[dim]probability[/]  {best[1]:.2f}  [dim](next: {escape(also)})[/]")
    if not answer.evidence:
        return
    screen.print(evidence_table(answer, most))
    if answer.slots is not None:
        name, share = answer.slots.names[answer.slots.most], max(answer.slots.read)
        screen.print(
            f"a column of blocks is a slot, as high as it opened; most read: slot "
            f"{visible(name)} ({share:.2f})",
            style="dim",
            markup=False,
        )
    hidden = len(answer.evidence) - (most or len(answer.evidence))
    if hidden > 0:
        item = answer.item
        screen.print(f"{hidden} more {item}s were read less; --all shows them", style="dim")


def evidence_table(answer: "Answer", most: int | None) -> Table:
    """Sentences in the order they were told, a column a hop, darker where more was read."""
    chosen = answer.best_evidence(most or len(answer.evidence))
    table = Table("", answer.item, header_style="bold")
    table.columns[0].justify = "right"
    for head in columns(answer):
        table.add_column(head, justify="right", min_width=5)
    if answer.slots is not None:
        table.add_column("slots' gates", no_wrap=True)
    for one in sorted(chosen, key=lambda one: one.sentence):
        number = Text(str(one.sentence + 1), style="dim")
        cells = map(cell, one.weights)
        table.add_row(number, Text(visible(one.text)), *cells, *opened(answer, one))
    if any(weight > FAINT for weight in unread(answer)):
        table.add_section()
        table.add_row("", Text(manner(answer).rest, style="dim"), *map(cell, unread(answer)))
    if answer.taken:
        table.add_section()
        table.add_row(
            "", Text(TAKEN, style="dim"), *(cell(gate, open_shade) for gate in answer.taken)
        )
    if answer.slots is not None:
        table.add_section()
        gap = [""] * len(answer.evidence[0].weights)
        table.add_row("", Text("(read of each slot)", style="dim"), *gap, read_blocks(answer.slots))
    return table


def opened(answer: "Answer", one: "Evidence") -> list[Text]:
    """How far each slot opened for a sentence, a block a slot; nothing without slots."""
    if answer.slots is None:
        return []
    row = [other.sentence for other in answer.evidence].index(one.sentence)
    return [blocks(answer.slots.gates[row])]


def blocks(gates: tuple[float, ...]) -> Text:
    """A block a slot, as high as its gate opened."""
    line = Text()
    for gate in gates:
        colour = hexadecimal(open_shade(max(gate, 0.4)).ground)
        line.append(
            BLOCKS[round(gate * (len(BLOCKS) - 1))], style=colour if gate > PLAIN else "dim"
        )
    return line


def read_blocks(slots: "Slots") -> Text:
    """A block a slot, as high as it was read; the most read one is the highest there is."""
    return blocks(tuple(share / max(slots.read) for share in slots.read))


def cell(weight: float, shade: Callable[[float], Shade] = shade) -> Text:
    """A weight on a ground that is the darker the more was read."""
    if weight < FAINT:
        return Text("·", style="dim")
    ground, ink = map(hexadecimal, shade(weight))
    return Text(f"{weight:.2f}", style=f"{ink} on {ground}" if weight >= PLAIN else "")
