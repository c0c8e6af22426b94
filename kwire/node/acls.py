"""The ACLs that a node has published, and the authorizer that decides by them.

Every node has one authorizer at most: on a broker's listeners and on a controller's the same
committed metadata decides.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from kwire.config import authorizer as settings
from kwire.config.values import TypedValue

if TYPE_CHECKING:
    from kwire.security.acls.index import Changes
    from kwire.security.acls.standard_authorizer import StandardAuthorizer

EARLY_START = "early.start.listeners"
AT_ONCE = 500
"""Changes of more ACLs are worked in by slices."""

CallSoon = Callable[[Callable[[], None]], object]


class Config(Protocol):
    """The settings of a node."""

    @property
    def texts(self) -> Mapping[str, str]: ...

    def __getitem__(self, name: str) -> TypedValue: ...


class PublishedAcls:
    """`authorizer` is None where none is configured: everybody may do everything.

    A change of many ACLs is worked in between requests, a slice at a time (`call_soon(function)`
    calls it later): until it is done the rules before it decide, as a whole, and what is published
    behind it waits.
    """

    def __init__(self, config: Config, call_soon: CallSoon) -> None:
        self.authorizer: StandardAuthorizer | None = None
        self._early: list[str] | None = None
        self._call_soon = call_soon
        self._waiting: deque[Changes] = deque()
        self._work: Iterator[None] | None = None
        if config[settings.CLASS_NAME]:
            from kwire.security.acls.standard_authorizer import StandardAuthorizer

            self.authorizer = StandardAuthorizer(
                settings.super_users(config.texts), settings.allow_everyone(config.texts)
            )
            self._early = config[EARLY_START]

    def changed(self, changes: Changes) -> None:
        """ACLs of newly published metadata; before anything else acts on that."""
        authorizer = self.authorizer
        if authorizer is None or not changes:
            return
        if not authorizer.is_loaded:  # nobody waits for an answer yet
            authorizer.apply(changes)
            return
        self._waiting.append(changes)
        if self._work is None:
            self._take(authorizer)

    def _take(self, authorizer: StandardAuthorizer) -> None:
        """What waits, up to the next change of many ACLs."""
        while self._waiting and self._work is None:
            changes = self._waiting.popleft()
            if len(changes) > AT_ONCE:
                changes = authorizer.news(changes)
            if len(changes) > AT_ONCE:
                self._work = authorizer.rebuild(changes)
                self._call_soon(self._work_on)
            else:
                authorizer.apply(changes)

    def _work_on(self) -> None:
        authorizer, work = self.authorizer, self._work
        if authorizer is None or work is None:
            return
        if goes_on(work):
            self._call_soon(self._work_on)
            return
        self._work = None
        self._take(authorizer)

    @property
    def is_behind(self) -> bool:
        """Whether ACLs that are published do not decide yet."""
        return self._work is not None

    def caught_up(self) -> None:
        """What was published is the committed metadata as it stands."""
        if self.authorizer is not None:
            self.authorizer.loaded()

    def start_early(self, listener_name: str) -> bool:
        """Whether a controller's listener serves before the ACLs are known; by default it does."""
        return self._early is None or listener_name in self._early


def goes_on(work: Iterator[None]) -> bool:
    """Do the next slice of an index that is built; whether there are more.

    What it has made stays, tens of thousands of objects in all: the garbage collector is told not
    to look through them, which would hold the loop longer than any slice.
    """
    for _ in work:
        gc.freeze()
        return True
    return False
