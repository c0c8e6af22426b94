"""Client settings by Kafka's names, for Spark's connector (Java) and for librdkafka.

Most names are the same. What differs is where secrets stand: Java has a JAAS line and key stores,
librdkafka has a user name, a password and PEM files. Settings that only one side knows are left
out of the other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kwire.config.errors import ConfigError
from kwire.config.listeners import CLIENT_PROTOCOL, PROTOCOLS, WITH_SASL
from kwire.config.properties import read_properties
from kwire.spark.usage import UsageError, pairs

_JAAS = re.compile(r'(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]+))')
_PEM = {
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.key.password": "ssl.key.password",
    "ssl.endpoint.identification.algorithm": "ssl.endpoint.identification.algorithm",
}
_SAME = (
    CLIENT_PROTOCOL,
    "client.id",
    "client.rack",
    "request.timeout.ms",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "metadata.max.age.ms",
    "sasl.kerberos.service.name",
)
# Options of a producer that both sides know.
PRODUCER = (
    "acks",
    "batch.size",
    "linger.ms",
    "compression.type",
    "delivery.timeout.ms",
    "max.request.size",
    "retries",
    "retry.backoff.ms",
)
_RENAMED_PRODUCER = {"max.request.size": "message.max.bytes"}
REFUSED = (
    "bootstrap.servers",
    "key.serializer",
    "value.serializer",
    "key.deserializer",
    "value.deserializer",
    "enable.auto.commit",
    "auto.offset.reset",
    "group.id",
    "isolation.level",
    "transactional.id",
    "enable.idempotence",
)


def read_settings(path: str | None, texts: Sequence[str], option: str) -> dict[str, str]:
    """The client's settings: those of a file of properties, and `NAME=VALUE` of an option, which
    counts where both are. UsageError, one line, for what cannot be read or used."""
    try:
        found = {} if path is None else read_properties(path)
    except ConfigError as error:
        raise UsageError(str(error)) from None
    found |= pairs(texts, option)
    check_settings(found)
    return found


def check_settings(settings: Mapping[str, str]) -> None:
    """UsageError for settings that a job decides itself or that lack their counterpart."""
    for name in settings:
        plain = name.removeprefix("kafka.")
        if plain in REFUSED:
            raise UsageError(f"client setting {plain}: the job sets this itself")
    protocol = settings.get(CLIENT_PROTOCOL, "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise UsageError(f"client setting security.protocol={protocol}: no such protocol")
    if protocol in WITH_SASL and "sasl.mechanism" not in settings:
        raise UsageError("client setting sasl.mechanism is needed for SASL")


def connector_options(bootstrap: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Options of Spark's `format("kafka")`."""
    options = {"kafka.bootstrap.servers": bootstrap}
    for name, value in settings.items():
        plain = name.removeprefix("kafka.")
        if plain not in PRODUCER:
            options[f"kafka.{plain}"] = value
    return options


def client_config(
    bootstrap: str, settings: Mapping[str, str], *, producer: bool = False
) -> dict[str, str]:
    """librdkafka's configuration. UsageError for a key store that is not PEM."""
    config = {"bootstrap.servers": bootstrap}
    for name, value in settings.items():
        plain = name.removeprefix("kafka.")
        if plain in _SAME:
            config[plain] = value
        elif plain in _PEM:
            config[_PEM[plain]] = value
        elif plain == "sasl.mechanism":
            config["sasl.mechanisms"] = value
        elif plain == "sasl.jaas.config":
            config |= parse_jaas(value)
        elif plain in ("ssl.truststore.type", "ssl.keystore.type") and value.upper() != "PEM":
            raise UsageError(f"client setting {plain}={value}: only PEM is understood")
        elif plain == "ssl.keystore.location":
            config |= {"ssl.certificate.location": value, "ssl.key.location": value}
        elif producer and plain in PRODUCER:
            config[_RENAMED_PRODUCER.get(plain, plain)] = value
    if config.get("ssl.endpoint.identification.algorithm", "https") == "":
        config["ssl.endpoint.identification.algorithm"] = "none"
    return config


def parse_jaas(text: str) -> dict[str, str]:
    """User name and password of a JAAS line of the plain or SCRAM login module."""
    if "PlainLoginModule" not in text and "ScramLoginModule" not in text:
        raise UsageError("client setting sasl.jaas.config: only PLAIN and SCRAM are understood")
    found = {
        name: re.sub(r"\\(.)", r"\1", quoted) if quoted else bare
        for name, quoted, bare in _JAAS.findall(text)
    }
    if set(found) != {"username", "password"}:
        raise UsageError("client setting sasl.jaas.config: needs username and password")
    return {"sasl.username": found["username"], "sasl.password": found["password"]}
