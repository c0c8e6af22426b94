"""Which settings belong to config providers: all that a node knows of them until one is set."""

from __future__ import annotations

from collections.abc import Mapping

PROVIDERS = "config.providers"
PREFIX = "config.providers."


def is_provider_setting(name: str) -> bool:
    """Whether a setting is `config.providers` or belongs to it."""
    return name == PROVIDERS or name.startswith(PREFIX)


def has_providers(*levels: Mapping[str, str]) -> bool:
    """Whether any of these settings names a provider."""
    return any(level.get(PROVIDERS) for level in levels)
