"""A broker that nobody gets anything from without TLS and a name: for clients of every language.

`prepare` writes certificates, keys and a token into a directory, `options` are the settings of a
broker with three listeners, `write_settings` tells the programs of compat_tests where all that is:
a file of JSON, described in `compat_tests/README.md`.

Only these have rights: alice (PLAIN, SCRAM, OAUTHBEARER), `User:client` (by its certificate), and
whoever comes by the listener PLAINTEXT, for the test itself.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from tests.support.acls import STANDARD_AUTHORIZER
from tests.support.certificates import Authority
from tests.support.issuer import Issuer
from tests.support.sasl import PLAIN_MODULE

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
USER, PASSWORD = "alice", "alice-secret"
CERTIFICATE_USER = "client"
AUDIENCE = "kwire"
TOKEN_LIFE_S = 12 * 3600
"""Longer than any run of tests."""


def prepare(directory: Path) -> None:
    """The files that `options` and `write_settings` name."""
    directory.mkdir(parents=True, exist_ok=True)
    authority, issuer = Authority(), Issuer()
    authority.write(directory)
    authority.sign("node").write(directory, "node")
    client = authority.sign(CERTIFICATE_USER, ())
    client.write(directory, "client")  # key and certificate, as Java wants them
    (directory / "client-key.pem").write_text(client.key_pem())
    (directory / "client-certificate.pem").write_text(client.pem)
    (directory / "keys.json").write_bytes(issuer.jwks)
    token = issuer.token(sub=USER, aud=AUDIENCE, exp=int(time.time()) + TOKEN_LIFE_S)
    (directory / "token.jwt").write_text(token)


def options(directory: Path, plain: str, sasl_ssl: str, ssl: str) -> dict[str, str]:
    """The settings of the broker, by the addresses (`host:port`) of its listeners."""
    listeners = f"PLAINTEXT://{plain},SASL_SSL://{sasl_ssl},SSL://{ssl}"
    users = f'{PLAIN_MODULE} required user_{USER}="{PASSWORD}";'
    return {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": f"{directory}/node.pem",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": f"{directory}/authority.pem",
        "listener.name.ssl.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=([a-z]+)$/$1/",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.sasl_ssl.plain.sasl.jaas.config": users,
        "sasl.oauthbearer.jwks.endpoint.url": f"file://{directory}/keys.json",
        "org.apache.kafka.sasl.oauthbearer.allowed.files": f"{directory}/keys.json",
        "org.apache.kafka.sasl.oauthbearer.allowed.urls": f"file://{directory}/keys.json",
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.allow.unverified.issuer": "true",
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": f"User:{USER};User:{CERTIFICATE_USER};User:ANONYMOUS",
    }


def write_settings(directory: Path, sasl_ssl: str, ssl: str) -> Path:
    """What clients connect with."""
    path = directory / "clients.json"
    settings = {
        "sasl_ssl": sasl_ssl,
        "ssl": ssl,
        "authority": f"{directory}/authority.pem",
        "key": f"{directory}/client-key.pem",
        "certificate": f"{directory}/client-certificate.pem",
        "key_and_certificate": f"{directory}/client.pem",
        "user": USER,
        "password": PASSWORD,
        "token": (directory / "token.jwt").read_text(),
        "token_file": f"{directory}/token.jwt",
    }
    path.write_text(json.dumps(settings, indent=1) + "\n")
    return path
