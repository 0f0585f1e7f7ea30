"""Show progress: bars on a terminal, otherwise a line now and then."""

import sys
from threading import Timer
from types import TracebackType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from mnemic.cli.render.console import get_stderr, print_status

QUIET_S = 5.0  # seconds of validation without a message


class ProgressBars:
    """Progress bars on standard error, one per name, with rate and remaining time."""

    def __init__(self, unit: str = "") -> None:
        """``unit`` is that of the rate; an empty one shows no rate."""
        self.unit = unit
        console = get_stderr()
        self.is_terminal = console.is_terminal
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=14),
            MofNCompleteColumn(),
            TextColumn("[dim]{task.fields[speed]}[/]"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            TextColumn("{task.fields[detail]}"),
            console=console,
            disable=not self.is_terminal,
            redirect_stdout=sys.stdout.isatty(),  # else printed results would go to standard error
        )
        self.ids: dict[str, TaskID] = {}
        self.delayed_line: Timer | None = None  # prints unless ``show`` is called before

    def __enter__(self) -> "ProgressBars":
        self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.delayed_line is not None:
            self.delayed_line.cancel()
        self.bars.stop()

    def show(self, name: str, done: float, total: int, detail: str | None = None) -> None:
        """Update the bar of ``name``; None keeps the previous ``detail``."""
        if self.delayed_line is not None:
            self.delayed_line.cancel()
        if name not in self.ids:
            completed = max(int(done) - 1, 0)  # so that the work of an earlier run does not count in the rate
            self.ids[name] = self.bars.add_task(name, total=total, completed=completed, speed="", detail="")
        task = self.bars.tasks[self.ids[name]]
        speed = f"{task.speed:,.0f} {self.unit}/s" if task.speed and self.unit else ""
        detail_text = task.fields["detail"] if detail is None else detail
        self.bars.update(task.id, completed=done, total=total, speed=speed, detail=detail_text)

    def show_validation(self, num_examples: int) -> None:
        """Show that validation runs.

        The text appears beside the newest bar; without a terminal as a line, if it takes long.
        """
        text = f"validation: {num_examples} examples"
        if self.is_terminal and self.ids:
            self.bars.update(list(self.ids.values())[-1], detail=text)
        self.delayed_line = Timer(QUIET_S, self.print_line, [text])
        self.delayed_line.daemon = True
        self.delayed_line.start()

    def print_line(self, text: str) -> None:
        """Print a line, only where no bar is visible."""
        if not self.is_terminal:
            print_status(text)
