"""Key stores and trust stores: what is read, what is refused in Kafka's words, what never shows."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from kwire.config import BrokerConfig, ConfigError
from kwire.config.dynamic import DynamicConfig
from kwire.config.listener_settings import ListenerSettings
from kwire.security.tls.contexts import Material, client_context, server_context
from kwire.security.tls.endpoint import TlsEndpoint
from kwire.security.tls.settings import TlsSettings
from tests.support.certificates import Authority

AUTHORITY = Authority()
NODE = AUTHORITY.sign("node")
OTHER = AUTHORITY.sign("other")


def settings_of(options: dict[str, str], listener: str = "SSL") -> ListenerSettings:
    config = BrokerConfig.load(overrides=options)
    return ListenerSettings(DynamicConfig(config), listener)


def made(options: dict[str, str]) -> ssl.SSLContext:
    settings = TlsSettings.read(settings_of(options))
    return server_context(settings, Material.load(settings))


def refusal(options: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as caught:
        made(options)
    return str(caught.value)


def shaken_hands(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> ssl.SSLObject:
    """The client's side after a handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = server.wrap_bio(to_server, to_client, server_side=True)
    other = client.wrap_bio(to_client, to_server, server_hostname=name)
    for _ in range(10):
        for side in (other, one):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                pass
    return other


def inline(certificate: str, key: str) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": certificate,
        "ssl.keystore.key": key,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": AUTHORITY.pem,
    }


def in_one_line(text: str) -> str:
    """As it stands in a file of properties."""
    return text.replace("\n", " ")


@pytest.mark.parametrize(
    "shape", ["file", "inline", "one line", "encrypted", "pkcs12", "pkcs12 as JKS"]
)
def test_a_node_shows_the_certificate_of_its_store(shape: str, tmp_path: Path) -> None:
    options = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": AUTHORITY.pem}
    if shape == "file":
        path = NODE.write(tmp_path, "node")
        options |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)}
    elif shape == "inline":
        options |= inline(NODE.pem, NODE.key_pem())
    elif shape == "one line":
        options |= inline(in_one_line(NODE.pem), in_one_line(NODE.key_pem()))
    elif shape == "encrypted":
        options |= inline(NODE.pem, NODE.key_pem("word")) | {"ssl.key.password": "word"}
    else:
        path = tmp_path / "node.p12"
        path.write_bytes(NODE.pkcs12("word"))
        kind = "JKS" if shape.endswith("JKS") else "PKCS12"
        options |= {
            "ssl.keystore.type": kind,
            "ssl.keystore.location": str(path),
            "ssl.keystore.password": "word",
        }
    endpoint = TlsEndpoint(settings_of(options))
    client = shaken_hands(endpoint.server_context(), endpoint.client_context(), "localhost")
    assert client.version() == "TLSv1.3"
    assert client.getpeercert(binary_form=True) == NODE.der


def test_what_does_not_belong_together_is_refused_in_kafkas_words(tmp_path: Path) -> None:
    both = inline(NODE.pem, NODE.key_pem())
    path = str(NODE.write(tmp_path, "node"))
    pem_file = {"ssl.keystore.type": "PEM", "ssl.keystore.location": path}
    told = {
        "SSL private key is specified, but certificate chain is not specified.": {
            name: text for name, text in both.items() if not name.endswith("chain")
        },
        "SSL certificate chain is specified, but private key is not specified": {
            name: text for name, text in both.items() if not name.endswith("key")
        },
        "Both SSL key store location and separate private key are specified.": both | pem_file,
        "SSL key store password cannot be specified with PEM format, only key password may be "
        "specified": pem_file | {"ssl.keystore.password": "x"},
        "SSL key store is specified, but key store password is not specified.": {
            "ssl.keystore.location": path
        },
        "SSL key store is not specified, but key store password is specified.": {
            "ssl.keystore.password": "x"
        },
        "Both SSL trust store location and separate trust certificates are specified.": both
        | {"ssl.truststore.location": path},
        "SSL trust store password cannot be specified for PEM format.": both
        | {"ssl.truststore.password": "x"},
        "SSL trust store is not specified, but trust store password is specified.": pem_file
        | {"ssl.truststore.password": "x"},
    }
    assert {text: refusal(options) for text, options in told.items()} == {
        text: text for text in told
    }


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"ssl.keystore.location": "/no/such"}, "key store /no/such cannot be read: No such file"),
        (
            {
                "ssl.keystore.type": "BKS",
                "ssl.keystore.location": "x",
                "ssl.keystore.password": "x",
            },
            "Invalid value BKS for configuration ssl.keystore.type: accepted are PEM, PKCS12",
        ),
        ({"ssl.protocol": "TLSv1"}, "ssl.protocol=TLSv1 is refused: accepted are TLS"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "ssl.enabled.protocols=TLSv1.1 is refused"),
        ({"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"}, "cannot leave out TLS_CHACHA20"),
        ({"ssl.cipher.suites": "TLS_NULL"}, "Invalid value TLS_NULL for configuration ssl.cipher"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(options: dict[str, str], told: str) -> None:
    base = inline(NODE.pem, NODE.key_pem())
    if "ssl.keystore.location" in options:
        base = {"ssl.keystore.type": "PEM"}
    assert told in refusal(base | options)


def test_a_key_that_is_not_the_certificates_is_refused_without_showing_it() -> None:
    key = OTHER.key_pem()
    message = refusal(inline(NODE.pem, key))
    assert message == "Private key could not be loaded: it is not the key of the certificate"
    message = refusal(inline(NODE.pem, NODE.key_pem("word")) | {"ssl.key.password": "hunter2"})
    assert "ssl.key.password is not its password" in message
    assert "hunter2" not in message


def test_an_encrypted_key_without_a_password_does_not_ask_at_the_terminal() -> None:
    assert "cannot be read" in refusal(inline(NODE.pem, NODE.key_pem("word")))


def test_a_listeners_own_settings_go_before_those_of_all() -> None:
    options = inline(NODE.pem, NODE.key_pem()) | {
        "listener.name.inside.ssl.keystore.certificate.chain": OTHER.pem,
        "listener.name.inside.ssl.keystore.key": OTHER.key_pem(),
        "listener.name.inside.ssl.client.auth": "required",
    }
    inside = TlsSettings.read(settings_of(options, "INSIDE"))
    outside = TlsSettings.read(settings_of(options, "OUTSIDE"))
    assert (inside.client_auth, outside.client_auth) == ("required", "none")
    assert Material.load(inside).keys[0].chain == (OTHER.der,)
    assert Material.load(outside).keys[0].chain == (NODE.der,)


def test_suites_and_versions_are_those_that_were_asked_for() -> None:
    base = inline(NODE.pem, NODE.key_pem())
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    options = base | {"ssl.cipher.suites": suite}
    settings = TlsSettings.read(settings_of(options))
    server = made(options)
    client = shaken_hands(server, client_context(settings, Material.load(settings)), "localhost")
    assert client.cipher() == ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLSv1.2", 256)
    options = base | {"ssl.enabled.protocols": "TLSv1.2"}
    assert made(options).maximum_version == ssl.TLSVersion.TLSv1_2


def test_secrets_are_not_in_what_the_settings_show() -> None:
    options = inline(NODE.pem, NODE.key_pem("hunter2")) | {"ssl.key.password": "hunter2"}
    settings = TlsSettings.read(settings_of(options))
    shown = repr(settings) + repr(Material.load(settings).keys)
    assert "hunter2" not in shown
    assert "PRIVATE" not in shown


def test_a_bad_replacement_leaves_the_old_one(tmp_path: Path) -> None:
    path = NODE.write(tmp_path, "node")
    options = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(path),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": AUTHORITY.pem,
    }
    endpoint = TlsEndpoint(settings_of(options))
    before = endpoint.server_context()
    path.write_text(NODE.key_pem())
    assert endpoint.files_changed()
    with pytest.raises(ConfigError, match="At least one certificate expected, but none found"):
        endpoint.reload()
    assert endpoint.server_context() is before
    assert not endpoint.files_changed()
    OTHER.write(tmp_path, "node")
    with pytest.raises(ConfigError, match="Keystore DistinguishedName does not match"):
        endpoint.reload()
    with_less = AUTHORITY.sign("node", ("localhost",))
    with_less.write(tmp_path, "node")
    with pytest.raises(ConfigError, match="Keystore SubjectAltNames do not match"):
        endpoint.reload()
    with_more = AUTHORITY.sign("NODE", ("localhost", "127.0.0.1", "here.example"))
    with_more.write(tmp_path, "node")
    assert endpoint.files_changed()
    endpoint.reload()
    after = endpoint.server_context()
    assert after is not before
    client = shaken_hands(after, endpoint.client_context(), "here.example")
    assert client.getpeercert(binary_form=True) == with_more.der
