"""What principals use is counted for each, and nobody makes the table grow forever."""

from __future__ import annotations

from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode
from kwire.server.arrival import Arrival
from kwire.server.response import Answered
from kwire.server.usage import OTHERS, PRINCIPALS_MAX, PrincipalUsage


def arrival(api: ApiKey, principal: str, size: int) -> Arrival:
    return Arrival(api, 9, principal, "app", "/192.0.2.1", "OUTSIDE", size, 1.0)


def answered(size: int, *codes: int) -> Answered:
    return Answered(dict.fromkeys(codes, 1), size, 0, 1.0, 1.0)


def test_each_principal_has_its_own_numbers() -> None:
    usage = PrincipalUsage()
    usage(arrival(ApiKey.PRODUCE, "User:a", 500), answered(60, ErrorCode.NONE))
    usage(arrival(ApiKey.PRODUCE, "User:a", 300), answered(0))
    usage(arrival(ApiKey.PRODUCE, "User:a", 200), answered(60, ErrorCode.NONE, 3))
    usage(arrival(ApiKey.FETCH, "User:b", 40), answered(9000, ErrorCode.NONE))
    a, b = usage.by_principal["User:a"], usage.by_principal["User:b"]
    assert (a.requests, a.in_bytes, a.out_bytes, a.stored_bytes) == (3, 1000, 120, 800)
    assert (b.requests, b.in_bytes, b.out_bytes, b.stored_bytes) == (1, 40, 9000, 0)


def test_beyond_so_many_principals_they_are_counted_together() -> None:
    usage = PrincipalUsage()
    for number in range(PRINCIPALS_MAX + 5):
        usage(arrival(ApiKey.FETCH, f"User:{number}", 1), answered(1))
    assert len(usage.by_principal) == PRINCIPALS_MAX + 1
    assert usage.by_principal[OTHERS].requests == 5
