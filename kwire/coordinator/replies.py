"""From what the runtime gives to what an API handler returns: an answer, or a Pending of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kwire import pending as pendings_module
from kwire.pending import Answer, Pending, after
from kwire.protocol.errors import KafkaError

T = TypeVar("T")
U = TypeVar("U")


class Reply(Pending[T]):
    """A Pending of a response, for `CoordinatorRuntime.write`: a KafkaError that it fails with
    becomes the response that says so."""

    __slots__ = ("_on_error",)

    def __init__(self, on_error: Callable[[KafkaError], T]) -> None:
        super().__init__()
        self._on_error = on_error

    def fail(self, error: Exception) -> bool:
        if isinstance(error, KafkaError) and not self.done:
            return self.complete(self._on_error(error))
        return super().fail(error)


def convert(pending: Pending[T], on_error: Callable[[KafkaError], T]) -> Answer[T]:
    """The result of `pending`, a KafkaError turned into a response by `on_error`; without a
    Pending if it is there already. Cancelling the answer cancels `pending`."""

    def answer(done: Pending[T]) -> T:
        error = done.error()
        return on_error(error) if isinstance(error, KafkaError) else done.result()

    return answer(pending) if pending.done else after(pending, answer)


def gather(pendings: list[Pending[T]], combine: Callable[[list[T | KafkaError]], U]) -> Answer[U]:
    """`combine` of all results in order, a KafkaError standing for the result that failed."""

    def answer(done: Pending[list[Pending[T]]]) -> U:
        results: list[T | KafkaError] = []
        for pending in done.result():
            error = pending.error()
            results.append(error if isinstance(error, KafkaError) else pending.result())
        return combine(results)

    return convert_all(pendings_module.gather(pendings), answer)


def collect(pendings: list[Pending[T]], combine: Callable[[list[T]], U]) -> Answer[U]:
    """`combine` of all results in order; fails with the first error."""
    return convert_all(
        pendings_module.gather(pendings), lambda done: combine([x.result() for x in done.result()])
    )


def convert_all(pending: Pending[T], answer: Callable[[Pending[T]], U]) -> Answer[U]:
    """`answer(pending)` now if it is done, else a Pending of it."""
    return answer(pending) if pending.done else after(pending, answer)
