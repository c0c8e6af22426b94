"""The client's side against the server's, and against servers that are not what they say."""

from __future__ import annotations

import base64

import pytest

from kwire.clock import SeededRandom
from kwire.config.errors import ConfigError
from kwire.protocol import messages as m
from kwire.protocol.errors import KafkaError
from kwire.security.sasl.client import ClientMechanism, PlainClient, SaslClient, ScramClient
from kwire.security.sasl.client_settings import client_login
from kwire.security.sasl.jaas import OAUTHBEARER_MODULE
from kwire.security.sasl.jwt import Rules, validate_unsecured
from kwire.security.sasl.mechanisms import AuthenticationFailed, Identity, ServerMechanism
from kwire.security.sasl.oauthbearer import Accepted, OAuthBearerServer
from kwire.security.sasl.plain import Passwords, PlainServer
from kwire.security.sasl.scram import Known, ScramParts, ScramServer, derived
from tests.support.sasl import PLAIN_MODULE, SCRAM_MODULE

SHA = ("SCRAM-SHA-256", "SCRAM-SHA-512")
SCRAM = "SCRAM-SHA-256"


def exchange(client: ClientMechanism, server: ServerMechanism) -> str:
    """Who the server takes the client for, once both are content."""
    login = SaslClient(client)
    login.begin()
    request = login.agreed(m.SaslHandshakeResponse())
    while True:
        answer = server.evaluate(request.auth_bytes, 0)
        following = login.answered(m.SaslAuthenticateResponse(auth_bytes=answer.token))
        if following is None:
            assert answer.identity is not None
            return answer.identity.principal
        request = following


def scram_server(mechanism: str, name: str) -> ScramServer:
    credential = derived(mechanism, b"hunter2", b"salt", 4096)

    def users(given: str, wall_ms: int) -> Known | None:
        return Known(f"User:{given}", credential) if given == name else None

    def tokens(given: str, wall_ms: int) -> Known | None:
        return Known("User:owner", credential) if given == "id" else None

    return ScramServer(ScramParts(mechanism, users, tokens, SeededRandom(1), b"secret"))


def scram(mechanism: str = SCRAM, password: str = "hunter2", name: str = "alice") -> ScramClient:
    return ScramClient(mechanism, name, password, SeededRandom(2))


def test_plain() -> None:
    server = PlainServer(Passwords({"alice": "hunter2"}))
    assert exchange(PlainClient("alice", "hunter2"), server) == "User:alice"


@pytest.mark.parametrize("mechanism", SHA)
@pytest.mark.parametrize("name", ["alice", "a=b,c"])
def test_scram(mechanism: str, name: str) -> None:
    server = scram_server(mechanism, name)
    assert exchange(scram(mechanism, name=name), server) == f"User:{name}"


@pytest.mark.parametrize("mechanism", SHA)
def test_a_delegation_token(mechanism: str) -> None:
    client = ScramClient(mechanism, "id", "hunter2", SeededRandom(2), by_token=True)
    assert exchange(client, scram_server(mechanism, "alice")) == "User:owner"


def test_a_wrong_password_is_refused_by_the_server() -> None:
    with pytest.raises(AuthenticationFailed):
        exchange(scram(password="hunter3"), scram_server(SCRAM, "alice"))


def test_a_server_that_does_not_know_the_password_is_found_out() -> None:
    client, server = scram(), scram_server(SCRAM, "alice")
    server.evaluate(client.evaluate(server.evaluate(client.first(), 0).token) or b"", 0)
    for signature in (b"", b"v=", b"v=" + base64.b64encode(b"x" * 32), b"e=other-error"):
        with pytest.raises(KafkaError, match="signature is wrong"):
            client.evaluate(signature)


@pytest.mark.parametrize(
    "challenge",
    [
        "",
        "r=ours,s=c2FsdA==,i=4096",
        "r=ours+x,s=c2FsdA==,i=4095",
        "r=ours+x,s=c2FsdA==,i=99999999",
        "r=theirs,s=c2FsdA==,i=4096",
        "r=ours+x,s=not base64,i=4096",
        "r=ours+x,s===,i=4096",
        "m=x,r=ours+x,s=c2FsdA==,i=4096",
    ],
)
def test_a_server_cannot_choose_the_nonce_or_how_much_work_there_is(challenge: str) -> None:
    client = scram()
    ours = client.first().decode().rpartition("r=")[2]
    with pytest.raises(KafkaError):
        client.evaluate(challenge.replace("ours", ours).encode())


def test_what_the_server_says_is_told() -> None:
    login = SaslClient(PlainClient("alice", "hunter2"))
    with pytest.raises(KafkaError, match="PLAIN is not enabled; the server has SCRAM-SHA-256"):
        login.agreed(m.SaslHandshakeResponse(error_code=33, mechanisms=["SCRAM-SHA-256"]))
    with pytest.raises(KafkaError, match="no such luck"):
        login.answered(m.SaslAuthenticateResponse(error_code=58, error_message="no such luck"))
    with pytest.raises(KafkaError, match="SASL_AUTHENTICATION_FAILED"):
        login.answered(m.SaslAuthenticateResponse(error_code=58))


def properties(module: str = PLAIN_MODULE, **given: str) -> dict[str, str]:
    defaults = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{module} required username="alice" password="hunter2";',
    }
    return defaults | {name.replace("_", "."): value for name, value in given.items()}


def test_the_properties_of_a_client() -> None:
    assert client_login({}, SeededRandom(1), lambda: 0) is None
    make = client_login(properties(), SeededRandom(1), lambda: 0)
    assert make is not None
    assert make().begin().mechanism == "PLAIN"
    make = client_login(properties(SCRAM_MODULE, sasl_mechanism=SCRAM), SeededRandom(1), lambda: 0)
    assert make is not None
    assert make().agreed(m.SaslHandshakeResponse()).auth_bytes.startswith(b"n,,n=alice,r=")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"sasl_mechanism": "GSSAPI"}, "sasl.mechanism=GSSAPI is refused"),
        ({"sasl_mechanism": SCRAM}, "is not the module of SCRAM-SHA-256"),
        ({"sasl_jaas_config": f"{PLAIN_MODULE} required;"}, "has no username and no password"),
        ({"sasl_jaas_config": "com.sun.security.auth.module.JndiLoginModule required;"}, "allowed"),
        ({"sasl_jaas_config": f'{PLAIN_MODULE} required password="hunter2" x'}, "Value not"),
    ],
)
def test_what_cannot_be_used_is_one_line_without_a_secret(given: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why) as error:
        client_login(properties(**given), SeededRandom(1), lambda: 0)
    assert "hunter2" not in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unsecured_token_is_made_of_the_options() -> None:
    module = (
        f'{OAUTHBEARER_MODULE} required unsecuredLoginStringClaim_sub="alice" '
        'unsecuredLoginListClaim_scope=",a,b" unsecuredLoginExtension_traceId="7";'
    )
    given = properties(sasl_mechanism="OAUTHBEARER", sasl_jaas_config=module)
    make = client_login(given, SeededRandom(1), lambda: 5_000)
    assert make is not None
    token = make().agreed(m.SaslHandshakeResponse()).auth_bytes
    assert b"\x01traceId=7\x01" in token

    def validate(text: str, wall_ms: int) -> Accepted:
        return validate_unsecured(text, wall_ms, Rules())

    answer = OAuthBearerServer(validate).evaluate(token, 5_000)
    assert answer.identity == Identity("User:alice", expires_ms=5_000 + 3_600_000)
