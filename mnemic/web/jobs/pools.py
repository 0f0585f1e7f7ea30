"""Bounded pools of threads: more work than they take is refused, never piled up."""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Condition, Event, Lock
from typing import Any, TypeVar

from mnemic.web.problems import make_busy_problem

Outcome = TypeVar("Outcome")
POLL_S = 0.2  # after which whoever waits looks whether it is to stop


class WorkerPool:
    """Some threads, and the requests that wait for one."""

    def __init__(self, name: str, num_threads: int, max_waiting: int, timeout_s: float | None) -> None:
        self.executor = ThreadPoolExecutor(num_threads, thread_name_prefix=f"mnemic-{name}")
        self.max_pending, self.timeout_s = num_threads + max_waiting, timeout_s
        self.lock, self.num_pending = Lock(), 0

    def submit(self, function: Callable[[], Outcome]) -> "Future[Outcome]":
        """Begin some work, or raise a problem if too much waits already."""
        with self.lock:
            if self.num_pending >= self.max_pending:
                raise make_busy_problem(
                    f"{self.num_pending} requests are being worked on, which is as many as this server takes. "
                    "Send it again a little later."
                )
            self.num_pending += 1
        try:
            future = self.executor.submit(function)
        except RuntimeError:
            self.decrement_pending()
            raise make_busy_problem(
                "The server is about to end. Send it again when it has started anew.", 503
            ) from None
        future.add_done_callback(self.decrement_pending)
        return future

    def decrement_pending(self, future: "Future[Any] | None" = None) -> None:
        """Count one task less, which has ended or will never begin."""
        with self.lock:
            self.num_pending -= 1

    async def run(self, function: Callable[[], Outcome]) -> Outcome:
        """Do some work in a thread; raise a problem if it takes too long."""
        return await self.wait_for(self.submit(function))

    async def wait_for(self, future: "Future[Outcome]") -> Outcome:
        """Wait for some work; raise a problem if it takes too long."""
        waiting = asyncio.wrap_future(future)
        try:
            await asyncio.wait({waiting}, timeout=self.timeout_s)
        finally:
            if not waiting.done():
                waiting.cancel()  # what has not begun yet never will
        if waiting.cancelled():
            raise make_busy_problem(
                f"It took longer than {self.timeout_s:.0f} s, which is the limit here. Send it again later, or ask "
                "for less at a time.",
                504,
            )
        return waiting.result()

    def close(self, timeout_s: float = 0.0) -> None:
        """Drop what waits; give what has begun some time to end."""
        self.executor.shutdown(wait=False, cancel_futures=True)
        end = time.monotonic() + timeout_s
        while self.num_pending and time.monotonic() < end:
            time.sleep(POLL_S / 10)


class WriteTurns:
    """Who may write to a memory: requests come before the turns of jobs."""

    def __init__(self) -> None:
        self.condition = Condition()
        self.is_taken, self.num_urgent = False, 0

    @contextmanager
    def take(
        self, timeout_s: float = float("inf"), *, is_urgent: bool = True, stop: Event | None = None
    ) -> Iterator[None]:
        """Write in the block, after all others; raise a problem if that takes too long.

        If ``stop`` is set meanwhile, the block runs without the turn, and must end at once.
        """

        def can_write() -> bool:
            return not self.is_taken and (is_urgent or not self.num_urgent)

        end = time.monotonic() + timeout_s
        with self.condition:
            self.num_urgent += is_urgent
            try:
                while not self.condition.wait_for(can_write, POLL_S) and time.monotonic() < end:
                    if stop is not None and stop.is_set():
                        break
                is_taking = can_write()
                if not is_taking and stop is None:
                    raise make_busy_problem(
                        "The memory is being written, and nothing was changed. Send it again a little later.", 503
                    )
                self.is_taken = is_taking or self.is_taken
            finally:
                self.num_urgent -= is_urgent
        try:
            yield
        finally:
            with self.condition:
                if is_taking:
                    self.is_taken = False
                self.condition.notify_all()
