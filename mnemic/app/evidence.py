"""An answer on the screen: the word, and a table of the sentences that were read."""

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from mnemic.app.screen import out, visible
from mnemic.app.shade import FAINT, hexadecimal, shade

if TYPE_CHECKING:
    from mnemic.ask import Answer

PLAIN = 0.02  # smaller weights have no ground


def tell(answer: "Answer", question: str, most: int | None) -> None:
    """The answer and its evidence; ``most`` sentences, or all."""
    screen = out()
    best, *others = answer.ranked
    also = ", ".join(f"{word} {chance:.2f}" for word, chance in others)
    screen.print(f"[dim]question[/]     {escape(visible(question))}")
    screen.print(f"[dim]answer[/]       [bold]{escape(best[0])}[/]")
    screen.print(f"[dim]probability[/]  {best[1]:.2f}  [dim](next: {escape(also)})[/]")
    screen.print(evidence_table(answer, most))
    hidden = len(answer.evidence) - (most or len(answer.evidence))
    if hidden > 0:
        screen.print(f"{hidden} more sentences were read less; --all shows them", style="dim")


def evidence_table(answer: "Answer", most: int | None) -> Table:
    """Sentences in the order they were told, a column a hop, darker where more was read."""
    chosen = answer.best_evidence(most or len(answer.evidence))
    table = Table("", "sentence", header_style="bold")
    table.columns[0].justify = "right"
    for hop in range(len(chosen[0].weights)):
        table.add_column(f"hop {hop + 1}", justify="right", min_width=5)
    for one in sorted(chosen, key=lambda one: one.sentence):
        number = Text(str(one.sentence + 1), style="dim")
        table.add_row(number, Text(visible(one.text)), *map(cell, one.weights))
    if any(weight > FAINT for weight in unread(answer)):
        table.add_section()
        table.add_row("", Text("(nothing: free slots)", style="dim"), *map(cell, unread(answer)))
    return table


def unread(answer: "Answer") -> list[float]:
    """What each hop spent on free slots: it looked at nothing."""
    hops = len(answer.evidence[0].weights)
    return [1 - sum(one.weights[hop] for one in answer.evidence) for hop in range(hops)]


def cell(weight: float) -> Text:
    """A weight on a ground that is the darker the more was read."""
    if weight < FAINT:
        return Text("·", style="dim")
    ground, ink = map(hexadecimal, shade(weight))
    return Text(f"{weight:.2f}", style=f"{ink} on {ground}" if weight >= PLAIN else "")
