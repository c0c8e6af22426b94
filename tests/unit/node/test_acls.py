"""Published ACLs on their way to the authorizer."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from kwire.config.broker_config import BrokerConfig
from kwire.node.acls import AT_ONCE, PublishedAcls
from kwire.security.acl import Operation, ResourceType
from kwire.security.acls.binding import AclBinding
from kwire.security.acls.index import Changes
from kwire.security.acls.standard_authorizer import StandardAuthorizer
from tests.support.acls import STANDARD_AUTHORIZER, Client, acl

ALICE = Client("User:alice")


class Loop:
    """Calls what is to be called soon when a test says so."""

    def __init__(self) -> None:
        self.soon: deque[Callable[[], None]] = deque()

    def call_soon(self, function: Callable[[], None]) -> None:
        self.soon.append(function)

    def turn(self) -> None:
        self.soon.popleft()()


@pytest.fixture
def loop() -> Loop:
    return Loop()


def published(loop: Loop, **settings: str) -> tuple[PublishedAcls, StandardAuthorizer]:
    overrides = {"authorizer.class.name": STANDARD_AUTHORIZER, **settings}
    acls = PublishedAcls(BrokerConfig.load(overrides=overrides, developer=True), loop.call_soon)
    assert acls.authorizer is not None
    return acls, acls.authorizer


def made(count: int, start: int = 0) -> Changes:
    rules = {at: acl("User:alice", Operation.READ, f"t{at}") for at in range(start, start + count)}
    return {at.to_bytes(16, "big"): (None, rule) for at, rule in rules.items()}


def readable(authorizer: StandardAuthorizer, *names: str) -> list[bool]:
    return [authorizer.authorize(ALICE, Operation.READ, ResourceType.TOPIC, name) for name in names]


def test_without_an_authorizer_nothing_is_kept(loop: Loop) -> None:
    acls = PublishedAcls(BrokerConfig.load(developer=True), loop.call_soon)
    acls.changed(made(3))
    acls.caught_up()
    assert acls.authorizer is None
    assert acls.start_early("CONTROLLER")


def test_before_it_has_caught_up_everything_is_taken_over_at_once(loop: Loop) -> None:
    acls, authorizer = published(loop)
    acls.changed(made(AT_ONCE * 3))
    assert not loop.soon
    acls.caught_up()
    assert readable(authorizer, "t0", f"t{AT_ONCE * 3 - 1}") == [True, True]


def test_many_changes_act_together_once_the_last_is_worked_in(loop: Loop) -> None:
    acls, authorizer = published(loop)
    acls.changed(made(2))
    acls.caught_up()
    many: dict[bytes, tuple[AclBinding | None, AclBinding | None]] = dict(made(AT_ONCE * 2, 2))
    gone = acl("User:alice", Operation.READ, "t0")
    many[bytes(16)] = (gone, None)
    acls.changed(many)
    later = acl("User:alice", Operation.READ, "later")
    acls.changed({b"l" * 16: (None, later)})
    seen = []
    while loop.soon:
        # All of what was or all of what is new; what is published behind it has to wait.
        seen.append(readable(authorizer, "t0", "t2", "t99", "later"))
        loop.turn()
    before, after = [True, False, False, False], [False, True, True, False]
    assert seen == [before] * seen.count(before) + [after] * seen.count(after)
    assert seen.count(before) > 2
    assert readable(authorizer, "t0", "t1", "t2", "later") == [False, True, True, True]


def test_what_is_known_already_is_no_work(loop: Loop) -> None:
    """A broker that begins to follow hears of everything once more."""
    acls, authorizer = published(loop)
    many: Any = made(AT_ONCE * 2)
    acls.changed(many)
    acls.caught_up()
    acls.changed(many)
    assert not loop.soon
    assert readable(authorizer, "t0") == [True]


def test_listeners_that_start_early(loop: Loop) -> None:
    acls, _ = published(loop)
    assert acls.start_early("CONTROLLER")
    acls, _ = published(loop, **{"early.start.listeners": "PLAINTEXT"})
    assert acls.start_early("PLAINTEXT")
    assert not acls.start_early("CONTROLLER")


def test_the_garbage_collector_does_not_look_through_an_index_that_is_built(loop: Loop) -> None:
    """It held the loop for longer than a slice."""
    acls, _ = published(loop)
    acls.caught_up()
    acls.changed(made(AT_ONCE * 4))
    frozen = gc.get_freeze_count()
    try:
        loop.turn()  # the ids
        loop.turn()
        grown = [gc.get_freeze_count()]
        while loop.soon:
            loop.turn()
            grown.append(gc.get_freeze_count())
        assert max(grown) - frozen > AT_ONCE * 4
    finally:
        gc.unfreeze()
