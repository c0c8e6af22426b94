"""From what the runtime gives to what an API handler returns: an answer, or a Pending of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kwire.pending import Pending
from kwire.protocol.errors import KafkaError

# A response, or a Pending of one.
Answer = Any


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

    if pending.done:
        return answer(pending)
    converted: Pending[Any] = Pending(on_cancel=pending.cancel)  # type: ignore[arg-type]

    def finish(done: Pending[Any]) -> None:
        try:
            converted.complete(answer(done))
        except Exception as error:
            converted.fail(error)

    pending.add_done_callback(finish)
    return converted


def gather(pendings: Sequence[Pending[Any]], combine: Callable[[list[Any]], Any]) -> Answer:
    """`combine` of all results in order, a KafkaError standing for the result that failed."""
    left = sum(not pending.done for pending in pendings)

    def answer() -> Any:
        return combine([x.error() or x.result() for x in pendings])

    if not left:
        return answer()

    def cancel() -> None:
        for pending in pendings:
            pending.cancel()

    combined: Pending[Any] = Pending(on_cancel=cancel)

    def count(_: Pending[Any]) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            try:
                combined.complete(answer())
            except Exception as error:
                combined.fail(error)

    for pending in pendings:
        if not pending.done:
            pending.add_done_callback(count)
    return combined
