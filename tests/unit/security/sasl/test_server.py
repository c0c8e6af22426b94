"""The authentication of one connection: any order of requests, and what each is answered."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.structs import Message
from kwire.security.sasl.mechanisms import Identity
from kwire.security.sasl.plain import Passwords, PlainServer
from kwire.security.sasl.server import AuthenticationCounts, SaslServer, SaslSettings, Step
from kwire.security.sasl.states import State
from tests.support.login_frames import (
    METADATA,
    PRODUCE,
    RIGHT,
    TOO_HIGH,
    UNNAMED,
    VERSIONS,
    WRONG,
    TwoSteps,
    handshake,
    token,
)

PASSWORDS = Passwords({"alice": "hunter2", "bob": "hunter4"})


def server(session_ms: int = 0) -> SaslServer:
    mechanisms = {"PLAIN": partial(PlainServer, PASSWORDS), "TWO": TwoSteps}
    settings = SaslSettings(mechanisms, dict.fromkeys(mechanisms, session_ms))
    assert "hunter" not in repr(settings) + repr(PASSWORDS)
    return SaslServer(settings, error_answer)


def error_answer(key: int, version: int, body: memoryview, error: KafkaError) -> Message | None:
    if key != ApiKey.METADATA:
        return None
    return m.MetadataResponse(topics=[])


def answer(step: Step, key: ApiKey, version: int) -> Message:
    data = memoryview(b"".join(bytes(part) for part in step.reply)[4:])
    correlation_id, response = frame.decode_response(key, version, data)
    assert correlation_id == 7
    return response


def log_in(machine: SaslServer, data: bytes = RIGHT, wall_ms: int = 0) -> Step:
    machine.receive(handshake(), wall_ms)
    return machine.receive(token(data), wall_ms)


def test_a_password_and_who_is_there_from_then_on() -> None:
    machine = server()
    assert machine.receive(VERSIONS, 0).executes
    first = machine.receive(handshake(), 0)
    assert answer(first, ApiKey.SASL_HANDSHAKE, 1).mechanisms == ["PLAIN", "TWO"]
    step = machine.receive(token(RIGHT), 0)
    assert step.identity == Identity("User:alice")
    assert answer(step, ApiKey.SASL_AUTHENTICATE, 2).error_code == ErrorCode.NONE
    assert machine.is_complete
    assert not machine.begins_anew(ApiKey.SASL_HANDSHAKE)


def test_raw_tokens_have_no_header_and_no_error() -> None:
    machine = server()
    machine.receive(handshake(version=0), 0)
    assert machine.receive(memoryview(RIGHT), 0) == Step([b"\0\0\0\0"], identity=machine.identity)
    machine = server()
    machine.receive(handshake("TWO", 0), 0)
    assert machine.receive(memoryview(b"x"), 0).reply == [b"\0\0\0\5go on"]
    machine = server()
    machine.receive(handshake(version=0), 0)
    step = machine.receive(memoryview(WRONG), 0)
    assert step.failure
    assert not step.reply
    assert step.is_delayed


@pytest.mark.parametrize(
    ("frames", "is_answered"),
    [
        ([METADATA], False),
        ([PRODUCE], False),
        ([token(RIGHT)], False),
        ([VERSIONS, VERSIONS], False),
        ([memoryview(b"\x60\x01\x02")], False),
        ([memoryview(b"")], False),
        ([handshake("plain")], True),
        ([handshake(""), handshake()], True),
        ([handshake(), METADATA], True),
        ([handshake(), PRODUCE], False),
        ([handshake(), token(WRONG)], True),
        ([handshake(), token(WRONG), token(RIGHT)], True),
        ([handshake(), memoryview(b"\0\x24\0\x63\0\0\0\7\xff\xff\0\0")], False),
    ],
)
def test_what_ends_a_connection(frames: list[memoryview], is_answered: bool) -> None:
    machine = server()
    steps = [machine.receive(each, 0) for each in frames]
    step = next(step for step in steps if step.failure)
    assert bool(step.reply) == step.is_delayed == is_answered
    assert machine.state is State.FAILED
    assert machine.identity is None


def test_versions_that_are_refused_may_be_asked_for_again() -> None:
    machine = server()
    for refused in (UNNAMED, TOO_HIGH):
        assert machine.receive(refused, 0).executes
    assert machine.receive(VERSIONS, 0).executes
    assert machine.receive(VERSIONS, 0).failure


FRAMES = {
    "versions": VERSIONS,
    "unnamed": UNNAMED,
    "too high": TOO_HIGH,
    "metadata": METADATA,
    "produce": PRODUCE,
    "handshake": handshake(),
    "raw handshake": handshake(version=0),
    "two": handshake("TWO"),
    "unknown mechanism": handshake("FOO"),
    "wrong": token(WRONG),
    "raw wrong": memoryview(WRONG),
    "empty": token(b""),
    "nothing": memoryview(b""),
    "garbage": memoryview(b"\x7f\xff\0\0"),
}


@given(st.lists(st.sampled_from(sorted(FRAMES)), max_size=12))
def test_no_order_of_requests_gets_in_without_the_password(names: list[str]) -> None:
    machine = server()
    is_over, agreed = False, ""
    for name in names:
        step = machine.receive(FRAMES[name], 0)
        if is_over:
            assert step.failure
            assert not step.reply
            assert not step.executes
        is_over = is_over or step.failure is not None
        agreed = name if "handshake" in name or name == "two" else agreed
        assert not step.executes or name in ("versions", "unnamed", "too high")
        if agreed != "two":  # which asks for no password
            assert step.identity is None
            assert not machine.is_complete


@given(st.binary(max_size=64), st.booleans())
def test_any_bytes_are_answered_or_end_it(data: bytes, is_in_exchange: bool) -> None:
    machine = server()
    if is_in_exchange:
        machine.receive(handshake(), 0)
    step = machine.receive(memoryview(data), 0)
    assert step.identity is None
    assert step.failure or step.executes or step.reply


# -- sessions that end (KIP-368)


def test_a_session_has_an_end_and_may_be_renewed() -> None:
    machine = server(session_ms=3000)
    step = log_in(machine, wall_ms=1000)
    assert answer(step, ApiKey.SASL_AUTHENTICATE, 2).session_lifetime_ms == 3000
    assert not machine.is_expired(3999)
    assert machine.is_expired(4000)
    assert machine.begins_anew(ApiKey.SASL_HANDSHAKE)
    assert not machine.begins_anew(ApiKey.FETCH)
    log_in(machine, wall_ms=3000)
    assert not machine.is_expired(5999)
    assert machine.is_expired(6000)


def test_what_proved_it_ends_earlier_than_the_session() -> None:
    machine = server(session_ms=60_000)
    machine.receive(handshake("TWO"), 1000)
    machine.receive(token(b"a"), 1000)
    step = machine.receive(token(b"b"), 1000)
    assert answer(step, ApiKey.SASL_AUTHENTICATE, 2).session_lifetime_ms == 4000
    assert machine.is_expired(5000)


def test_nobody_becomes_somebody_else() -> None:
    machine = server(session_ms=3000)
    log_in(machine)
    step = log_in(machine, b"\0bob\0hunter4")
    assert step.identity is None
    assert step.failure
    told = answer(step, ApiKey.SASL_AUTHENTICATE, 2)
    assert (told.error_code, told.error_message) == (
        58,
        "Cannot change principals during re-authentication from User.alice: User.bob",
    )


def test_the_mechanism_stays() -> None:
    machine = server(session_ms=3000)
    log_in(machine)
    assert not machine.receive(handshake("TWO"), 0).failure
    step = machine.receive(token(b"x"), 0)
    assert step.failure
    assert not step.reply


def test_a_wrong_password_at_the_second_time_ends_it() -> None:
    machine = server(session_ms=3000)
    log_in(machine)
    assert log_in(machine, WRONG).failure
    assert not machine.is_complete


def test_a_password_that_was_removed_does_not_authenticate_anew() -> None:
    machine = server(session_ms=3000)
    log_in(machine)
    log_in(machine)
    others = {"PLAIN": partial(PlainServer, Passwords({"bob": "hunter4"}))}
    machine.settings = SaslSettings(others, {"PLAIN": 3000})
    assert log_in(machine).failure


def test_what_is_not_of_authentication_has_to_wait_for_its_end() -> None:
    machine = server(session_ms=3000)
    log_in(machine)
    machine.receive(handshake(), 0)
    assert not machine.is_complete
    assert machine.receive(METADATA, 0).failure


def test_what_comes_of_authentications_is_counted() -> None:
    counts = AuthenticationCounts()
    for is_again, is_successful in ((False, True), (False, False), (True, True), (True, False)):
        counts.count(is_again, is_successful)
    found = (counts.successful, counts.failed, counts.successful_again, counts.failed_again)
    assert found == (1, 1, 1, 1)
