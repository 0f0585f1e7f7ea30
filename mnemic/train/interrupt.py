"""Defer Ctrl-C and SIGTERM to the end of a training step."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def defer_interrupts() -> Iterator[Callable[[], bool]]:
    """Yield a function that reports whether to stop, so that work can end between steps.

    Ctrl-C and SIGTERM (of ``kill`` and ``timeout``) ask to stop; a second Ctrl-C interrupts at
    once. ``timeout`` sends SIGTERM twice, so a second one is ignored. The first signal prints a
    line, since a validation may take minutes.
    """
    signals: list[int] = []

    def handle_signal(number: int, frame: object) -> None:
        if signals and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not signals:
            os.write(2, b"\nstopping after this step or validation; Ctrl-C stops at once\n")
        signals.append(number)

    old_handlers = {number: signal.signal(number, handle_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(signals)
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)
