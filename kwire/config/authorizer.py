"""The settings of Kafka's StandardAuthorizer: super.users, allow.everyone.if.no.acl.found.

They are no configs of a broker but the authorizer's own, and read as it reads them.
Source: StandardAuthorizer.configure of Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Mapping

from kwire.config.errors import ConfigError

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
CLASS_NAME = "authorizer.class.name"
SUPER_USERS = "super.users"
ALLOW_EVERYONE = "allow.everyone.if.no.acl.found"
AUTHORIZER_SETTINGS = (SUPER_USERS, ALLOW_EVERYONE)
TOLD_AS = {f"kwire.{name}": name for name in AUTHORIZER_SETTINGS}
"""Keys by which a broker tells the settings of its authorizer, where a request names them. Under
their own names they have no value, as in Kafka, which takes whatever it does not know for a secret.
"""


def check_class(name: str) -> None:
    """Raise ConfigError for an authorizer that is not Kafka's own: Java cannot be loaded."""
    if name not in ("", STANDARD_AUTHORIZER):
        raise ConfigError(
            f"Invalid value {name} for configuration {CLASS_NAME}: Java plug-ins cannot be "
            f"loaded; accepted: {STANDARD_AUTHORIZER}, or nothing"
        )


def super_users(texts: Mapping[str, str]) -> frozenset[str]:
    """The principals of `super.users`, which are parted by `;`; ConfigError for one without a
    type."""
    found = []
    for text in texts.get(SUPER_USERS, "").split(";"):
        principal = text.strip()
        if not principal:
            continue
        kind, colon, _ = principal.partition(":")
        if not colon or not kind:
            raise ConfigError(
                f"{SUPER_USERS}: expected a string in format principalType:principalName but "
                f"got {principal}; accepted: principals like User:admin, parted by ;"
            )
        found.append(principal)
    return frozenset(found)


def allow_everyone(texts: Mapping[str, str]) -> bool:
    """Whether a resource without ACLs is for everybody; whatever is not `true` means no."""
    return texts.get(ALLOW_EVERYONE, "").strip().lower() == "true"
