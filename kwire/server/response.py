"""The response step: what every response passes between its handler and the client.

    throttle_ms     how long the client has to wait by its quotas: told in the response, and kept
                    to by the connection, which reads nothing for so long (KIP-219)
    responded       whoever counts or records is told what became of the request

Like the arrival step it knows plain values only. Replies of requests that arrived as plain ones do
not pass it (`request_steps.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from kwire.protocol.structs import Struct
from kwire.server.arrival import Arrival


class Answered(NamedTuple):
    """What became of a request.

    `errors` counts the error codes in the response, 0 among them. `response_bytes` is the size of
    the reply with its header, 0 where none is sent. The handler returned at `executed_s`; the
    response was there, maybe later, at `answered_s`.
    """

    errors: Mapping[int, int]
    response_bytes: int
    throttle_ms: int
    executed_s: float
    answered_s: float


ThrottleHook: TypeAlias = Callable[[Arrival, int, float], int]
"""(request, size of its response, now in seconds) -> how many ms its client has to wait."""
ResponseHook: TypeAlias = Callable[[Arrival, Answered], None]
"""Is told of every response that is not plain."""


def throttle_ms(
    arrival: Arrival, response_bytes: int, now_s: float, hooks: tuple[ThrottleHook, ...]
) -> int:
    """The longest of the waits that the client's quotas ask for."""
    return max((hook(arrival, response_bytes, now_s) for hook in hooks), default=0)


def responded(arrival: Arrival, answered: Answered, hooks: tuple[ResponseHook, ...]) -> None:
    """Tell everybody who watches."""
    for hook in hooks:
        hook(arrival, answered)


def error_counts(response: Struct) -> dict[int, int]:
    """How often each error code stands in a response, the structs in it included."""
    counts: dict[int, int] = {}
    ahead = [response]
    while ahead:
        struct = ahead.pop()
        for name in struct.FIELDS:
            value = getattr(struct, name)
            if name == "error_code":
                counts[int(value)] = counts.get(int(value), 0) + 1
            elif isinstance(value, Struct):
                ahead.append(value)
            elif isinstance(value, list) and value and isinstance(value[0], Struct):
                ahead += value
    return counts
