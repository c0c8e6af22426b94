"""System properties of Java that say something about Kafka's security: `-Dname=value` in
`KAFKA_OPTS`, as for Kafka's own start script, or `-o name=value`.

They are no settings of a broker: a file of settings cannot widen what they allow.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

LOGIN_CONFIG = "java.security.auth.login.config"
ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
ALLOWED_FILES = "org.apache.kafka.sasl.oauthbearer.allowed.files"
KNOWN = (LOGIN_CONFIG, ALLOWED_URLS, ALLOWED_FILES)
VARIABLE = "KAFKA_OPTS"


def java_properties(environment: Mapping[str, str], overrides: Mapping[str, str]) -> dict[str, str]:
    """The known ones that are set, by name; the command line wins. What cannot be read is not."""
    found: dict[str, str] = {}
    try:
        words = shlex.split(environment.get(VARIABLE, ""))
    except ValueError:  # Java's own start would fail
        words = []
    for word in words:
        name, equals, value = word.removeprefix("-D").partition("=")
        if word.startswith("-D") and equals and name in KNOWN:
            found[name] = value
    return found | {name: value for name, value in overrides.items() if name in KNOWN}


def listed(properties: Mapping[str, str], name: str) -> list[str]:
    """The entries of a property that is a list; none where it is not set, as in Kafka 4."""
    return [
        entry for entry in (part.strip() for part in properties.get(name, "").split(",")) if entry
    ]
