"""From what the runtime gives to what an API handler returns: an answer, or a Pending of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwire import pending as pendings_module
from kwire.pending import Pending, after
from kwire.protocol.errors import KafkaError

# A response, or a Pending of one.
Answer = Any


class Reply(Pending[Any]):
    """A Pending of a response, for `CoordinatorRuntime.write`: a KafkaError that it fails with
    becomes the response that says so."""

    __slots__ = ("_on_error",)

    def __init__(self, on_error: Callable[[KafkaError], Any]) -> None:
        super().__init__()
        self._on_error = on_error

    def fail(self, error: Exception) -> bool:
        if isinstance(error, KafkaError) and not self.done:
            return self.complete(self._on_error(error))
        return super().fail(error)


def convert(
    pending: Pending[Any],
    on_error: Callable[[KafkaError], Any],
    on_result: Callable[[Any], Any] | None = None,
) -> Answer:
    """The result of `pending`, a KafkaError turned into a response by `on_error`; without a
    Pending if it is there already. Cancelling the answer cancels `pending`."""

    def answer(done: Pending[Any]) -> Any:
        error = done.error()
        if isinstance(error, KafkaError):
            return on_error(error)
        result = done.result()
        return result if on_result is None else on_result(result)

    return answer(pending) if pending.done else after(pending, answer)


def gather(pendings: list[Pending[Any]], combine: Callable[[list[Any]], Any]) -> Answer:
    """`combine` of all results in order, a KafkaError standing for the result that failed."""

    def answer(done: Pending[Any]) -> Any:
        results = []
        for pending in done.result():
            error = pending.error()
            results.append(error if isinstance(error, KafkaError) else pending.result())
        return combine(results)

    return convert_all(pendings_module.gather(pendings), answer)


def convert_all(pending: Pending[Any], answer: Callable[[Pending[Any]], Any]) -> Answer:
    """`answer(pending)` now if it is done, else a Pending of it."""
    return answer(pending) if pending.done else after(pending, answer)
