"""`kwire serve --secure`: a broker with TLS and a login, for who develops against such a one.

What it makes on first use is kept as files of the data directory, readable by its owner alone
(a directory in there would be a partition's):

    kwire-authority-key.pem   the key of an authority of this broker's own
    kwire-authority.pem       its certificate, which clients trust
    kwire-node.pem            the broker's key and certificate
    kwire-client.properties   the settings of a client, as Kafka's tools take them

The certificate is made anew when it is about to expire, or lacks a name that clients are told.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from kwire.cli.secret_files import SECURE_CLIENT, write_secret
from kwire.config.errors import ConfigError
from kwire.config.listeners import CLIENT_PROTOCOL
from kwire.config.properties import read_properties
from kwire.security.sasl.jaas import SCRAM_MODULE

AUTHORITY_KEY, AUTHORITY = "kwire-authority-key.pem", "kwire-authority.pem"
NODE, CLIENT = "kwire-node.pem", SECURE_CLIENT
PROTOCOL, MECHANISM, USER = "SASL_SSL", "SCRAM-SHA-512", "admin"
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
PASSWORD_BYTES = 18
ITERATIONS = 16_384


class Secure(NamedTuple):
    """`settings` of the broker, `scram` as `kwire format --add-scram` takes it, and what clients
    need to know."""

    settings: dict[str, str]
    scram: str
    directory: str
    password: str

    def __repr__(self) -> str:
        return f"Secure({self.directory!r})"


def prepare(directory: str, names: list[str]) -> Secure:
    """Make what is missing; `names` are those of this host that clients connect to. OSError,
    ImportError without `cryptography`, ConfigError for client settings that cannot be read."""
    from kwire.cli.certificates import renew

    is_used = os.path.exists(os.path.join(directory, "meta.properties"))
    if is_used and not os.path.exists(os.path.join(directory, CLIENT)):
        raise ConfigError(f"{directory} was made without it: there is no user to log in as")
    os.makedirs(directory, exist_ok=True)
    paths = [os.path.join(directory, name) for name in (AUTHORITY_KEY, AUTHORITY, NODE)]
    renew(paths[0], paths[1], paths[2], [*LOCAL_NAMES, *names])
    password = _password(os.path.join(directory, CLIENT), paths[1])
    listener = f"listener.name.{PROTOCOL.lower()}.{MECHANISM.lower()}"
    settings = {
        "inter.broker.listener.name": PROTOCOL,
        "sasl.enabled.mechanisms": MECHANISM,
        "sasl.mechanism.inter.broker.protocol": MECHANISM,
        f"{listener}.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": paths[2],
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": paths[1],
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{USER}",
    }
    scram = f"{MECHANISM}=[name={USER},iterations={ITERATIONS},password={password}]"
    return Secure(settings, scram, directory, password)


def _password(path: str, authority: str) -> str:
    """The password in the client's settings, which are written where there are none."""
    if os.path.exists(path):
        text = read_properties(path).get("sasl.jaas.config", "")
        password = text.partition('password="')[2].partition('"')[0]
        if not password:
            raise ConfigError(f"{path} has no password in sasl.jaas.config: remove it or put it in")
        return password
    from base64 import urlsafe_b64encode

    from kwire.clock import SystemRandom

    password = urlsafe_b64encode(SystemRandom().random_bytes(PASSWORD_BYTES)).decode()
    write_secret(path, client_properties(authority, password).encode())
    return password


def client_properties(authority: str, password: str) -> str:
    """What Kafka's tools, and `kwire --command-config`, connect with."""
    login = f'{SCRAM_MODULE} required username="{USER}" password="{password}";'
    return "".join(
        f"{name}={text}\n"
        for name, text in {
            CLIENT_PROTOCOL: PROTOCOL,
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": login,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": authority,
        }.items()
    )


def client_settings(secure: Secure, address: str) -> str:
    """Ready to be copied, by client. The password is in there: it is the user's terminal."""
    authority = os.path.join(secure.directory, AUTHORITY)
    properties = os.path.join(secure.directory, CLIENT)
    password = secure.password
    return f"""\
clients log in as {USER}; with Java and Kafka's tools, and with kwire:
  --bootstrap-server {address} --command-config {properties}
Python (confluent-kafka), kcat with -X name=value (SCRAM needs librdkafka 2.6.1 or newer):
  bootstrap.servers={address}
  security.protocol={PROTOCOL}
  sasl.mechanisms={MECHANISM}
  sasl.username={USER}
  sasl.password={password}
  ssl.ca.location={authority}
Python (kafka-python):
  bootstrap_servers="{address}", security_protocol="{PROTOCOL}",
  sasl_mechanism="{MECHANISM}", sasl_plain_username="{USER}",
  sasl_plain_password="{password}", ssl_cafile="{authority}"
Node (kafkajs):
  brokers: ["{address}"], ssl: {{ ca: [fs.readFileSync("{authority}")] }},
  sasl: {{ mechanism: "scram-sha-512", username: "{USER}", password: "{password}" }}
Spark, options of format("kafka"): kafka. and each line of {properties}
"""
