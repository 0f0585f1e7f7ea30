"""Ctrl-C that waits for a good moment."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def patient() -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether Ctrl-C was pressed, so that work can end between steps.

    Pressed a second time it interrupts at once, as everywhere else.
    """
    pressed: list[int] = []

    def note(number: int, frame: object) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)
