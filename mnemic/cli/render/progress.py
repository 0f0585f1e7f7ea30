"""Show progress: bars on a terminal, otherwise a line now and then."""

import sys
from threading import Timer
from typing import TYPE_CHECKING

from mnemic.cli.render.console import is_first_process, is_installed, print_status
from mnemic.cli.render.format import format_bytes, sanitize, shorten_start

if TYPE_CHECKING:
    from rich.progress import Progress, Task

QUIET_S = 5.0  # seconds of validation without a message
MAX_NAME_CHARS, BAR_WIDTH, TIME_WIDTH = 24, 12, 7  # columns of a bar's name, of a bar, of 0:12:34


class ProgressBars:
    """Progress bars on standard error, one per name, with rate and remaining time."""

    def __init__(self, unit: str = "") -> None:
        """``unit`` is that of the rate; an empty one shows no rate."""
        self.unit = unit
        is_visible = sys.stderr.isatty() and is_first_process() and is_installed("rich")
        self.bars = create_bars() if is_visible else None
        self.tasks: dict[str, Task] = {}
        self.details: dict[str, str] = {}
        self.delayed_line: Timer | None = None  # prints unless ``show`` is called before

    def __enter__(self) -> "ProgressBars":
        if self.bars:
            self.bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.delayed_line is not None:
            self.delayed_line.cancel()
        if self.bars:
            self.bars.stop()

    def show(self, name: str, done: float, total: int, detail: str | None = None) -> None:
        """Update the bar of ``name``; None keeps the previous ``detail``."""
        if self.delayed_line is not None:
            self.delayed_line.cancel()
        if not self.bars:
            return
        if name not in self.tasks:
            completed = max(int(done) - 1, 0)  # so that the work of an earlier run does not count in the rate
            label = shorten_start(sanitize(name), MAX_NAME_CHARS)
            task_id = self.bars.add_task(label, total=total, completed=completed, amount="", detail="")
            self.tasks[name] = self.bars.tasks[task_id]
        if detail is not None:
            self.details[name] = sanitize(detail)
        task = self.tasks[name]
        amount = self.format_amount(done, total, task.speed)
        # What a terminal of 80 columns has no room for is cut from the detail, at its beginning.
        room = self.bars.console.width - len(task.description) - BAR_WIDTH - len(amount) - TIME_WIDTH - 4
        text = shorten_start(self.details.get(name, ""), max(room, 1))
        self.bars.update(task.id, completed=done, total=total, amount=amount, detail=text)

    def format_amount(self, done: float, total: int, speed: float | None) -> str:
        """Format what is done and the rate: 12/40 or 1.2 MB/9.9 MB, 12 texts/s."""
        if self.unit == "bytes":
            return f"{format_bytes(done)}/{format_bytes(total)}" + (f"  {format_bytes(speed)}/s" if speed else "")
        return f"{int(done)}/{total}" + (f"  {speed:,.0f} {self.unit}/s" if speed and self.unit else "")

    def show_validation(self, num_examples: int) -> None:
        """Show that validation runs.

        The text appears beside the newest bar; without a terminal as a line, if it takes long.
        """
        text = f"validation: {num_examples} examples"
        if self.bars and self.tasks:
            self.bars.update(list(self.tasks.values())[-1].id, detail=text)
        self.delayed_line = Timer(QUIET_S, self.print_line, [text])
        self.delayed_line.daemon = True
        self.delayed_line.start()

    def print_line(self, text: str) -> None:
        """Print a line, only where no bar is visible."""
        if not self.bars:
            print_status(text)


def create_bars() -> "Progress":
    """Create bars on standard error that fit a terminal of 80 columns."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=BAR_WIDTH),
        TextColumn("{task.fields[amount]}", markup=False),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        TextColumn("{task.fields[detail]}", markup=False),
        console=Console(stderr=True, highlight=False, emoji=False),
        redirect_stdout=sys.stdout.isatty(),  # else printed results would go to standard error
    )
