"""Batches whose check would hold up the loop: checked in steps, then appended.

An append that may wait raises `CheckLaterError` before anything has changed. Whoever appends gives
it to `Checks.run`, and appends again with the CheckedBatch that comes of them: the log
takes it if its rules are still those that the batch was checked by.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from kwire.log.scheduling import Scheduler
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.compression import Work
from kwire.protocol.records.reading import Steps
from kwire.protocol.records.validation import CheckedBatch

T = TypeVar("T")
HELD_BYTES_MAX = 256 * 1024 * 1024


class CheckLaterError(Exception):
    """What a batch of `size_bytes` has to fulfil is found out by `work`, then by `steps`."""

    def __init__(self, work: Work | None, steps: Steps[CheckedBatch], size_bytes: int) -> None:
        super().__init__(f"{size_bytes} bytes to be checked")
        self.work = work
        self.steps = steps
        self.size_bytes = size_bytes


def check_or_defer(steps: Steps[CheckedBatch], size_bytes: int) -> CheckedBatch:
    """The result of steps that are one only; else raises CheckLaterError."""
    try:
        work = next(steps)
    except StopIteration as stop:
        checked: CheckedBatch = stop.value
        return checked
    raise CheckLaterError(work, steps, size_bytes)


class Checks:
    """Runs steps: turns of the loop, and one worker for what needs no interpreter lock.

    The batches that wait hold `held_bytes`; when there is no room for more, the next is checked on
    the spot.
    """

    def __init__(self, scheduler: Scheduler, held_bytes_max: int = HELD_BYTES_MAX) -> None:
        self._scheduler = scheduler
        self._held_bytes_max = held_bytes_max
        self._is_closed = False
        self._under_way = 0
        self._idle: Pending[None] = Pending()
        self.held_bytes = 0

    def run(self, later: CheckLaterError) -> Pending[CheckedBatch]:
        """What comes of the steps; fails with their KafkaError."""
        if self.held_bytes >= self._held_bytes_max:
            return _run_now(later.work, later.steps)
        self.held_bytes += later.size_bytes
        self._under_way += 1
        result = run_steps(later.work, later.steps, self._scheduler, self._unless_closed)
        result.add_done_callback(lambda _: self._ended(later.size_bytes))
        return result

    def close(self) -> Pending[None]:
        """Begin nothing any more; done when what is under way has ended."""
        self._is_closed = True
        if not self._under_way:
            self._idle.complete(None)
        return self._idle

    def _unless_closed(self, work: Work) -> None:
        if self._is_closed:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the broker is stopping")
        work.perform()

    def _ended(self, size_bytes: int) -> None:
        self.held_bytes -= size_bytes
        self._under_way -= 1
        if self._is_closed and not self._under_way:
            self._idle.complete(None)


def _run_now(work: Work | None, steps: Steps[T]) -> Pending[T]:
    try:
        while True:
            if work is not None:
                work.perform()
            work = next(steps)
    except StopIteration as stop:
        return Pending.completed(stop.value)
    except Exception as error:
        return Pending.failed(error)


def run_steps(
    work: Work | None, steps: Steps[T], scheduler: Scheduler, perform_by: Callable[[Work], None]
) -> Pending[T]:
    """The result of steps of which the first has asked for `work`, without holding up the loop."""
    stepping = _Stepping(steps, scheduler, perform_by)
    stepping.perform(work)
    return stepping.result


class _Stepping(Generic[T]):
    """Steps under way."""

    def __init__(
        self, steps: Steps[T], scheduler: Scheduler, perform_by: Callable[[Work], None]
    ) -> None:
        self._steps = steps
        self._scheduler = scheduler
        self._perform_by = perform_by
        self.result: Pending[T] = Pending()

    def perform(self, work: Work | None) -> None:
        if work is None:
            self._scheduler.call_soon(self._advance)
        else:
            job = partial(self._perform_by, work)
            self._scheduler.run(job).add_done_callback(self._worked)

    def _worked(self, done: Pending[None]) -> None:
        error = done.error()
        if error is None:
            self._advance()
        else:
            self._steps.close()
            self.result.fail(error)

    def _advance(self) -> None:
        try:
            work = next(self._steps)
        except StopIteration as stop:
            self.result.complete(stop.value)
        except Exception as error:
            self.result.fail(error)
        else:
            self.perform(work)
