"""Do a change again where another process made the same one at the same moment."""

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from mnemic.store.contract import RaceError, StoreError

T = TypeVar("T")
TRIES = 6
PAUSE = 0.05  # seconds after the first try; after each other one twice as long


def resumed(work: Callable[[], Iterator[T]]) -> Iterator[T]:
    """What ``work`` yields; it looks at the memory first, and is begun anew after a race."""
    for attempt in range(TRIES):
        try:
            yield from work()
        except RaceError as error:
            if attempt == TRIES - 1:
                raise StoreError(f"{error}; {TRIES} tries were in vain") from error
            time.sleep(PAUSE * 2**attempt)
        else:
            return


def retried(work: Callable[[], T]) -> T:
    """What ``work`` returns, as in ``resumed``."""
    return next(resumed(lambda: iter([work()])))
