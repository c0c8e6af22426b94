"""The public vulnerabilities of Apache Kafka's broker since 2023, each by its number, and what
holds here. Source: the advisories of Apache Kafka and the CVE records; docs/SECURITY.md lists them.
"""

from __future__ import annotations

import base64
import hashlib
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.api import consumer_group_describe
from kwire.clock import SeededRandom
from kwire.config.broker_config import BrokerConfig
from kwire.config.errors import ConfigError
from kwire.protocol import messages as m
from kwire.protocol.budget import REQUEST_ELEMENTS_MAX
from kwire.protocol.errors import ErrorCode, KafkaError, MalformedError
from kwire.protocol.records.compression import Codec, compress, decompress
from kwire.security.acl import Operation, ResourceType
from kwire.security.acls.binding import PermissionType
from kwire.security.acls.standard_authorizer import StandardAuthorizer
from kwire.security.client_settings import client_security
from kwire.security.sasl.mechanisms import AuthenticationFailed
from kwire.security.sasl.oauth_settings import oauth_settings
from kwire.security.sasl.scram import Known, ScramParts, ScramServer, derived
from kwire.testing.cluster import Broker, Cluster, free_ports
from tests.support.acls import Client, acl
from tests.support.sasl import PLAIN_MODULE, USERS, sasl_settings
from tests.support.telemetry.dialogue import get, own_id, push
from tests.support.wire import WireClient
from tests.wire import Conn
from tests.wire.scram import Scram

SHA = "SCRAM-SHA-256"
TOKEN_SECRET = "the-secret-of-all-tokens"
PASSWORD = "the-secret-of-alice"
JNDI = "com.sun.security.auth.module.JndiLoginModule"
LDAP = "com.sun.security.auth.module.LdapLoginModule"
JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
BROKER, BROKER_LOGGER, SET = 4, 8, 0
MEMORY_BYTES_MAX = 64 * 1024


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One with logins and tokens that writes down whatever it may (`audit.log` beside it)."""
    port, sasl_port = free_ports(2)
    listeners = f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}"
    options = {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice",
        "delegation.token.secret.key": TOKEN_SECRET,
        "kwire.audit.log": str(tmp_path_factory.mktemp("audit") / "audit.log"),
        "kwire.audit.events": "denied,authentication_failure,acl_change,config_change",
        **sasl_settings("SASL_PLAINTEXT", mechanisms=("PLAIN", SHA)),
    }
    with Broker(port=port, options=options) as running:
        yield running


def sasl_bootstrap(broker: Broker) -> str:
    listeners = str(broker.options["listeners"])
    return listeners.rpartition("//")[2]


def alter(client: WireClient, kind: int, name: str, **configs: str) -> tuple[int, str]:
    shape = m.IncrementalAlterConfigsRequest
    resource = shape.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            shape.AlterableConfig(name=key.replace("__", "."), config_operation=SET, value=value)
            for key, value in configs.items()
        ],
    )
    (answer,) = client.call(shape(resources=[resource]), 1).responses
    return answer.error_code, answer.error_message or ""


# -- code that settings name


@pytest.mark.parametrize("module", [JNDI, LDAP, f"{JNDI}2", "x.Y"])
def test_cve_2023_25194_and_2025_27818_no_login_module_of_others_is_loaded(module: str) -> None:
    """Kafka forbids two classes; here its own modules are known by name, and none is loaded."""
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{module} required user.provider.url="ldap://127.0.0.1:1/x";',
    }
    with pytest.raises(ConfigError, match=f"login module {module} is not allowed") as refused:
        client_security(properties, SeededRandom(1), lambda: 0)
    assert "ldap:" not in str(refused.value)


@pytest.mark.parametrize("module", [JNDI, LDAP])
def test_cve_2025_27819_nor_by_who_may_alter_the_brokers_settings(
    broker: Broker, module: str
) -> None:
    with WireClient(broker.bootstrap) as client:
        text = f'{module} required user.provider.url="ldap://127.0.0.1:1/x";'
        code, told = alter(client, BROKER, "1", **{JAAS: text})
        assert code == ErrorCode.INVALID_REQUEST
        assert "ldap:" not in told
        described = m.DescribeConfigsRequest.DescribeConfigsResource
        resource = described(resource_type=BROKER, resource_name="1", configuration_keys=[JAAS])
        (answer,) = client.call(m.DescribeConfigsRequest(resources=[resource]), 4).results
        assert [config.value for config in answer.configs] == [None]
    with Conn(sasl_bootstrap(broker), sasl=("PLAIN", "alice", USERS["alice"])):
        pass  # the old users stay


def test_cve_2024_31141_no_provider_is_asked_for_the_settings_of_a_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes a client's settings reads no file and no variable of the environment by it."""
    monkeypatch.setenv("A_SECRET", "hunter2")
    secret = tmp_path / "secret"
    secret.write_text("password=hunter2\n")
    properties = {
        "config.providers": "env,file",
        "config.providers.env.class": (
            "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
        ),
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": (
            f'{PLAIN_MODULE} required username="${{env:A_SECRET}}" '
            f'password="${{file:{secret}:password}}";'
        ),
    }
    login = client_security(properties, SeededRandom(1), lambda: 0).login
    assert login is not None
    handshake = login()
    handshake.begin()
    sent = handshake.agreed(m.SaslHandshakeResponse()).auth_bytes
    assert sent == f"\0${{env:A_SECRET}}\0${{file:{secret}:password}}".encode()


# -- logins


@pytest.mark.parametrize("nonce", ["", "another", "clientanother"])
def test_cve_2024_56128_a_nonce_of_scram_is_compared_as_a_whole(nonce: str) -> None:
    credential = derived(SHA, PASSWORD.encode(), b"salt", 4096)

    def known(name: str, wall_ms: int) -> Known | None:
        return Known(f"User:{name}", credential)

    parts = ScramParts(SHA, known, lambda name, wall_ms: None, SeededRandom(1), b"secret")
    client, server = Scram(SHA, "alice", PASSWORD), ScramServer(parts)
    first = server.evaluate(client.first(), 0).token
    with pytest.raises(AuthenticationFailed):
        server.evaluate(client.final(first, nonce=nonce.replace("client", client.nonce)), 0)


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/latest", "file:///etc/passwd", "file:/proc/self/environ"]
)
@pytest.mark.parametrize("kind", ["jwks", "token"])
def test_cve_2025_27817_no_address_and_no_file_but_those_that_are_allowed(
    url: str, kind: str
) -> None:
    """Of keys and of tokens; the system property is none of the settings."""
    allowed = {"org.apache.kafka.sasl.oauthbearer.allowed.urls": url}
    if kind == "jwks":
        config = broker_config(**{"sasl.oauthbearer.jwks.endpoint.url": url}, **allowed)
        with pytest.raises(ConfigError, match="is not allowed"):
            oauth_settings(config, "SASL_PLAINTEXT")
        return
    handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": handler,
        "sasl.oauthbearer.token.endpoint.url": url,
        "sasl.jaas.config": f"{module} required clientId=a clientSecret=b;",
        **allowed,
    }
    with pytest.raises(ConfigError, match="is not allowed"):
        client_security(properties, SeededRandom(1), lambda: 0)


def broker_config(**more: str) -> BrokerConfig:
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:2",
        "listeners": "SASL_PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": "https://issuer.example",
        **more,
    }
    return BrokerConfig.load(properties, developer=False)


@pytest.mark.parametrize("handler", [None, "OAuthBearerValidatorCallbackHandler"])
def test_cve_2026_33557_and_110985_a_token_is_nothing_without_keys(handler: str | None) -> None:
    """Without an address of keys Kafka 4.1 took any token; here such a listener does not start."""
    package = "org.apache.kafka.common.security.oauthbearer."
    named = {} if handler is None else {"sasl.server.callback.handler.class": package + handler}
    with pytest.raises(ConfigError, match=r"OAUTHBEARER needs sasl\.oauthbearer\.jwks"):
        oauth_settings(broker_config(**named), "SASL_PLAINTEXT")
    validator = {"sasl.oauthbearer.jwt.validator.class": f"{package}ClientJwtValidator"}
    with pytest.raises(ConfigError, match="is refused"):
        broker_config(**validator)


# -- what is told


def test_cve_2026_33558_nothing_that_is_told_has_a_secret_in_it(broker: Broker) -> None:
    """Logs at TRACE, the audit log, errors, settings, /metrics, what is printed of messages."""
    bootstrap = sasl_bootstrap(broker)
    shape = m.AlterUserScramCredentialsRequest
    salted = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), b"a salt", 4096)
    user = shape.ScramCredentialUpsertion(
        name="carol", mechanism=1, iterations=4096, salt=b"a salt", salted_password=salted
    )
    secrets = [*USERS.values(), PASSWORD, TOKEN_SECRET, base64.b64encode(salted).decode()]
    answers: list[Any] = []
    with WireClient(broker.bootstrap) as client:
        assert alter(client, BROKER_LOGGER, "1", root="TRACE") == (0, "")
        request = shape(upsertions=[user])
        answers += [repr(request), client.call(request, 0)]
        jaas = f'{PLAIN_MODULE} required user_alice="{USERS["alice"]}" user_dave="{PASSWORD}";'
        answers.append(alter(client, BROKER, "1", **{JAAS: jaas}))
        answers.append(alter(client, BROKER, "1", **{JAAS: jaas.replace('";', "'")}))
        answers.append(alter(client, BROKER, "1", ssl__keystore__password=PASSWORD))
        for name in ("1", ""):
            resource = m.DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=BROKER, resource_name=name
            )
            asked = m.DescribeConfigsRequest(resources=[resource], include_synonyms=True)
            answers.append(client.call(asked, 4))
        answers.append(client.call(m.DescribeUserScramCredentialsRequest(), 0))
    with Conn(bootstrap, sasl=("PLAIN", "dave", PASSWORD)):
        pass
    with Conn(bootstrap, sasl=(SHA, "carol", PASSWORD)) as logged_in:
        create = {"owner_principal_type": None, "owner_principal_name": None, "renewers": []}
        token = logged_in.send("create_delegation_token", 3, **create, max_lifetime=60_000)
        assert token.error_code == 0
        secrets.append(base64.b64encode(token.hmac).decode())
        created = m.CreateDelegationTokenResponse(hmac=token.hmac)
        answers += [repr(created), repr(m.RenewDelegationTokenRequest(hmac=token.hmac))]
    for wrong in (("PLAIN", "alice", PASSWORD), (SHA, "carol", TOKEN_SECRET)):
        with Conn(bootstrap) as refused, pytest.raises(AssertionError) as error:
            refused.sasl(*wrong)
        answers.append(str(error.value))
    audit = Path(str(broker.options["kwire.audit.log"])).read_text()
    assert "config_change" in audit
    assert " TRACE " in broker.log_text() or " DEBUG " in broker.log_text()
    told = "\n".join([broker.log_text(), audit, *map(str, answers)])
    assert [secret for secret in secrets if secret in told] == []


@pytest.mark.parametrize("wrong", [("nobody", PASSWORD), ("alice", "wrong")])
@pytest.mark.parametrize("mechanism", ["PLAIN", SHA])
def test_an_unknown_user_and_a_wrong_password_are_one_answer(
    broker: Broker, mechanism: str, wrong: tuple[str, str]
) -> None:
    with Conn(sasl_bootstrap(broker)) as client, pytest.raises(AssertionError) as error:
        client.sasl(mechanism, *wrong)
    told = "Authentication failed: Invalid username or password"
    if mechanism == SHA:
        told = (
            "Authentication failed during authentication due to invalid credentials with SASL "
            f"mechanism {SHA}"
        )
    assert told in str(error.value)


# -- rights


def test_cve_2024_27309_an_acl_that_goes_takes_no_other_with_it() -> None:
    """Of a resource with several, one is removed: a DENY among the others is still one."""
    authorizer = StandardAuthorizer([])
    rules = [
        acl("User:*", Operation.READ),
        acl("User:alice", Operation.READ, permission=PermissionType.DENY),
        acl("User:bob", Operation.WRITE),
    ]
    ids = [bytes([number]) * 16 for number in range(len(rules))]
    authorizer.apply({each: (None, rule) for each, rule in zip(ids, rules, strict=True)})
    authorizer.loaded()
    authorizer.apply({ids[2]: (rules[2], None)})
    alice, bob = Client("User:alice"), Client("User:bob")
    assert not authorizer.authorize(alice, Operation.READ, ResourceType.TOPIC, "orders")
    assert authorizer.authorize(bob, Operation.READ, ResourceType.TOPIC, "orders")
    authorizer.apply({ids[0]: (rules[0], None)})
    assert not authorizer.authorize(alice, Operation.READ, ResourceType.TOPIC, "orders")


def test_cve_2026_41115_describing_a_group_needs_describe_as_the_documents_say() -> None:
    group = consumer_group_describe.AUTHORIZATION[0]
    assert (group.operation, group.resource_type) == (Operation.DESCRIBE, ResourceType.GROUP)
    page = (Path(__file__).parents[2] / "docs" / "AUTHORIZATION.md").read_text()
    assert "| ConsumerGroupDescribe | DESCRIBE | GROUP |" in page


# -- memory, and the end of a process


def test_cve_2023_34455_a_snappy_block_is_no_longer_than_what_is_there() -> None:
    header = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    tracemalloc.start()
    try:
        for size in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x10\x00\x00\x00"):
            with pytest.raises(KafkaError):
                decompress(Codec.SNAPPY, header + size + b"xxxx")
        with pytest.raises(KafkaError):  # the length of the text, in a block
            decompress(Codec.SNAPPY, header + b"\0\0\0\6" + b"\xff\xff\xff\xff\x07x")
        assert tracemalloc.get_traced_memory()[1] < MEMORY_BYTES_MAX
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("topics", [[], [("__cluster_metadata", 0)], [("other", 1)]])
def test_cve_2026_83525_a_snapshot_of_nothing_ends_no_controller(
    topics: list[tuple[str, int]], controller: Cluster
) -> None:
    shape = m.FetchSnapshotRequest
    asked = [
        shape.TopicSnapshot(name=name, partitions=[shape.PartitionSnapshot()] * partitions)
        for name, partitions in topics
    ]
    with WireClient(controller[1].controller_address) as client:
        client.call(shape(cluster_id=None, replica_id=2, max_bytes=1000, topics=asked), 1)
        assert client.call(m.ApiVersionsRequest(), 0).error_code == 0
    assert controller[1].is_running


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("controller"), combined=(1,)) as cluster:
        cluster.start()
        yield cluster


def test_cve_2026_111073_telemetry_is_unpacked_up_to_its_limit() -> None:
    """A push that would unpack to more than telemetry.max.bytes is refused."""
    pytest.importorskip("uvicorn")
    pytest.importorskip("prometheus_client")
    limit = 100_000
    options: dict[str, str | int] = {"http.listeners": "http://127.0.0.1:0"}
    options["telemetry.max.bytes"] = limit
    with Broker(options=options) as running, WireClient(running.bootstrap) as client:
        cases = ((limit, ErrorCode.NONE), (50 * limit, ErrorCode.INVALID_RECORD))
        for number, (size, expected) in enumerate(cases, 1):
            packed = compress(Codec.GZIP, bytes(size))
            assert len(packed) < limit
            mine = own_id(number)
            known = get(client, mine).subscription_id
            assert push(client, mine, known, packed, int(Codec.GZIP)) == [0, expected]


def _varint(number: int) -> bytes:
    data = bytearray()
    while number >= 0x80:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


@pytest.mark.parametrize("count", [1000, REQUEST_ELEMENTS_MAX, (1 << 31) - 2])
@pytest.mark.parametrize("what", ["array (111108)", "tagged fields (111115)"])
def test_cve_2026_111108_and_111115_a_count_allocates_nothing(count: int, what: str) -> None:
    """A count is held against the bytes that are there, before anything is made."""
    if what.startswith("array"):
        body = _varint(count + 1) + b"\0" * 50
        decoder, version = m.MetadataRequest, 9
    else:
        body = b"\2a\2b" + _varint(count) + b"\0" * 50
        decoder, version = m.ApiVersionsRequest, 3
    decode = decoder.decoder(version)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedError):
            decode(memoryview(body), 0)
        assert tracemalloc.get_traced_memory()[1] < MEMORY_BYTES_MAX
    finally:
        tracemalloc.stop()


def test_cve_2026_111115_many_tagged_fields_are_bounded() -> None:
    """Also where the bytes of all of them are there: no more than a million."""
    fields = b"".join(_varint(number + 1) + b"\0" for number in range(200))
    request = m.ApiVersionsRequest.decoder(3)
    decoded, _ = request(memoryview(b"\2a\2b" + _varint(200) + fields), 0)
    assert len(decoded.unknown_tags) == 200
    over = REQUEST_ELEMENTS_MAX + 1
    body = b"\2a\2b" + _varint(over) + b"\1\0" * over
    with pytest.raises(MalformedError):
        request(memoryview(body), 0)


def test_the_page_of_security_lists_all_of_them() -> None:
    own = Path(__file__).read_text()
    page = (Path(__file__).parents[2] / "docs" / "SECURITY.md").read_text()
    for number in NUMBERS:
        assert number in page, number
        year, _, rest = number.removeprefix("CVE-").partition("-")
        assert f"cve_{year}_{rest}" in own or f"and_{rest}" in own or f"and_{year}_{rest}" in own


NUMBERS = (
    *("CVE-2023-25194", "CVE-2023-34455", "CVE-2024-27309", "CVE-2024-31141", "CVE-2024-56128"),
    *("CVE-2025-27817", "CVE-2025-27818", "CVE-2025-27819", "CVE-2026-33557", "CVE-2026-33558"),
    *("CVE-2026-41115", "CVE-2026-83525", "CVE-2026-110985", "CVE-2026-111073"),
    *("CVE-2026-111108", "CVE-2026-111115"),
)
