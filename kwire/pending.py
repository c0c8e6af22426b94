"""A result that comes later, without a task: what handlers, coordinators and the controller return.

Unlike `asyncio.Future`, callbacks run at once, inside `complete` and in the order they were
added, so that the order of effects is the order of causes and a simulation replays it exactly. An
error is kept without the frames that it was raised in, and raised as a copy (`kept_errors`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

from kwire.kept_errors import anew, kept

T = TypeVar("T")


class Pending(Generic[T]):
    """One result to come; completed, failed or cancelled at most once, later calls do nothing.

    `complete`, `fail` and `cancel` return whether they were the first. A callback receives this
    object and reads `result()`, which raises the error of `fail`. `on_cancel` is what frees the
    resources of whoever would have completed it (a deadline, a timer); it runs only when
    the waiting side cancels.
    """

    __slots__ = ("_callbacks", "_error", "_on_cancel", "_result", "cancelled", "done")

    def __init__(self, on_cancel: Callable[[], object] | None = None) -> None:
        self.done = False
        self.cancelled = False
        self._result: T | None = None
        self._error: Exception | None = None
        self._callbacks: list[Callable[[Pending[T]], object]] = []
        self._on_cancel = on_cancel

    @classmethod
    def completed(cls, result: T) -> Pending[T]:
        """A Pending that already has its result."""
        pending: Pending[T] = cls()
        pending.complete(result)
        return pending

    @classmethod
    def failed(cls, error: Exception) -> Pending[T]:
        """A Pending that already has failed."""
        pending: Pending[T] = cls()
        pending.fail(error)
        return pending

    def complete(self, result: T) -> bool:
        if self.done:
            return False
        self._result = result
        self.done = True  # as `_finish`: a call less for what is usual
        self._on_cancel = None
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)
        return True

    def fail(self, error: Exception) -> bool:
        if self.done:
            return False
        self._error = kept(error)
        self._finish()
        return True

    def cancel(self) -> bool:
        """The waiting side no longer wants the result: no callback will run."""
        if self.done:
            return False
        self.done = self.cancelled = True
        self._callbacks.clear()
        on_cancel, self._on_cancel = self._on_cancel, None
        if on_cancel is not None:
            on_cancel()
        return True

    def set_on_cancel(self, on_cancel: Callable[[], object]) -> None:
        """Replace what runs when the waiting side cancels; does nothing once done."""
        if not self.done:
            self._on_cancel = on_cancel

    def add_done_callback(self, callback: Callable[[Pending[T]], object]) -> None:
        """Run `callback(self)` at completion or failure; at once when already done."""
        if not self.done:
            self._callbacks.append(callback)
        elif not self.cancelled:
            callback(self)

    def error(self) -> Exception | None:
        return self._error

    def result(self) -> T:
        """The result; raises the error of `fail`. Only for one that is done and not cancelled."""
        if self._error is not None:
            raise anew(self._error)
        if not self.done or self.cancelled:
            raise AssertionError("result() of a Pending that has none")
        return self._result  # type: ignore[return-value]

    def _finish(self) -> None:
        self.done = True
        self._on_cancel = None
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)


U = TypeVar("U")


Answer: TypeAlias = T | Pending[T]
"""What a handler returns: its response, or one to come."""


def as_pending(answer: Answer[T]) -> Pending[T]:
    """An answer as a Pending, done if it is there already."""
    return answer if isinstance(answer, Pending) else Pending.completed(answer)


def after(pending: Pending[T], transform: Callable[[Pending[T]], U]) -> Pending[U]:
    """`transform(pending)` once it is done, as a Pending; cancelling it cancels `pending`.

    `transform` reads `result()` or `error()`; a KafkaError or other exception that it raises
    fails the returned Pending.
    """
    outcome: Pending[U] = Pending(pending.cancel)

    def settle(done: Pending[T]) -> None:
        try:
            result = transform(done)
        except Exception as error:
            outcome.fail(error)
        else:
            outcome.complete(result)

    pending.add_done_callback(settle)
    return outcome


def then(pending: Pending[T], follow: Callable[[Pending[T]], Answer[U]]) -> Pending[U]:
    """As `after`, where what is to be done then may itself take a while."""
    outcome: Pending[U] = Pending(pending.cancel)

    def settle(done: Pending[U]) -> None:
        error = done.error()
        if error is not None:
            outcome.fail(error)
        else:
            outcome.complete(done.result())

    def begin(done: Pending[T]) -> None:
        try:
            answer = follow(done)
        except Exception as error:
            outcome.fail(error)
            return
        following = as_pending(answer)
        outcome.set_on_cancel(following.cancel)
        following.add_done_callback(settle)

    pending.add_done_callback(begin)
    return outcome


def gather(pendings: list[Pending[T]]) -> Pending[list[Pending[T]]]:
    """All of `pendings`, in their order, once every one is done (or failed)."""
    outcome: Pending[list[Pending[T]]] = Pending(lambda: _cancel_all(pendings))
    open_count = len(pendings)

    def settle(_: Pending[T]) -> None:
        nonlocal open_count
        open_count -= 1
        if open_count == 0:
            outcome.complete(pendings)

    if not pendings:
        outcome.complete(pendings)
    for pending in pendings:
        pending.add_done_callback(settle)
    return outcome


def settle_all(waiting: list[Pending[None]], error: Exception | None) -> None:
    """Complete all of them, or fail them with the error."""
    for pending in waiting:
        if error is None:
            pending.complete(None)
        else:
            pending.fail(error)


def _cancel_all(pendings: list[Pending[T]]) -> None:
    for pending in pendings:
        pending.cancel()
