"""How far the work is: bars on a terminal, and a line now and then where there is none."""

import sys
from threading import Timer
from types import TracebackType

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from mnemic.cli.render.console import err, say

SOON = 5.0  # seconds that nobody minds waiting without a word


class Bars:
    """One bar a name, on standard error, with rate and time left."""

    def __init__(self, unit: str = "") -> None:
        self.unit = unit  # of the rate; without one no rate is shown
        console = err()
        self.terminal = console.is_terminal
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=14),
            MofNCompleteColumn(),
            TextColumn("[dim]{task.fields[speed]}[/]"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            TextColumn("{task.fields[detail]}"),
            console=console,
            disable=not self.terminal,
            redirect_stdout=sys.stdout.isatty(),  # else what is printed would go where bars are
        )
        self.ids: dict[str, TaskID] = {}
        self.late: Timer | None = None  # what is said unless something is shown before

    def __enter__(self) -> "Bars":
        self.bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.late is not None:
            self.late.cancel()
        self.bars.stop()

    def show(self, name: str, done: float, total: int, detail: str | None = None) -> None:
        """Move the bar of ``name``; ``detail`` stays until another one comes."""
        if self.late is not None:
            self.late.cancel()
        if name not in self.ids:
            begun = max(int(done) - 1, 0)  # so that what an earlier run did counts for no speed
            self.ids[name] = self.bars.add_task(
                name, total=total, completed=begun, speed="", detail=""
            )
        task = self.bars.tasks[self.ids[name]]
        speed = f"{task.speed:,.0f} {self.unit}/s" if task.speed and self.unit else ""
        said = task.fields["detail"] if detail is None else detail
        self.bars.update(task.id, completed=done, total=total, speed=speed, detail=said)

    def looking(self, count: int) -> None:
        """Of a look at so many examples: told beside the newest bar; in a line if it takes long."""
        text = f"validation: {count} examples"
        if self.terminal and self.ids:
            self.bars.update(list(self.ids.values())[-1], detail=text)
        self.late = Timer(SOON, self.line, [text])
        self.late.daemon = True
        self.late.start()

    def line(self, text: str) -> None:
        """Said only where no bar can be seen."""
        if not self.terminal:
            say(text)
