"""What is wrong with settings of TLS."""

from __future__ import annotations

from kwire.config.errors import ConfigError

CONFIG, CONFIGURATION = (
    "org.apache.kafka.common.config.ConfigException",
    "org.apache.kafka.common.errors.InvalidConfigurationException",
)


class TlsError(ConfigError):
    """Settings of TLS that cannot be used, one line; it names files and settings, never secrets."""

    kind = CONFIGURATION
    """Kafka's exception, which it tells its clients."""
    kafka = ""
    """Kafka's words, where they are others."""

    def in_kafkas_words(self) -> str:
        """What a client is told that changes the settings (measured on Apache Kafka 4.4)."""
        return (
            "Validation of dynamic config update of SSLFactory failed: "
            f"{self.kind}: {self.kafka or self}"
        )


class ReplacementRefused(TlsError):
    """A store that may not take the place of the one before."""

    kind = CONFIG
