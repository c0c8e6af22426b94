"""What each principal uses: bytes in, bytes out, bytes it had stored. For sharing out costs.

`PrincipalUsage` is a response hook: whoever shows the numbers attaches it with
`RequestSteps.set_observers`. Where nobody does, nothing is counted and requests stay plain.
"""

from __future__ import annotations

from kwire.protocol.api_keys import ApiKey
from kwire.server.arrival import Arrival
from kwire.server.response import Answered

PRINCIPALS_MAX = 10_000
OTHERS = "others"
"""Stands for all principals beyond so many."""


class Usage:
    """Of one principal, since it was first seen. Sizes are those of requests and responses with
    their headers; `stored_bytes` are those of Produces whose batches were all appended, or that
    want no answer."""

    __slots__ = ("in_bytes", "out_bytes", "requests", "stored_bytes")

    def __init__(self) -> None:
        self.requests = 0
        self.in_bytes = 0
        self.out_bytes = 0
        self.stored_bytes = 0


class PrincipalUsage:
    """See the module. `by_principal` only grows: a principal's numbers never fall."""

    def __init__(self) -> None:
        self.by_principal: dict[str, Usage] = {}

    def __call__(self, arrival: Arrival, answered: Answered) -> None:
        """See ResponseHook."""
        usage = self._of(arrival.principal)
        usage.requests += 1
        usage.in_bytes += arrival.request_bytes
        usage.out_bytes += answered.response_bytes
        if arrival.api_key == ApiKey.PRODUCE and not any(answered.errors):
            usage.stored_bytes += arrival.request_bytes

    def _of(self, principal: str) -> Usage:
        usage = self.by_principal.get(principal)
        if usage is None:
            if len(self.by_principal) >= PRINCIPALS_MAX:
                principal = OTHERS
            usage = self.by_principal.setdefault(principal, Usage())
        return usage
