"""Whom a client quota is for, and which one counts where several fit.

From the most to the least specific; the first that is set counts, for each quota of its own:

    1 user, client-id            5 default user, client-id
    2 user, default client-id    6 default user, default client-id
    3 user                       7 default user
                                 8 client-id, then default client-id

Who shares a quota shares one rate (`Tags`): by user and client id where the quota names both, by
user where it is one of users, by client id where it is one of client ids. A quota for a default
gives everybody a rate of their own. Source: KIP-55, KIP-546; the two odd cases are measured on
Apache Kafka 4.4: a request without a client id has no quota that names client ids, and one with an
empty client id falls back to the quota of its user.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias
from urllib.parse import quote

USER, CLIENT_ID, IP = "user", "client-id", "ip"

Tags: TypeAlias = tuple[str, str | None]
"""User and client id of a rate; empty where it is shared by all of them."""
Part: TypeAlias = "str | Special"
QuotaEntity: TypeAlias = tuple[tuple[str, str | None], ...]
"""Sorted pairs of entity type and name; None is the default entity. As in the metadata image."""


class Special:
    """Stands where a name would."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


DEFAULT: Final = Special("DEFAULT")
"""Everybody who has no quota of their own."""
ABSENT: Final = Special("ABSENT")
"""The quota does not ask for this."""


class QuotaTable:
    """One quota (producer_byte_rate, ...) as it is set for users and client ids."""

    __slots__ = ("_bounds",)

    def __init__(self) -> None:
        self._bounds: dict[tuple[Part, Part], float] = {}

    def __len__(self) -> int:
        return len(self._bounds)

    def set(self, key: tuple[Part, Part], bound: float | None) -> bool:
        """Set a bound, or with None remove it. Whether that changes anything."""
        if self._bounds.get(key) == bound:
            return False
        if bound is None:
            del self._bounds[key]
        else:
            self._bounds[key] = bound
        return True

    def tags(self, user: str, client_id: str | None) -> Tags:
        """With whom a client shares its rate."""
        bounds = self._bounds
        for owner in (user, DEFAULT):
            if client_id is not None and (owner, client_id) in bounds:
                return user, client_id
            if (owner, DEFAULT) in bounds:
                return user, client_id
            if (owner, ABSENT) in bounds:
                return user, ""
        return "", client_id

    def bound(self, tags: Tags) -> float | None:
        """The bound of a rate; None if there is none."""
        user, client_id = tags
        if client_id is None:
            return None
        if user and client_id:
            return self._first(
                (user, client_id), (user, DEFAULT), (DEFAULT, client_id), (DEFAULT, DEFAULT)
            )
        if user:
            return self._first((user, ABSENT), (DEFAULT, ABSENT))
        if client_id:
            return self._first((ABSENT, client_id), (ABSENT, DEFAULT))
        return None

    def _first(self, *keys: tuple[Part, Part]) -> float | None:
        for key in keys:
            bound = self._bounds.get(key)
            if bound is not None:
                return bound
        return None


def table_key(entity: QuotaEntity) -> tuple[Part, Part] | None:
    """An entity of users and client ids as a table knows it; None for any other."""
    kinds = dict(entity)
    if not kinds or not kinds.keys() <= {USER, CLIENT_ID}:
        return None
    return _part(kinds, USER), _part(kinds, CLIENT_ID)


def _part(kinds: dict[str, str | None], kind: str) -> Part:
    if kind not in kinds:
        return ABSENT
    name = kinds[kind]
    return DEFAULT if name is None else name


def shown(entity: Iterable[tuple[str, str | None]]) -> str:
    """An entity for the log."""
    return ", ".join(f"{kind} {'default' if name is None else repr(name)}" for kind, name in entity)


def user_of(principal: str) -> str:
    """The name by which quotas know a principal (`Type:name`); its type does not count."""
    return principal.partition(":")[2]


def sanitized(name: str) -> str:
    """A user as it stands in the names and tags of Kafka's metrics."""
    return quote(name, safe="-_.", encoding="utf-8", errors="replace").replace("~", "%7E")
