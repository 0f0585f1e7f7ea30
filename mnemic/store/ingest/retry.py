"""Retry work that failed because another process changed the same rows concurrently."""

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from mnemic.store.contract import RaceError, StoreError

T = TypeVar("T")
MAX_TRIES = 6
FIRST_PAUSE_S = 0.05  # after the first try; doubles with each further one


def retry_iterator(work: Callable[[], Iterator[T]]) -> Iterator[T]:
    """Yield from ``work()``, calling it again after each ``RaceError``.

    ``work`` must read the memory first, so that it repeats nothing that is done.
    """
    for attempt in range(MAX_TRIES):
        try:
            yield from work()
        except RaceError as error:
            if attempt == MAX_TRIES - 1:
                raise StoreError(f"{error}; {MAX_TRIES} tries failed") from error
            time.sleep(FIRST_PAUSE_S * 2**attempt)
        else:
            return


def retry_call(work: Callable[[], T]) -> T:
    """Return ``work()``, calling it again after each ``RaceError``."""
    return next(retry_iterator(lambda: iter([work()])))
