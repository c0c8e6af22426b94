"""What clients send that do not authenticate as they should, and what Kafka answers.

`run(bootstrap)` returns (label, answers); `tests/golden/data/sasl_answers.json.gz` holds what
Apache Kafka 4.4 gave, made by `python -m tests.golden.broker.sasl_dialogues HOST:PORT OUT` against
a single node with `PROPERTIES`. An answer is a list: what each request was answered, with nonces,
salts and signatures masked, and at the end whether the connection was closed.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any

from kwire.config.java_classes import UNSECURED_TOKENS
from tests.support.sasl import SCRAM_MODULE, USERS, jaas
from tests.wire import Closed, Conn
from tests.wire.scram import Scram

SHA = ("SCRAM-SHA-256", "SCRAM-SHA-512")
NAME = "listener.name.plaintext"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
PROPERTIES = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "connections.max.reauth.ms": "3600000",
    f"{NAME}.plain.sasl.jaas.config": jaas("PLAIN", "admin", USERS),
    f"{NAME}.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    f"{NAME}.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    f"{NAME}.oauthbearer.sasl.jaas.config": (
        f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="x";'
    ),
    f"{NAME}.oauthbearer.sasl.server.callback.handler.class": UNSECURED_TOKENS,
}
ALICE = b"\0alice\0alice-secret"
CLOSED_S = 1.0
TALKS = 16
WAIT_S = 30.0
METADATA = {"topics": [{"name": "x"}], "allow_auto_topic_creation": False}

Script = Callable[["Talk"], None]


class Talk:
    """One connection, and what was said on it."""

    def __init__(self, bootstrap: str, closed_s: float = CLOSED_S) -> None:
        self.client = Conn(bootstrap, timeout=WAIT_S)
        self.said: list[Any] = []
        self._closed_s = closed_s

    def handshake(self, mechanism: str, version: int = 1) -> None:
        answer = self.client.send("sasl_handshake", version, mechanism=mechanism)
        self.said.append(["handshake", answer.error_code, sorted(answer.mechanisms)])

    def token(self, data: bytes, version: int = 2) -> bytes:
        answer = self.client.send("sasl_authenticate", version, auth_bytes=data)
        session = getattr(answer, "session_lifetime", 0)
        self.said.append(
            [
                "token",
                answer.error_code,
                answer.error_message,
                masked(answer.auth_bytes),
                session > 0,
            ]
        )
        return bytes(answer.auth_bytes)

    def raw(self, data: bytes) -> bytes:
        self.client.send_frame(data)
        answer = bytes(self.client.recv_frame())
        self.said.append(["raw", masked(answer)])
        return answer

    def versions(self, name: str = "a") -> None:
        answer = self.client.send(
            "api_versions", 3, client_software_name=name, client_software_version="1"
        )
        self.said.append(["versions", answer.error_code])

    def metadata(self) -> None:
        answer = self.client.send("metadata", 9, METADATA)
        topics = [topic.error_code for topic in answer.topics]
        self.said.append(["metadata", len(answer.brokers), topics])

    def end(self) -> list[Any]:
        self.said.append(["closed", self.client.closed_within(self._closed_s)])
        self.client.close()
        return self.said


def masked(data: bytes) -> str:
    """A token without what is made anew each time."""
    text = re.sub(r"(r=)[^,]+,s=[^,]+", r"\1*,s=*", bytes(data).decode("latin-1"))
    return re.sub(r"^v=.*", "v=*", text)


# -- scripts


def plain(data: bytes, version: int = 2) -> Script:
    def script(talk: Talk) -> None:
        talk.handshake("PLAIN")
        talk.token(data, version)

    return script


def mechanism(name: str, version: int) -> Script:
    return lambda talk: talk.handshake(name, version)


def scram(
    name: str = SHA[0],
    user: str = "alice",
    password: str = "alice-secret",
    first: Callable[[bytes], bytes] = lambda token: token,
    final: Callable[[bytes], bytes] = lambda token: token,
    **spoilt: Any,
) -> Script:
    def script(talk: Talk) -> None:
        talk.handshake(name)
        client = Scram(name, user, password)
        challenge = talk.token(first(client.first()))
        if challenge:
            talk.token(final(client.final(challenge, **spoilt)))

    return script


def frame(data: bytes) -> Script:
    return lambda talk: talk.raw(data) and None


def sequence(*steps: Callable[[Talk], Any]) -> Script:
    def script(talk: Talk) -> None:
        for step in steps:
            step(talk)

    return script


def part(value: object) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def jws(claims: dict[str, Any] | None = None, header: object = None, signature: str = "") -> str:
    now = time.time()
    body = {"sub": "alice", "iat": now - 10, "exp": now + 600, **(claims or {})}
    body = {name: value for name, value in body.items() if value is not None}
    return f"{part({'alg': 'none'} if header is None else header)}.{part(body)}.{signature}"


def bearer(token: str, authzid: str = "", more: str = "", second: bytes = b"\x01") -> Script:
    return oauth(f"n,{authzid},\x01auth=Bearer {token}\x01{more}\x01".encode(), second)


def oauth(data: bytes, second: bytes = b"\x01") -> Script:
    def script(talk: Talk) -> None:
        talk.handshake("OAUTHBEARER")
        if talk.token(data):
            talk.token(second)

    return script


def handshake(talk: Talk) -> None:
    talk.handshake("PLAIN")


def alice(talk: Talk) -> None:
    talk.token(ALICE)


def scripts() -> Iterator[tuple[str, Script]]:
    """Label -> script."""
    for name in ("FOO", "plain", "", "GSSAPI"):
        for version in (0, 1):
            yield f"mechanism {name!r} v{version}", mechanism(name, version)
    for data in (
        *(ALICE, b"alice" + ALICE, b"bob" + ALICE, b"\0alice\0wrong", b"\0nobody\0x", b"\0\0x"),
        *(b"\0alice\0", b"", b"\0alice", b"a\0b\0c\0d", b"\xff\0\xff\0\xff", ALICE + b"\0"),
    ):
        yield f"plain {data!r}", plain(data)
    for version in (0, 1):
        yield f"plain v{version}", plain(ALICE, version)
    yield "two handshakes", sequence(handshake, handshake)
    yield "metadata in the place of a token", sequence(handshake, Talk.metadata)
    yield "versions in the place of a token", sequence(handshake, Talk.versions)
    yield "versions twice", sequence(Talk.versions, Talk.versions)
    yield (
        "versions refused, then twice",
        sequence(lambda talk: talk.versions("-"), Talk.versions, Talk.versions),
    )
    yield "versions, handshake, token", sequence(Talk.versions, handshake, alice, Talk.metadata)
    yield "metadata first", Talk.metadata
    yield "token first", alice
    for label, data in (
        ("raw right", ALICE),
        ("raw wrong", b"\0alice\0x"),
    ):
        yield label, sequence(mechanism("PLAIN", 0), frame(data))
    for label, data in (
        ("no header", b"\x60\x01\x02"),
        ("unknown API", b"\x7f\xff\0\0\0\0\0\1\xff\xff"),
        ("handshake v9", b"\0\x11\0\x09\0\0\0\1\xff\xff\0\5PLAIN"),
        ("versions v99", b"\0\x12\0\x63\0\0\0\1\xff\xff"),
    ):
        yield label, frame(data)
    yield "a second time", sequence(plain(ALICE), plain(ALICE), Talk.metadata)
    yield "a second time wrong", sequence(plain(ALICE), plain(b"\0alice\0x"))
    yield "a second time as another", sequence(plain(ALICE), plain(b"\0admin\0admin-secret"))
    yield "a second time by another mechanism", sequence(plain(ALICE), scram())
    yield "a second time, metadata between", sequence(plain(ALICE), handshake, Talk.metadata)
    yield "a token without a handshake", sequence(plain(ALICE), alice, Talk.metadata)
    yield from scram_scripts()
    yield from oauth_scripts()


def scram_scripts() -> Iterator[tuple[str, Script]]:
    for name in SHA:
        yield f"{name} right", scram(name)
        yield f"{name} wrong", scram(name, password="x")
    yield "scram unknown", scram(user="nobody")
    yield "scram other nonce", scram(nonce="abc")
    yield "scram spoilt proof", scram(spoil_proof=True)
    for data in (
        *(b"", b"garbage", b"y,,n=alice,r=abc", b"p=tls-unique,,n=alice,r=abc", b"n,,n=alice,r="),
        *(b"n,,n=al=2Xice,r=abc", b"n,a=bob,n=alice,r=abc"),
    ):
        yield f"scram first {data!r}", sequence(mechanism(SHA[0], 1), lambda t, d=data: t.token(d))
    yield "scram same id", scram(first=lambda token: token.replace(b"n,,", b"n,a=alice,"))
    yield "scram unknown token", scram(first=lambda token: token + b",tokenauth=true")
    yield "scram final garbage", scram(final=lambda token: b"garbage")
    yield "scram channel", scram(final=lambda token: token.replace(b"c=biws", b"c=eSws"))


def oauth_scripts() -> Iterator[tuple[str, Script]]:
    hour = 3600
    yield "token right", bearer(jws())
    yield "token, same id", bearer(jws(), "a=alice")
    yield "token, other id", bearer(jws(), "a=bob")
    yield "token with extension", bearer(jws(), more="traceId=1\x01")
    yield "token with auth twice", bearer(jws(), more="auth=1\x01")
    yield "token expired", bearer(jws({"exp": time.time() - hour}))
    yield "token of tomorrow", bearer(jws({"iat": time.time() + hour}))
    for label, token in (
        ("bad", "bad"),
        ("a.b.c", "a.b.c"),
        ("two parts", jws().removesuffix(".")),
        ("no exp", jws({"exp": None})),
        ("exp text", jws({"exp": "x"})),
        ("no sub", jws({"sub": None})),
        ("sub blank", jws({"sub": " "})),
        ("sub number", jws({"sub": 5})),
        ("signature", jws(signature="abc")),
        ("RS256", jws(header={"alg": "RS256"})),
        ("RS256 signature", jws(header={"alg": "RS256"}, signature="abc")),
        ("no JSON", f"{part(b'{')}.{part(b'{')}."),
    ):
        yield f"token {label}", bearer(token)
    yield "token bad, then x", bearer("bad", second=b"x")
    for data in (
        *(b"", b"garbage", b"n,,\x01\x01", b"n,,auth=Bearer x", b"n,,\x01auth=Bearer \x01\x01"),
        *(b"y,,\x01auth=Bearer x\x01\x01", b"n,,\x01auth=x\x01\x01"),
    ):
        yield f"token message {data!r}", oauth(data)


def add_scram_users(bootstrap: str) -> None:
    """Alice has both kinds of credentials."""
    with Conn(bootstrap, timeout=WAIT_S, sasl=("PLAIN", "admin", USERS["admin"])) as client:
        for number, hash_name in ((1, "sha256"), (2, "sha512")):
            salted = hashlib.pbkdf2_hmac(hash_name, USERS["alice"].encode(), b"a salt", 4096)
            user = {"name": "alice", "mechanism": number, "iterations": 4096, "salt": b"a salt"}
            user["salted_password"] = salted
            answer = client.send("alter_user_scram_credentials", 0, deletions=[], upsertions=[user])
            assert not answer.results[0].error_code, answer
    deadline = time.monotonic() + WAIT_S
    for mechanism_name in SHA:  # until it is published
        while time.monotonic() < deadline:
            with Conn(bootstrap, timeout=WAIT_S) as client:
                try:
                    client.sasl(mechanism_name, "alice", USERS["alice"])
                    break
                except AssertionError:
                    continue


def run(
    bootstrap: str, expected: Mapping[str, list[Any]] = MappingProxyType({})
) -> Iterator[tuple[str, list[Any]]]:
    """(label, answers) of every script; several talk at a time, as most of it is waiting.

    Where a script ends with a closed connection in `expected`, the end is waited for.
    """
    add_scram_users(bootstrap)

    def answers(label: str, script: Script) -> list[Any]:
        is_awaited = label in expected and expected[label][-1] == ["closed", True]
        talk = Talk(bootstrap, WAIT_S if is_awaited else CLOSED_S)
        try:
            script(talk)
        except Closed:
            talk.said.append(["no answer"])
        return talk.end()

    labels, made = zip(*scripts())
    with ThreadPoolExecutor(TALKS) as pool:
        yield from zip(labels, pool.map(answers, labels, made))


def main() -> None:
    bootstrap, out = sys.argv[1:]
    answers = dict(run(bootstrap))
    with open(out, "wb") as file:
        file.write(gzip.compress(json.dumps(answers, indent=0).encode(), mtime=0))


if __name__ == "__main__":
    main()
