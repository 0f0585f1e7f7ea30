"""Let a test that would wait for ever fail instead."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Raise ``TimeoutError`` in the block after so many seconds, also in a system call."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"still running after {seconds} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
