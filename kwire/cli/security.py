"""`kwire security check`: reads a configuration, or asks a cluster, and names weaknesses."""

from __future__ import annotations

import datetime
from typing import Annotated

import typer

from kwire.cli import output
from kwire.cli.client import Client
from kwire.cli.options import AsJson, CommandConfig
from kwire.cli.verbs import Verbs
from kwire.client.errors import ClientError, check
from kwire.config.broker_config import BrokerConfig
from kwire.config.errors import ConfigError
from kwire.protocol import messages as m
from kwire.security import weaknesses
from kwire.security.weaknesses import CertificateFacts, Weakness

BROKER_RESOURCE = 4
MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}

security_app = typer.Typer(
    cls=Verbs, no_args_is_help=True, help="What a configuration leaves open."
)


@security_app.callback()
def _group() -> None:
    """Keeps `check` a command of its own."""


@security_app.command("check")
def security_check(
    config: Annotated[
        str | None, typer.Option("--config", help="A server.properties to read.")
    ] = None,
    bootstrap: Annotated[
        str | None,
        typer.Option("--bootstrap", "--bootstrap-server", help="A running cluster to ask."),
    ] = None,
    command_config: CommandConfig = None,
    as_json: AsJson = False,
) -> None:
    """Name what is weak; the exit status is 1 where something is."""
    if (config is None) == (bootstrap is None):
        raise typer.BadParameter("either --config FILE or --bootstrap HOST:PORT")
    try:
        if config is not None:
            found = _of_file(config)
        else:
            with Client(bootstrap or "", command_config=command_config) as client:
                found = _of_cluster(client)
    except ConfigError as error:
        raise ClientError(str(error)) from None
    output.table(("where", "what"), list(dict.fromkeys(found)), as_json=as_json)
    if found:
        raise typer.Exit(1)


def _of_file(path: str) -> list[Weakness]:
    from kwire.config.properties import read_properties

    config = BrokerConfig.load(properties=read_properties(path), developer=False)
    return weaknesses.of_settings(config.texts) + weaknesses.of_certificates(_certificates(config))


def _certificates(config: BrokerConfig) -> list[CertificateFacts]:
    """Of the listeners' key stores; ConfigError where one cannot be used."""
    from kwire.config.listener_settings import ListenerSettings
    from kwire.security.tls.settings import TlsSettings
    from kwire.security.tls.stores import load_key_store

    facts = []
    for listener in config.listeners():
        if listener.protocol.endswith("SSL"):
            settings = TlsSettings.read(ListenerSettings(config, listener.name))
            for entry in load_key_store(settings.key_store):
                facts.append(_facts(f"listener {listener}", entry.chain[0]))
    return facts


def _facts(where: str, certificate: bytes) -> CertificateFacts:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec, rsa
    except ImportError:
        raise ClientError("certificates are looked at with pip install 'kwire[tls]'") from None
    loaded = x509.load_der_x509_certificate(certificate)
    key = loaded.public_key()
    kind, bits = "another", 0
    if isinstance(key, rsa.RSAPublicKey):
        kind, bits = "RSA", key.key_size
    elif isinstance(key, ec.EllipticCurvePublicKey):
        kind, bits = "EC", key.key_size
    signed_with = loaded.signature_hash_algorithm
    left = loaded.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    name = "" if signed_with is None else signed_with.name
    return CertificateFacts(where, kind, bits, name, left / datetime.timedelta(days=1))


def _of_cluster(client: Client) -> list[Weakness]:
    """By what the brokers say of their settings and users."""
    found: list[Weakness] = []
    for broker in client.metadata([]).brokers:
        request = m.DescribeConfigsRequest(
            resources=[
                m.DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=BROKER_RESOURCE,
                    resource_name=str(broker.node_id),
                    configuration_keys=None,
                )
            ]
        )
        (result,) = client.call(request, broker.node_id).results
        check(result.error_code, f"broker {broker.node_id}", result.error_message)
        texts = {one.name: one.value for one in result.configs if one.value is not None}
        found += weaknesses.of_settings(texts)
    answer = client.call(m.DescribeUserScramCredentialsRequest(users=None))
    check(answer.error_code, "users", answer.error_message)
    iterations = {
        (user.user, MECHANISMS.get(one.mechanism, "SCRAM")): one.iterations
        for user in answer.results
        for one in user.credential_infos
    }
    return found + weaknesses.of_users(iterations)
