"""Nodes and clients that log in by tokens of an issuer: their settings, and the issuer."""

from __future__ import annotations

import json

from tests.support.issuer import Issuer
from tests.support.sasl import OAUTH_MODULE
from tests.support.token_endpoint import Asked, Reply, TokenEndpoint

HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
SECRET = "the-secret-of-the-nodes"
ALLOWED = "-Dorg.apache.kafka.sasl.oauthbearer.allowed"


class IssuedLogins:
    """`endpoint` gives tokens at /token, for `seconds` each, and keys at /keys."""

    def __init__(self, seconds: int = 600) -> None:
        self.issuer = Issuer()
        self.seconds = seconds
        self.endpoint = TokenEndpoint(self._answer)
        self.is_silent = False

    def _answer(self, asked: Asked) -> Reply:
        if asked.path == "/keys":
            return Reply(200, self.issuer.jwks)
        if self.is_silent:
            return Reply(503, "{}")
        lifetime = {"exp": self.issuer.now_s + self.seconds, "iat": self.issuer.now_s}
        token = self.issuer.token(sub="admin", **lifetime)
        return Reply(200, json.dumps({"access_token": token}))

    @property
    def tokens(self) -> int:
        """How many were given."""
        return sum(asked.path == "/token" for asked in self.endpoint.asked)

    @property
    def allowed(self) -> str:
        """What goes into KAFKA_OPTS."""
        return f"{ALLOWED}.urls={self.endpoint.url}/token,{self.endpoint.url}/keys"

    def client(self) -> dict[str, str]:
        """Of a client, whose listener has no TLS."""
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{OAUTH_MODULE} required;",
            **self._login(),
        }

    def node(self) -> dict[str, str]:
        """Of a node whose listeners PLAINTEXT and CONTROLLER have such logins."""
        return {
            "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "sasl.mechanism.controller.protocol": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": f"{self.endpoint.url}/keys",
            "sasl.oauthbearer.expected.audience": "kwire",
            "sasl.oauthbearer.allow.unverified.issuer": "true",
            **self._login(),
            **{
                f"listener.name.{name}.oauthbearer.sasl.jaas.config": f"{OAUTH_MODULE} required;"
                for name in ("plaintext", "controller")
            },
            **{
                f"listener.name.{name}.oauthbearer.sasl.server.callback.handler.class": (
                    "org.apache.kafka.common.security.oauthbearer."
                    "OAuthBearerValidatorCallbackHandler"
                )
                for name in ("plaintext", "controller")
            },
            # Apache Kafka's nodes look for it there alone.
            **{
                f"listener.name.{name}.oauthbearer.sasl.login.callback.handler.class": HANDLER
                for name in ("plaintext", "controller")
            },
        }

    def _login(self) -> dict[str, str]:
        return {
            "sasl.login.callback.handler.class": HANDLER,
            "sasl.oauthbearer.token.endpoint.url": f"{self.endpoint.url}/token",
            "sasl.oauthbearer.client.credentials.client.id": "nodes",
            "sasl.oauthbearer.client.credentials.client.secret": SECRET,
        }
