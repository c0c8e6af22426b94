"""Stores are tried before they are used: expired, unknown and mismatched ones do not take over."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.config import BrokerConfig, ConfigError
from kwire.config.dynamic import DynamicConfig
from kwire.config.listener_settings import ListenerSettings
from kwire.security.tls.endpoint import TlsEndpoint
from kwire.security.tls.errors import TlsError
from tests.support.certificates import Authority

EXPIRED, LATER = (-30, -3), (3, 30)
AUTHORITY = Authority()


def settings_of(given: dict[str, str]) -> ListenerSettings:
    return ListenerSettings(DynamicConfig(BrokerConfig.load(overrides=given)), "SSL")


def options(directory: Path, **more: str) -> dict[str, str]:
    given = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "node.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(AUTHORITY.write(directory)),
    }
    return given | {name.replace("_", "."): text for name, text in more.items()}


@pytest.mark.parametrize("is_between_brokers", [False, True])
@pytest.mark.parametrize("auth", ["none", "required"])
def test_an_expired_certificate_does_not_take_the_place_of_another(
    tmp_path: Path, is_between_brokers: bool, auth: str
) -> None:
    AUTHORITY.sign("node").write(tmp_path, "node")
    setting = settings_of(options(tmp_path, ssl_client_auth=auth))
    endpoint = TlsEndpoint(setting, is_between_brokers=is_between_brokers)
    before = endpoint.server_context()
    for days, told in ((EXPIRED, "certificate has expired"), (LATER, "not yet valid")):
        AUTHORITY.sign("node", days=days).write(tmp_path, "node")
        with pytest.raises(TlsError, match=told) as caught:
            endpoint.reload()
        assert "SSLFactory failed" in caught.value.in_kafkas_words()
        assert endpoint.server_context() is before
    AUTHORITY.sign("node").write(tmp_path, "node")
    endpoint.reload()
    assert endpoint.server_context() is not before


def test_what_brokers_cannot_connect_by_is_refused(tmp_path: Path) -> None:
    """At the start, as by Kafka; a listener for clients alone is not tried."""
    for certificate, told in (
        (AUTHORITY.sign("node", days=EXPIRED), "certificate has expired"),
        (Authority("a stranger").sign("node"), "unable to get local issuer certificate"),
    ):
        certificate.write(tmp_path, "node")
        setting = settings_of(options(tmp_path))
        TlsEndpoint(setting)
        with pytest.raises(ConfigError, match=f"cannot connect to each other: {told}"):
            TlsEndpoint(setting, is_between_brokers=True)


def test_brokers_with_the_stores_before_have_to_go_on(tmp_path: Path) -> None:
    """Another authority alone leaves those outside that have not changed yet; both, in turn, do."""
    other = Authority("another")
    AUTHORITY.sign("node").write(tmp_path, "node")
    given = options(tmp_path)
    endpoint = TlsEndpoint(settings_of(given), is_between_brokers=True)
    trusted = tmp_path / "authority.pem"
    other.sign("node").write(tmp_path, "node")
    trusted.write_text(other.pem)
    with pytest.raises(TlsError, match="brokers with the stores before cannot connect to these"):
        endpoint.reload()
    AUTHORITY.sign("node").write(tmp_path, "node")
    with pytest.raises(TlsError, match="brokers with these stores cannot connect to each other"):
        endpoint.reload()
    trusted.write_text(AUTHORITY.pem + other.pem)
    endpoint.reload()
    other.sign("node").write(tmp_path, "node")
    endpoint.reload()
    trusted.write_text(other.pem)
    endpoint.reload()


def test_a_certificate_that_has_expired_while_it_served_is_replaced(tmp_path: Path) -> None:
    """What is before cannot be tried any more: that must not keep it."""
    AUTHORITY.sign("node", days=EXPIRED).write(tmp_path, "node")
    endpoint = TlsEndpoint(settings_of(options(tmp_path)))
    endpoint._tries = True  # as if it had been good at the start
    AUTHORITY.sign("node").write(tmp_path, "node")
    endpoint.reload()


def test_a_key_password_that_is_not_the_one_of_the_store(tmp_path: Path) -> None:
    """It was taken for one that nothing needs: Java does not open such a store."""
    path = tmp_path / "node.p12"
    path.write_bytes(AUTHORITY.sign("node").pkcs12("word"))
    given = options(tmp_path) | {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(path),
        "ssl.keystore.password": "word",
    }
    TlsEndpoint(settings_of(given | {"ssl.key.password": "word"}))
    with pytest.raises(ConfigError, match=r"ssl\.key\.password is not the password of its key"):
        TlsEndpoint(settings_of(given | {"ssl.key.password": "other"}))
