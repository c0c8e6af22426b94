"""One broker whose clients log in: the command line, settings, what is told of secrets."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kwire.protocol import messages as m
from kwire.testing.cluster import Broker, free_ports, wait_for
from tests.support.sasl import MODULES, SCRAM_MODULE, USERS, sasl_settings
from tests.support.wire import WireClient
from tests.wire import Conn
from tests.wire.codec import Obj
from tests.wire.scram import Scram

SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
PASSWORD = "alice-secret"
TOKEN_SECRET = "the-secret-of-all-tokens"
ITERATIONS = 6000


class SaslBroker(Broker):
    """A broker with a listener for everybody and one with SASL on `sasl_bootstrap`."""

    def __init__(self, more: dict[str, str | int] | None = None) -> None:
        port, self.sasl_port = free_ports(2)
        listeners = f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{self.sasl_port}"
        super().__init__(
            port=port,
            options={
                "listeners": listeners,
                "advertised.listeners": listeners,
                "sasl.server.max.receive.size": 10_000,
                "delegation.token.secret.key": TOKEN_SECRET,
                **sasl_settings("SASL_PLAINTEXT", mechanisms=("PLAIN", *SCRAM)),
                **(more or {}),
            },
        )

    @property
    def sasl_bootstrap(self) -> str:
        return f"127.0.0.1:{self.sasl_port}"


def add_scram_user(client: WireClient, name: str, password: str) -> None:
    shape = m.AlterUserScramCredentialsRequest
    for mechanism, hash_name in ((1, "sha256"), (2, "sha512")):
        salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), b"a salt", ITERATIONS)
        user = shape.ScramCredentialUpsertion(
            name=name,
            mechanism=mechanism,
            iterations=ITERATIONS,
            salt=b"a salt",
            salted_password=salted,
        )
        answer = client.call(shape(upsertions=[user]), 0)
        assert not answer.results[0].error_code, answer


@pytest.fixture(scope="module")
def broker() -> Iterator[SaslBroker]:
    with SaslBroker() as running:
        with WireClient(running.bootstrap) as client:
            add_scram_user(client, "alice", PASSWORD)
            add_scram_user(client, "comma,equals=", PASSWORD)
        yield running


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kwire", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def properties(path: Path, mechanism: str, user: str = "alice", password: str = PASSWORD) -> str:
    module = f'{MODULES[mechanism]} required username="{user}" password="{password}";'
    path.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={module}\n"
    )
    return str(path)


@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAM])
def test_commands_log_in(broker: SaslBroker, tmp_path: Path, mechanism: str) -> None:
    config = properties(tmp_path / "client.properties", mechanism)
    listed = command("topic", "list", "-b", broker.sasl_bootstrap, "--command-config", config)
    assert (listed.returncode, listed.stderr) == (0, "")


def test_a_command_that_is_refused_says_why_in_one_line(broker: SaslBroker, tmp_path: Path) -> None:
    for mechanism, told in (
        ("PLAIN", "Authentication failed: Invalid username or password"),
        (SCRAM[0], f"invalid credentials with SASL mechanism {SCRAM[0]}"),
    ):
        config = properties(tmp_path / "client.properties", mechanism, password="not-it")
        refused = command("topic", "list", "-b", broker.sasl_bootstrap, "--command-config", config)
        assert refused.returncode == 1
        assert told in refused.stderr
        assert "not-it" not in refused.stderr
        assert refused.stderr.count("\n") == 1


def test_a_command_with_a_file_that_cannot_be_used(broker: SaslBroker, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\n")
    for path, told in ((str(config), "GSSAPI is refused"), (str(tmp_path / "none"), "none: ")):
        refused = command("topic", "list", "-b", broker.sasl_bootstrap, "--command-config", path)
        assert refused.returncode == 1
        assert told in refused.stderr
        assert refused.stderr.count("\n") == 1


def test_names_with_signs_that_scram_escapes(broker: SaslBroker) -> None:
    for mechanism in SCRAM:
        with Conn(broker.sasl_bootstrap, sasl=(mechanism, "comma,equals=", PASSWORD)) as client:
            assert client.send("metadata", 9, topics=[], allow_auto_topic_creation=False).brokers


def test_a_user_that_is_removed_does_not_get_in_any_more(broker: SaslBroker) -> None:
    with WireClient(broker.bootstrap) as client:
        add_scram_user(client, "bob", PASSWORD)
        with Conn(broker.sasl_bootstrap, sasl=(SCRAM[0], "bob", PASSWORD)):
            pass
        shape = m.AlterUserScramCredentialsRequest
        deletion = shape.ScramCredentialDeletion(name="bob", mechanism=1)
        assert not client.call(shape(deletions=[deletion]), 0).results[0].error_code
        with Conn(broker.sasl_bootstrap) as refused, pytest.raises(AssertionError, match="58"):
            refused.sasl(SCRAM[0], "bob", PASSWORD)
        with Conn(broker.sasl_bootstrap, sasl=(SCRAM[1], "bob", PASSWORD)):
            pass


def test_frames_are_small_until_the_client_has_logged_in(broker: SaslBroker) -> None:
    with Conn(broker.sasl_bootstrap) as client:
        client.send_raw((10_001).to_bytes(4, "big"))
        assert client.closed_within(30)
    with Conn(broker.sasl_bootstrap, sasl=("PLAIN", "alice", PASSWORD)) as client:
        topics = [{"name": "x" * 200} for _ in range(100)]
        response = client.send("metadata", 9, topics=topics, allow_auto_topic_creation=False)
        assert len(response.topics) == 1


def test_secrets_are_told_nobody(broker: SaslBroker) -> None:
    shape = m.DescribeConfigsRequest
    resource = shape.DescribeConfigsResource(resource_type=4, resource_name="1")
    with WireClient(broker.bootstrap) as client:
        answer = client.call(shape(resources=[resource], include_synonyms=True), 4)
        users = client.call(m.DescribeUserScramCredentialsRequest(), 0)
    configs = {config.name: config for config in answer.results[0].configs}
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    assert configs[name].value is None
    assert configs[name].is_sensitive
    told = repr(answer) + repr(users) + broker.log_text()
    for secret in (*USERS.values(), "a salt", TOKEN_SECRET):
        assert secret not in told


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "GSSAPI is not built"),
        ({"sasl.enabled.mechanisms": ""}, "sasl.enabled.mechanisms is empty"),
        (
            {"listener.name.sasl_plaintext.plain.sasl.jaas.config": "x.JndiLoginModule required;"},
            "login module x.JndiLoginModule is not allowed",
        ),
        (
            {
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
                    f'{SCRAM_MODULE} required user_a="hunter2";'
                )
            },
            "is not the module of PLAIN",
        ),
    ],
)
def test_settings_that_cannot_be_used_end_the_start_in_one_line(
    changed: dict[str, str], told: str
) -> None:
    broker = SaslBroker()
    options = {**broker.options, **changed}
    given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    ended = command("serve", "--ephemeral", *given)
    assert ended.returncode != 0
    assert told in ended.stderr
    assert "hunter2" not in ended.stderr
    assert ended.stderr.count("\n") == 1, ended.stderr


# -- delegation tokens (KIP-48)


def logged_in(broker: SaslBroker, mechanism: str, user: str, password: str) -> Conn:
    return Conn(broker.sasl_bootstrap, sasl=(mechanism, user, password))


def log_in_by_token(client: Conn, mechanism: str, token_id: str, hmac: bytes) -> Obj:
    """The answer to the last token of the exchange."""
    assert client.send("sasl_handshake", 1, mechanism=mechanism).error_code == 0
    scram = Scram(mechanism, token_id, base64.b64encode(hmac).decode())
    first = scram.first() + b",tokenauth=true"
    scram.first_bare += ",tokenauth=true"
    answer = client.send("sasl_authenticate", 2, auth_bytes=first)
    return client.send("sasl_authenticate", 2, auth_bytes=scram.final(answer.auth_bytes))


@pytest.mark.parametrize("mechanism", SCRAM)
def test_a_delegation_token_logs_in_its_owner_for_its_lifetime(
    broker: SaslBroker, mechanism: str
) -> None:
    create = {"owner_principal_type": None, "owner_principal_name": None, "renewers": []}
    with logged_in(broker, "PLAIN", "alice", PASSWORD) as alice:
        token = alice.send("create_delegation_token", 3, **create, max_lifetime=600_000)
        assert token.error_code == 0
        assert (token.principal_type, token.principal_name) == ("User", "alice")
        with Conn(broker.sasl_bootstrap) as client:
            answer = log_in_by_token(client, mechanism, token.token_id, token.hmac)
            assert answer.error_code == 0, answer.error_message
            assert 0 < answer.session_lifetime <= 600_000
            # Whoever is there by a token gets no other one.
            again = client.send("create_delegation_token", 3, **create, max_lifetime=-1)
            assert again.error_code == 64
            described = client.send("describe_delegation_token", 3, owners=None)
            assert described.error_code == 64
        with Conn(broker.sasl_bootstrap) as client:
            wrong = log_in_by_token(client, mechanism, token.token_id, b"x" * 64)
            assert wrong.error_code == 58
        ended = alice.send("expire_delegation_token", 2, hmac=token.hmac, expiry_time_period=-1)
        assert ended.error_code == 0
        with Conn(broker.sasl_bootstrap) as client:
            gone = log_in_by_token(client, mechanism, token.token_id, token.hmac)
            assert gone.error_code == 58


def salt_of_token(broker: SaslBroker, mechanism: str, token_id: str) -> bytes:
    with Conn(broker.sasl_bootstrap) as client:
        assert client.send("sasl_handshake", 1, mechanism=mechanism).error_code == 0
        first = Scram(mechanism, token_id, "").first() + b",tokenauth=true"
        answer = client.send("sasl_authenticate", 2, auth_bytes=first)
    return base64.b64decode(answer.auth_bytes.split(b",")[1].removeprefix(b"s="))


@pytest.mark.parametrize("mechanism", SCRAM)
def test_a_salt_does_not_tell_which_tokens_there_are(broker: SaslBroker, mechanism: str) -> None:
    """It was the secret itself of which the salts of unknown users are made."""
    create = {"owner_principal_type": None, "owner_principal_name": None, "renewers": []}
    with logged_in(broker, "PLAIN", "alice", PASSWORD) as alice:
        ids = [
            alice.send("create_delegation_token", 3, **create, max_lifetime=600_000).token_id
            for _ in range(2)
        ]
    salts = [salt_of_token(broker, mechanism, one) for one in (*ids, "no-token")]
    assert len(set(salts)) == 3
    assert {len(salt) for salt in salts} == {20}
    assert salts[0] == salt_of_token(broker, mechanism, ids[0])


# -- settings that change while the broker runs (KIP-226)

PLAIN_JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"


def alter(broker: SaslBroker, name: str, value: str) -> int:
    """The error code of a change of the broker's own settings."""
    shape = m.IncrementalAlterConfigsRequest
    config = shape.AlterableConfig(name=name, config_operation=0, value=value)
    resource = shape.AlterConfigsResource(resource_type=4, resource_name="1", configs=[config])
    with WireClient(broker.bootstrap) as client:
        return int(client.call(shape(resources=[resource]), 1).responses[0].error_code)


def plain_answer(client: Conn, user: str, password: str) -> Obj:
    client.send("sasl_handshake", 1, mechanism="PLAIN")
    token = f"\0{user}\0{password}".encode()
    return client.send("sasl_authenticate", 2, auth_bytes=token)


def gets_in(broker: SaslBroker, user: str, password: str) -> bool:
    with Conn(broker.sasl_bootstrap) as client:
        return not plain_answer(client, user, password).error_code


def test_users_of_plain_change_and_connections_stay() -> None:
    with SaslBroker() as broker, logged_in(broker, "PLAIN", "alice", PASSWORD) as alice:
        changed = f'{MODULES["PLAIN"]} required user_carol="carol-secret";'
        assert alter(broker, PLAIN_JAAS, changed) == 0
        wait_for(lambda: gets_in(broker, "carol", "carol-secret"), "the new user is known")
        assert not gets_in(broker, "alice", PASSWORD)
        assert alice.send("metadata", 9, topics=[], allow_auto_topic_creation=False).brokers
        for bad in ("x.JndiLoginModule required;", f"{SCRAM_MODULE} required;", "", "M required"):
            assert alter(broker, PLAIN_JAAS, bad) == 42, bad
        assert gets_in(broker, "carol", "carol-secret")
        assert alter(broker, "sasl.enabled.mechanisms", "GSSAPI") == 42
        assert "carol-secret" not in broker.log_text()


def test_a_user_of_plain_that_is_removed_does_not_authenticate_anew() -> None:
    """A connection kept the passwords that it was opened with."""
    broker = SaslBroker({"connections.max.reauth.ms": 600_000})
    with broker, Conn(broker.sasl_bootstrap) as alice:
        assert not plain_answer(alice, "alice", PASSWORD).error_code
        assert not plain_answer(alice, "alice", PASSWORD).error_code
        changed = f'{MODULES["PLAIN"]} required user_carol="carol-secret";'
        assert alter(broker, PLAIN_JAAS, changed) == 0
        wait_for(lambda: gets_in(broker, "carol", "carol-secret"), "the new user is known")
        assert plain_answer(alice, "alice", PASSWORD).error_code == 58


@pytest.mark.parametrize("mechanism", SCRAM)
def test_an_unknown_user_is_told_what_users_are_told(broker: SaslBroker, mechanism: str) -> None:
    """The number of iterations told who is a user: 4,096 for the unknown, whatever others have."""
    told = []
    with WireClient(broker.bootstrap) as client:
        add_scram_user(client, "alice", PASSWORD)
    for name in ("alice", "nobody", "somebody", "nobody"):
        with Conn(broker.sasl_bootstrap) as asking:
            assert asking.send("sasl_handshake", 1, mechanism=mechanism).error_code == 0
            first = asking.send(
                "sasl_authenticate", 2, auth_bytes=Scram(mechanism, name, "x").first()
            )
            fields = dict(each.split("=", 1) for each in first.auth_bytes.decode().split(","))
            told.append((fields["i"], len(fields["s"]), fields["s"]))
    assert len({shown[:2] for shown in told}) == 1
    assert told[1] == told[3]
    assert len({shown[2] for shown in told}) == 3
