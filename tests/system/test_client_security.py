"""`kwire.client` over TLS with a login: by Kafka's client properties, refused in one line."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kwire.client.admin import Admin
from kwire.client.cluster import Cluster
from kwire.client.errors import ClientError, LoginFailed
from kwire.client.producer import Kept, Outgoing, Producer
from kwire.client.properties import settings_of
from kwire.clock import SystemClock, SystemRandom
from kwire.testing.cluster import Broker, free_ports
from tests.support.certificates import Authority, secure_options
from tests.support.sasl import PLAIN_MODULE, SCRAM_MODULE, USERS, jaas, sasl_settings

WAIT_S = 60.0


class Secure(NamedTuple):
    """A broker with a listener SASL_SSL."""

    address: str
    directory: Path

    def properties(self, **given: str) -> dict[str, str]:
        return {
            "bootstrap.servers": self.address,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": jaas("PLAIN", "alice"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.directory / "authority.pem"),
            **{name.replace("_", "."): value for name, value in given.items()},
        }


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    directory = tmp_path_factory.mktemp("tls")
    authority = Authority()
    plain, address = (f"127.0.0.1:{port}" for port in free_ports(2))
    options = secure_options(directory, authority.sign(), authority) | {
        "listeners": f"PLAINTEXT://{plain},SASL_SSL://{address}",
        "connections.max.reauth.ms": "2000",
        **sasl_settings("SASL_SSL"),
    }
    with Broker(options=options, pass_listen=False, arguments=["--no-http"]):
        yield Secure(address, directory)


def refusal(properties: dict[str, str]) -> ClientError:
    async def test() -> None:
        settings = settings_of(properties, SystemRandom(), SystemClock().wall_ms)._replace(
            retry_timeout_s=2.0
        )
        async with Cluster(settings) as cluster:
            await asyncio.wait_for(cluster.metadata([]), WAIT_S)

    with pytest.raises(ClientError) as caught:
        asyncio.run(test())
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
    return caught.value


def test_records_go_by_tls_and_a_login_which_is_renewed(secure: Secure) -> None:
    async def test() -> None:
        settings = settings_of(secure.properties(), SystemRandom(), SystemClock().wall_ms)
        async with Cluster(settings) as cluster:
            await Admin(cluster).topics.create("t", partitions=1)
            producer = Producer(cluster)
            offsets = itertools.count()

            async def outlives_its_session() -> bool:
                first = await cluster.connection()
                end_s = cluster.loop.time() + 3
                while cluster.loop.time() < end_s:  # a session is 2 s long
                    kept = await producer.send("t", [Outgoing(value=b"x")])
                    assert kept == [Kept(0, next(offsets))]
                    await asyncio.sleep(0.05)
                return await cluster.connection() is first

            # On a machine that stands still for a moment a session ends before it is renewed.
            while not await outlives_its_session():
                pass

    asyncio.run(asyncio.wait_for(test(), WAIT_S))


def test_a_wrong_password_is_told_and_not_tried_again(secure: Secure) -> None:
    wrong = f'{PLAIN_MODULE} required username="alice" password="a-secret";'
    assert isinstance(refusal(secure.properties(sasl_jaas_config=wrong)), LoginFailed)


def test_a_mechanism_that_the_broker_has_not(secure: Secure) -> None:
    told = refusal(
        secure.properties(
            sasl_mechanism="SCRAM-SHA-256",
            sasl_jaas_config=f'{SCRAM_MODULE} required username="u" password="{USERS["u"]}";',
        )
    )
    assert "SCRAM-SHA-256 is not enabled" in str(told)


def test_a_certificate_that_nobody_vouches_for(secure: Secure, tmp_path: Path) -> None:
    Authority("another").write(tmp_path)
    other = str(tmp_path / "authority.pem")
    assert "certificate" in str(refusal(secure.properties(ssl_truststore_location=other)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("security_protocol", "TLS"),
        ("sasl_mechanism", "GSSAPI"),
        ("sasl_jaas_config", "nonsense"),
        ("ssl_truststore_location", "/nowhere"),
        ("bootstrap_servers", ""),
        ("bootstrap_servers", "a:b:c"),
    ],
)
def test_wrong_properties_are_one_line(secure: Secure, name: str, value: str) -> None:
    refusal(secure.properties(**{name: value}))
