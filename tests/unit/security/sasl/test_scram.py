"""SCRAM, the server's side: what proves a password, and what does not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.clock import SeededRandom
from kwire.security.sasl.mechanisms import AuthenticationFailed, Identity
from kwire.security.sasl.scram import Known, ScramParts, ScramServer, derived
from tests.wire.scram import Scram

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def server(
    mechanism: str = MECHANISMS[0], iterations: int = 4096, secret: bytes = b"s"
) -> ScramServer:
    credential = derived(mechanism, b"hunter2", b"salt", iterations)

    def users(name: str, wall_ms: int) -> Known | None:
        return Known(f"User:{name}", credential) if name in ("alice", "a,b=c") else None

    def tokens(token_id: str, wall_ms: int) -> Known | None:
        return Known("User:owner", credential, 1000) if token_id == "id" else None

    parts = ScramParts(mechanism, users, tokens, SeededRandom(1), secret)
    assert "hunter2" not in repr(parts)
    return ScramServer(parts)


def log_in(client: Scram, machine: ScramServer, **final: object) -> Identity | None:
    first = machine.evaluate(client.first(), 0).token
    answer = machine.evaluate(client.final(first, **final), 0)
    client.verify(answer.token)
    return answer.identity


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", ["alice", "a,b=c"])
def test_the_right_password(mechanism: str, name: str) -> None:
    identity = log_in(Scram(mechanism, name, "hunter2"), server(mechanism))
    assert identity == Identity(f"User:{name}")


def test_a_wrong_password_and_an_unknown_user_are_told_apart_by_nobody() -> None:
    messages = []
    for name, password in (("alice", "wrong"), ("nobody", "hunter2")):
        machine, client = server(), Scram(MECHANISMS[0], name, password)
        first = machine.evaluate(client.first(), 0).token
        assert re.fullmatch(rb"r=[!-~]+,s=[A-Za-z0-9+/=]+,i=4096", first)
        with pytest.raises(AuthenticationFailed) as error:
            machine.evaluate(client.final(first), 0)
        messages.append(error.value.message)
    assert messages == [None, None]


def test_an_unknown_user_has_one_salt() -> None:
    firsts = [
        Scram(MECHANISMS[0], "nobody", "x"),
        Scram(MECHANISMS[0], "nobody", "x"),
        Scram(MECHANISMS[0], "somebody", "x"),
    ]
    salts = [server().evaluate(client.first(), 0).token.split(b",")[1] for client in firsts]
    assert salts[0] == salts[1] != salts[2]
    assert server(secret=b"t").evaluate(firsts[0].first(), 0).token.split(b",")[1] != salts[0]


@pytest.mark.parametrize("nonce", ["", "x", "client", "client+server+x"])
def test_cve_2024_56128_the_nonce_has_to_be_the_one_of_this_exchange(nonce: str) -> None:
    """The proof is good for the nonce that was sent: whoever recorded an exchange has such."""
    client, machine = Scram(MECHANISMS[0], "alice", "hunter2"), server()
    first = machine.evaluate(client.first(), 0).token
    ours = first.decode().split(",")[0][2:]
    sent = nonce.replace("client", client.nonce).replace("+server", ours[len(client.nonce) :])
    with pytest.raises(AuthenticationFailed):
        machine.evaluate(client.final(first, nonce=sent), 0)


def test_a_recorded_exchange_is_no_use() -> None:
    client, machine = Scram(MECHANISMS[0], "alice", "hunter2"), server()
    first = machine.evaluate(client.first(), 0).token
    final = client.final(first)
    machine.evaluate(final, 0)
    again = ScramServer(machine._parts)
    again.evaluate(client.first(), 0)
    with pytest.raises(AuthenticationFailed):
        again.evaluate(final, 0)


def test_few_iterations_are_refused() -> None:
    with pytest.raises(AuthenticationFailed):
        log_in(Scram(MECHANISMS[0], "alice", "hunter2"), server(iterations=4095))


def test_a_token_is_looked_up_by_its_id_and_has_an_end() -> None:
    def exchange(wall_ms: int) -> Identity | None:
        machine, client = server(), Scram(MECHANISMS[0], "id", "hunter2")
        first = client.first() + b",tokenauth=true"
        client.first_bare += ",tokenauth=true"
        reply = machine.evaluate(first, 0).token
        return machine.evaluate(client.final(reply), wall_ms).identity

    assert exchange(999) == Identity("User:owner", True, 1000)
    with pytest.raises(AuthenticationFailed):
        exchange(1000)


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"garbage",
        b"y,,n=alice,r=abc",
        b"p=tls-unique,,n=alice,r=abc",
        b"n,,n=,r=abc",
        b"n,,n=alice,r=",
        b"n,,n=al=2Xice,r=abc",
        b"n,,n=alice,r=a c",
        b"n,,n=alice,r=abc,x",
        b"n,,n=alice,r=abc\xff",
    ],
)
def test_what_is_no_first_message(first: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        server().evaluate(first, 0)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes_are_refused_or_answered(first: bytes, final: bytes) -> None:
    machine = server()
    try:
        machine.evaluate(first, 0)
        machine.evaluate(final, 0)
    except AuthenticationFailed:
        return
    raise AssertionError("nobody was proved to be there")
