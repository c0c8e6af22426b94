"""The arrival step: what every request passes once its header is read, before it is decoded.

Rules that concern every API stand here, not in each handler: whether the client has authenticated,
and what is attached to `RequestSteps.arrival_hooks` (fault rules, audit, metrics). They see plain
values only, so that a request which never becomes an object can pass them too. A connection whose
`plain_allowed` is set goes past this step (`request_steps.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode

AUTHENTICATION_APIS = (ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS, ApiKey.SASL_AUTHENTICATE)
"""What a client may ask that has not authenticated yet."""


class Arrival(NamedTuple):
    """One request as it came. Time is the loop's; a size is without the four bytes of a frame."""

    api_key: int
    api_version: int
    principal: str
    client_id: str | None
    client_host: str
    listener_name: str
    request_bytes: int
    arrived_s: float


class Refusal(NamedTuple):
    """A request that is not executed: it is answered with `code` in its API's shape.

    Without a code the connection is closed, after the replies in front.
    """

    code: ErrorCode | None
    reason: str


ArrivalHook: TypeAlias = Callable[[Arrival], Refusal | None]
"""Sees every request that is not plain; refuses it, or lets it pass with None."""


def arrive(
    arrival: Arrival, is_authenticated: bool, hooks: tuple[ArrivalHook, ...]
) -> Refusal | None:
    """None when the request is to be executed; the first refusal is the answer."""
    if not is_authenticated and arrival.api_key not in AUTHENTICATION_APIS:
        return Refusal(None, f"API {arrival.api_key} before authentication")
    for hook in hooks:
        refusal = hook(arrival)
        if refusal is not None:
            return refusal
    return None
