"""Delegation tokens (KIP-48): creation, renewal, expiry, sweeping."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

from kwire.protocol import messages as m
from tests.support.controllers import ControllerBench, make_config

DAY_MS = 86_400_000


def _bench(**changes: Any) -> ControllerBench:
    return ControllerBench(config=make_config(token_secret="cluster-secret", **changes))


def _create(bench: ControllerBench, principal: str = "User:ann", **fields: Any) -> Any:
    shape = m.CreateDelegationTokenRequest
    renewers = [
        shape.CreatableRenewers(principal_type=kind, principal_name=name)
        for kind, name in fields.pop("renewers", ())
    ]
    request = shape(renewers=renewers, **{"max_lifetime_ms": -1, **fields})
    return bench.call(request, principal=principal)


def _renew(bench: ControllerBench, token: bytes, principal: str, period_ms: int = -1) -> Any:
    request = m.RenewDelegationTokenRequest(hmac=token, renew_period_ms=period_ms)
    return bench.call(request, principal=principal)


def _expire(bench: ControllerBench, token: bytes, principal: str, period_ms: int = -1) -> Any:
    request = m.ExpireDelegationTokenRequest(hmac=token, expiry_time_period_ms=period_ms)
    return bench.call(request, principal=principal)


def test_a_token_is_made_for_who_asks() -> None:
    bench = _bench()
    answer = _create(bench, renewers=[("User", "bob")])
    assert answer.error_code == 0
    assert (answer.principal_type, answer.principal_name) == ("User", "ann")
    assert answer.token_requester_principal_name == "ann"
    assert answer.max_timestamp_ms == bench.now_ms + 7 * DAY_MS
    assert answer.expiry_timestamp_ms == bench.now_ms + DAY_MS
    wanted = hmac.new(b"cluster-secret", answer.token_id.encode(), hashlib.sha512).digest()
    assert answer.hmac == wanted
    token = bench.image.delegation_tokens[answer.token_id]
    assert (token.owner, token.requester, token.renewers) == ("User:ann", "User:ann", ("User:bob",))


def test_a_short_life_bounds_everything() -> None:
    bench = _bench()
    answer = _create(bench, max_lifetime_ms=5000)
    assert answer.max_timestamp_ms == answer.expiry_timestamp_ms == bench.now_ms + 5000


def test_a_token_for_another_needs_the_right_to_make_it() -> None:
    bench = _bench()
    asked: list[tuple[int, int, str]] = []

    def authorize(operation: int, resource_type: int, name: str) -> bool:
        asked.append((operation, resource_type, name))
        return False

    request = m.CreateDelegationTokenRequest(
        owner_principal_type="User", owner_principal_name="bob", renewers=[], max_lifetime_ms=-1
    )
    answer = bench.call(request, principal="User:ann", authorize=authorize)
    assert answer.error_code == 65
    assert asked == [(13, 7, "User:bob")]
    answer = bench.call(request, principal="User:ann")
    assert answer.error_code == 0
    token = bench.image.delegation_tokens[answer.token_id]
    assert (token.owner, token.requester) == ("User:bob", "User:ann")


def test_refusals() -> None:
    bench = _bench()
    assert _create(bench, renewers=[("Group", "g")]).error_code == 67
    request = m.CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1)
    assert bench.call(request, token_authenticated=True).error_code == 64
    assert bench.call(request, forwarded=False).error_code == 64
    assert bench.call(request, forwarded=False, security_protocol="SASL_PLAINTEXT").error_code == 0
    assert _create(ControllerBench()).error_code == 61, "no secret"
    old = ControllerBench(config=make_config(token_secret="s"), features={"metadata.version": 13})
    assert _create(old).error_code == 35


def test_owner_and_renewers_may_renew() -> None:
    bench = _bench()
    token = _create(bench, renewers=[("User", "bob")]).hmac
    bench.now_ms += 3600_000
    assert _renew(bench, token, "User:eve").error_code == 63
    assert _renew(bench, b"nonsense", "User:ann").error_code == 62
    answer = _renew(bench, token, "User:bob")
    assert (answer.error_code, answer.expiry_timestamp_ms) == (0, bench.now_ms + DAY_MS)
    answer = _renew(bench, token, "User:ann", 1000)
    assert answer.expiry_timestamp_ms == bench.now_ms + 1000
    bench.now_ms += 2000
    assert _renew(bench, token, "User:ann").error_code == 66


def test_a_token_can_be_ended() -> None:
    bench = _bench()
    token = _create(bench).hmac
    assert _expire(bench, token, "User:eve").error_code == 63
    answer = _expire(bench, token, "User:ann", 500)
    assert (answer.error_code, answer.expiry_timestamp_ms) == (0, bench.now_ms + 500)
    bench.now_ms += 501
    assert _expire(bench, token, "User:ann", 500).error_code == 66
    answer = _expire(bench, token, "User:ann", -1)
    assert (answer.error_code, answer.expiry_timestamp_ms) == (0, bench.now_ms)
    assert bench.image.delegation_tokens == {}
    assert _expire(bench, token, "User:ann").error_code == 62


def test_tokens_whose_time_is_over_are_removed() -> None:
    bench = _bench()
    _create(bench, max_lifetime_ms=5000)
    kept = _create(bench).token_id
    bench.expire(bench.now_ms + 3_600_000)
    assert list(bench.image.delegation_tokens) == [kept]
