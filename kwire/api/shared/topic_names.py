"""Which topic names there can be (Kafka's rule)."""

from __future__ import annotations

NAME_CHARACTERS_MAX = 249
_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def is_valid(name: str) -> bool:
    """Whether Kafka would accept a topic of this name."""
    return (
        0 < len(name) <= NAME_CHARACTERS_MAX
        and name not in (".", "..")
        and _ALLOWED.issuperset(name)
    )
