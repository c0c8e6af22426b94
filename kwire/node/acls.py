"""The ACLs that a node has published, and the authorizer that decides by them.

Every node has one authorizer at most: on a broker's listeners and on a controller's the same
committed metadata decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from kwire.config import authorizer as settings
from kwire.config.values import TypedValue

if TYPE_CHECKING:
    from kwire.security.acls.index import Changes
    from kwire.security.acls.standard_authorizer import StandardAuthorizer

EARLY_START = "early.start.listeners"


class Config(Protocol):
    """The settings of a node."""

    @property
    def texts(self) -> Mapping[str, str]: ...

    def __getitem__(self, name: str) -> TypedValue: ...


class PublishedAcls:
    """`authorizer` is None where none is configured: everybody may do everything."""

    def __init__(self, config: Config) -> None:
        self.authorizer: StandardAuthorizer | None = None
        self._early: list[str] | None = None
        if config[settings.CLASS_NAME]:
            from kwire.security.acls.standard_authorizer import StandardAuthorizer

            self.authorizer = StandardAuthorizer(
                settings.super_users(config.texts), settings.allow_everyone(config.texts)
            )
            self._early = config[EARLY_START]

    def changed(self, changes: Changes) -> None:
        """ACLs of newly published metadata; before anything else acts on that."""
        if self.authorizer is not None:
            self.authorizer.apply(changes)

    def caught_up(self) -> None:
        """What was published is the committed metadata as it stands."""
        if self.authorizer is not None:
            self.authorizer.loaded()

    def start_early(self, listener_name: str) -> bool:
        """Whether a controller's listener serves before the ACLs are known; by default it does."""
        return self._early is None or listener_name in self._early
