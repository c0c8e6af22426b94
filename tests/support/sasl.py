"""Listeners with SASL for tests: the settings, and who logs in with what."""

from __future__ import annotations

from collections.abc import Mapping

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
MODULES = {"PLAIN": PLAIN_MODULE, "SCRAM-SHA-256": SCRAM_MODULE, "SCRAM-SHA-512": SCRAM_MODULE}

USERS = {"admin": "admin-secret", "alice": "alice-secret", "u": "u-secret"}
"""Those of PLAIN."""


def jaas(mechanism: str, user: str | None = None, users: Mapping[str, str] | None = None) -> str:
    """A login module: who logs in (one of `USERS`), and who may."""
    options = {} if user is None else {"username": user, "password": USERS[user]}
    options |= {f"user_{name}": password for name, password in (users or {}).items()}
    text = "".join(f' {name}="{value}"' for name, value in options.items())
    return f"{MODULES[mechanism]} required{text};"


def sasl_settings(
    *listeners: str, mechanisms: tuple[str, ...] = ("PLAIN",), own: str | None = None
) -> dict[str, str]:
    """Settings of listeners with SASL; `own` is the user that a node logs in with at others."""
    found = {"sasl.enabled.mechanisms": ",".join(mechanisms)}
    for listener in listeners:
        for mechanism in mechanisms:
            users = USERS if mechanism == "PLAIN" else None
            name = f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"
            found[name] = jaas(mechanism, own, users)
    return found


def properties(mechanism: str, user: str, protocol: str = "SASL_PLAINTEXT") -> str:
    """The properties of a client that logs in as one of `USERS`."""
    return (
        f"security.protocol={protocol}\nsasl.mechanism={mechanism}\n"
        f"sasl.jaas.config={jaas(mechanism, user)}\n"
    )
