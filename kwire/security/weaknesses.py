"""What a configuration leaves open to those who should not get in: `kwire security check`.

Pure: settings as texts in, findings out. A listener is judged by its protocol, its login and its
certificate, one of HTTP by who can read what goes over it, the node by who may do what.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kwire.config.definitions import BROKER, KWIRE
from kwire.config.java_classes import CALLBACK_HANDLER, UNSECURED_TOKENS
from kwire.config.listener_settings import names_of_listener
from kwire.config.listeners import Listener, is_loopback, parse_listeners, parse_protocol_map
from kwire.config.values import to_text
from kwire.security.authorizer import ANONYMOUS

AUTHORIZER, SUPER_USERS = "authorizer.class.name", "super.users"
EVERYONE = "allow.everyone.if.no.acl.found"
OAUTHBEARER = "OAUTHBEARER"
ITERATIONS_FEW = 4096
"""Kafka's own number, of 2013: what has more is better."""
RSA_BITS_MIN, EC_BITS_MIN, DAYS_LEFT_MIN = 2048, 224, 30
WEAK_HASHES = ("md5", "sha1")


class Weakness(NamedTuple):
    """`where` is a setting, a listener, a user or a file; `what` is wrong there."""

    where: str
    what: str


class CertificateFacts(NamedTuple):
    """What counts of one certificate: `kind` of its key is RSA, EC or another; days may be
    negative."""

    where: str
    kind: str
    key_bits: int
    hash: str
    days_left: float


def of_settings(texts: Mapping[str, str]) -> list[Weakness]:
    """The weaknesses of a node's settings, those that are set; ConfigError for malformed ones."""
    node = _Node(texts)
    found = [weakness for listener in node.listeners for weakness in _of_listener(node, listener)]
    return found + _of_http(node) + _of_rights(node)


def of_certificates(facts: Iterable[CertificateFacts]) -> list[Weakness]:
    """Expired and weak ones."""
    found = []
    for one in facts:
        if one.days_left < 0:
            found.append(
                Weakness(one.where, f"the certificate expired {-one.days_left:.0f} days ago")
            )
        elif one.days_left < DAYS_LEFT_MIN:
            found.append(
                Weakness(one.where, f"the certificate expires in {one.days_left:.0f} days")
            )
        bits_min = {"RSA": RSA_BITS_MIN, "EC": EC_BITS_MIN}.get(one.kind, 0)
        if one.key_bits < bits_min:
            found.append(Weakness(one.where, f"a key of {one.key_bits} bits is weak"))
        if one.hash in WEAK_HASHES:
            found.append(Weakness(one.where, f"the certificate is signed with {one.hash}"))
    return found


def of_users(iterations: Mapping[tuple[str, str], int]) -> list[Weakness]:
    """Users by (name, mechanism) with the iterations of their passwords."""
    return [
        Weakness(f"user {name}", f"{mechanism} with {count} iterations is quickly tried out")
        for (name, mechanism), count in iterations.items()
        if count <= ITERATIONS_FEW
    ]


class _Node:
    """Settings as texts, with Kafka's defaults and kwire's."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        protocols = parse_protocol_map(self["listener.security.protocol.map"])
        if "listener.security.protocol.map" not in texts:
            for name in self["controller.listener.names"].split(","):
                protocols.setdefault(name.strip().upper(), "PLAINTEXT")
        entries = [entry.strip() for entry in self["listeners"].split(",") if entry.strip()]
        self.listeners = parse_listeners("listeners", entries, protocols)

    def __getitem__(self, name: str) -> str:
        text = self._texts.get(name)
        if text is None:
            definition = BROKER.get(name) or KWIRE.get(name)
            text = None if definition is None else to_text(definition.default)
        return text or ""

    def of(self, listener: Listener, name: str, mechanism: str = "") -> str:
        for own in names_of_listener(listener.name, name, mechanism):
            if own in self._texts:
                return self._texts[own]
        return self[name]


def _of_listener(node: _Node, listener: Listener) -> list[Weakness]:
    found = []
    where = f"listener {listener}"
    is_local = is_loopback(listener.host)
    mechanisms = [one.strip() for one in node.of(listener, "sasl.enabled.mechanisms").split(",")]
    has_login = listener.has_sasl
    if not listener.protocol.endswith("SSL"):
        if has_login and "PLAIN" in mechanisms:
            found.append(
                Weakness(where, "PLAIN without TLS: passwords are readable on the network")
            )
        elif not is_local:
            found.append(Weakness(where, f"{listener.protocol} is not encrypted"))
    if has_login and OAUTHBEARER in mechanisms:
        found += [Weakness(where, what) for what in _of_tokens(node, listener)]
    client_auth = node.of(listener, "ssl.client.auth")
    is_known = has_login or (listener.protocol == "SSL" and client_auth == "required")
    if not is_known and not is_local:
        found.append(Weakness(where, "nobody has to say who they are"))
    if listener.protocol.endswith("SSL") and not node.of(
        listener, "ssl.endpoint.identification.algorithm"
    ):
        found.append(Weakness(where, "the names of other nodes are not compared"))
    return found


def _of_tokens(node: _Node, listener: Listener) -> list[str]:
    """What is wrong with the tokens that a listener takes, and with those of the node itself."""

    def text(name: str) -> str:
        return node.of(listener, name, OAUTHBEARER).strip()

    if text(CALLBACK_HANDLER) == UNSECURED_TOKENS:
        return ["unsecured tokens are taken: anybody can be anybody"]
    found = []
    if text("sasl.oauthbearer.jwks.endpoint.url").startswith("http:"):
        found.append("the keys of tokens come without TLS: whoever is between gives others")
    if text("sasl.oauthbearer.token.endpoint.url").startswith("http:"):
        found.append("this node's own tokens and its secret go over the network without TLS")
    if not text("sasl.oauthbearer.expected.audience"):
        found.append("tokens for any audience are taken")
    if not text("sasl.oauthbearer.expected.issuer"):
        found.append("tokens of any issuer with these keys are taken")
    return found


def _of_http(node: _Node) -> list[Weakness]:
    found = []
    has_login = node["http.authentication"].strip() != "none"
    for entry in filter(None, map(str.strip, node["http.listeners"].split(","))):
        scheme, _, address = entry.partition("://")
        host = address.removesuffix("/").rpartition(":")[0].strip("[]")
        if is_loopback(host):
            continue
        where = f"http.listeners {entry}"
        if not has_login:
            found.append(Weakness(where, "nobody has to say who they are"))
        elif not scheme.lower().endswith("https"):
            found.append(Weakness(where, "passwords without TLS: they are readable on the network"))
    return found


def _of_rights(node: _Node) -> list[Weakness]:
    if not node[AUTHORIZER]:
        return [Weakness(AUTHORIZER, "there is no authorizer: everyone may do everything")]
    found = []
    if node[EVERYONE].strip().lower() == "true":
        found.append(Weakness(EVERYONE, "everyone may use what has no ACLs"))
    if ANONYMOUS in [user.strip() for user in node[SUPER_USERS].split(";")]:
        found.append(Weakness(SUPER_USERS, "who has not said who they are may do everything"))
    return found
