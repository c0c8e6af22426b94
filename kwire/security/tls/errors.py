"""What is wrong with settings of TLS."""

from __future__ import annotations

from kwire.config.errors import ConfigError


class TlsError(ConfigError):
    """Settings of TLS that cannot be used, one line; it names files and settings, never secrets."""
