"""The response step: whoever counts or records is told what became of a request.

How long a client has to wait by its quotas stands in `watched_requests.py`. Like the arrival step
this knows plain values only. Replies of requests that arrived as plain ones do
not pass it (`request_steps.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from kwire.protocol.structs import Struct, Tagged
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


ResponseHook: TypeAlias = Callable[[Arrival, Answered], None]
"""Is told of every response that is not plain."""


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
        values = [(name, getattr(struct, name)) for name in _untagged(type(struct))]
        if struct._tagged:
            values += struct._tagged.items()
        for name, value in values:
            if name == "error_code":
                counts[int(value)] = counts.get(int(value), 0) + 1
            elif isinstance(value, Struct):
                ahead.append(value)
            elif isinstance(value, list) and value and isinstance(value[0], Struct):
                ahead += value
    return counts


_untagged_fields: dict[type[Struct], tuple[str, ...]] = {}


def _untagged(struct: type[Struct]) -> tuple[str, ...]:
    """The fields that are always there. To ask for one that is tagged makes its default."""
    known = _untagged_fields.get(struct)
    if known is None:
        known = _untagged_fields[struct] = tuple(
            name for name in struct.FIELDS if not isinstance(getattr(struct, name, None), Tagged)
        )
    return known
