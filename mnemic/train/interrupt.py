"""Ctrl-C, or a request to end, that waits for a good moment."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def patient() -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether to stop, so that work can end between steps.

    Ctrl-C and the signal that ``kill`` and ``timeout`` send ask for it; a second Ctrl-C interrupts
    at once, as everywhere else. ``timeout`` sends its signal twice, so that one may come again. The
    first one is answered in a line, since a validation may take minutes.
    """
    pressed: list[int] = []

    def note(number: int, frame: object) -> None:
        if pressed and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not pressed:
            os.write(2, b"\nstopping after this step or validation; Ctrl-C stops at once\n")
        pressed.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(pressed)
    finally:
        for number, was in before.items():
            signal.signal(number, was)
