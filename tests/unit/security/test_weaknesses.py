"""Each weakness of a configuration is named, and a good one has none."""

from __future__ import annotations

import pytest

from kwire.config.java_classes import UNSECURED_TOKENS
from kwire.security.weaknesses import (
    CertificateFacts,
    Weakness,
    of_certificates,
    of_settings,
    of_users,
)

GOOD = {
    "listeners": "SASL_SSL://0.0.0.0:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}


AUDIENCE, ISSUER = "sasl.oauthbearer.expected.audience", "sasl.oauthbearer.expected.issuer"
TOKENS = {"sasl.enabled.mechanisms": "OAUTHBEARER", AUDIENCE: "kwire", ISSUER: "https://i"}
UNSECURED = {
    "listener.name.sasl_ssl.oauthbearer.sasl.server.callback.handler.class": UNSECURED_TOKENS
}
HTTP = {"http.listeners": "http://127.0.0.1:80,m=https://:81", "http.authentication": "basic"}


def test_a_good_one_has_none() -> None:
    assert of_settings(GOOD) == []
    mutual = {"listeners": "SSL://0.0.0.0:9092", "ssl.client.auth": "required"}
    assert of_settings(GOOD | mutual) == []
    plain_over_tls = {"listener.name.sasl_ssl.sasl.enabled.mechanisms": "PLAIN"}
    assert of_settings(GOOD | plain_over_tls) == []
    assert of_settings(GOOD | TOKENS) == []
    assert of_settings(GOOD | HTTP) == []


@pytest.mark.parametrize(
    ("changed", "where", "told"),
    [
        ({"listeners": "PLAINTEXT://:9092"}, "listener PLAINTEXT://:9092", "is not encrypted"),
        ({"listeners": "SSL://:9092"}, "listener SSL://:9092", "nobody has to say who they are"),
        (
            {"listeners": "SASL_PLAINTEXT://:9092", "sasl.enabled.mechanisms": "PLAIN"},
            "listener SASL_PLAINTEXT://:9092",
            "PLAIN without TLS",
        ),
        (
            {"ssl.endpoint.identification.algorithm": ""},
            "listener SASL_SSL://0.0.0.0:9092",
            "names of other nodes are not compared",
        ),
        ({"authorizer.class.name": ""}, "authorizer.class.name", "everyone may do everything"),
        (
            {"allow.everyone.if.no.acl.found": "true"},
            "allow.everyone.if.no.acl.found",
            "has no ACLs",
        ),
        ({"super.users": "User:a;User:ANONYMOUS"}, "super.users", "may do everything"),
        (TOKENS | UNSECURED, "listener SASL_SSL://0.0.0.0:9092", "anybody can be anybody"),
        (TOKENS | {AUDIENCE: ""}, "listener SASL_SSL://0.0.0.0:9092", "any audience"),
        (
            TOKENS | {"sasl.oauthbearer.jwks.endpoint.url": "http://i/keys"},
            "listener SASL_SSL://0.0.0.0:9092",
            "keys of tokens come without TLS",
        ),
        (
            TOKENS | {"sasl.oauthbearer.token.endpoint.url": "http://i/token"},
            "listener SASL_SSL://0.0.0.0:9092",
            "own tokens and its secret",
        ),
        (TOKENS | {ISSUER: ""}, "listener SASL_SSL://0.0.0.0:9092", "any issuer"),
        (
            {"http.listeners": "m=https://0.0.0.0:80"},
            "http.listeners m=https://0.0.0.0:80",
            "nobody has to say who they are",
        ),
        (
            {"http.listeners": "http://[::]:80", "http.authentication": "basic"},
            "http.listeners http://[::]:80",
            "passwords without TLS",
        ),
    ],
)
def test_each_is_named(changed: dict[str, str], where: str, told: str) -> None:
    found = of_settings(GOOD | changed)
    assert any(one.where == where and told in one.what for one in found), found


def test_certificates_that_expire_or_are_weak() -> None:
    good = CertificateFacts("x", "RSA", 2048, "sha256", 400)
    assert of_certificates([good, good._replace(kind="EC", key_bits=256)]) == []
    told = of_certificates(
        [good._replace(days_left=-2), good._replace(days_left=5), good._replace(key_bits=1024)]
    )
    assert [one.what for one in told] == [
        "the certificate expired 2 days ago",
        "the certificate expires in 5 days",
        "a key of 1024 bits is weak",
    ]
    assert of_certificates([good._replace(hash="sha1")])[0].what.endswith("signed with sha1")


def test_users_with_few_iterations() -> None:
    found = of_users({("a", "SCRAM-SHA-256"): 4096, ("b", "SCRAM-SHA-256"): 16384})
    assert found == [Weakness("user a", "SCRAM-SHA-256 with 4096 iterations is quickly tried out")]
