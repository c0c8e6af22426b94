"""TLS of a client out of its properties."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from kwire.config import ConfigError
from kwire.security.tls.client import client_tls
from tests.support.certificates import Authority

AUTHORITY = Authority()


def properties(**changed: str) -> dict[str, str]:
    settings = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": AUTHORITY.pem,
    }
    return settings | {name.replace("_", "."): text for name, text in changed.items()}


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "sasl_plaintext"])
def test_a_protocol_without_tls_needs_nothing(protocol: str) -> None:
    assert client_tls({"security.protocol": protocol}) is None
    assert client_tls({}) is None


def test_servers_are_checked_and_named_unless_that_is_switched_off() -> None:
    context = client_tls(properties())
    assert context is not None
    assert context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED
    context = client_tls(properties(ssl_endpoint_identification_algorithm=""))
    assert context is not None
    assert not context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED


def test_without_a_trust_store_the_machines_authorities_count() -> None:
    assert client_tls({"security.protocol": "SASL_SSL"}) is not None


def test_a_clients_own_certificate_is_loaded(tmp_path: Path) -> None:
    path = AUTHORITY.sign("client", ()).write(tmp_path, "client")
    assert client_tls(properties(ssl_keystore_type="PEM", ssl_keystore_location=str(path)))


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"ssl_provider": "BC"}, "ssl.provider is refused: Java's security providers"),
        ({"ssl_truststore_certificates": "x"}, "At least one certificate expected"),
        ({"ssl_enabled_protocols": "TLSv1"}, "ssl.enabled.protocols=TLSv1 is refused"),
        ({"ssl_endpoint_identification_algorithm": "ldaps"}, "algorithm=ldaps is refused"),
        ({"ssl_keystore_location": "/no"}, "SSL key store is specified, but key store password"),
    ],
)
def test_what_cannot_be_used_is_one_line(changed: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        client_tls(properties(**changed))
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)
