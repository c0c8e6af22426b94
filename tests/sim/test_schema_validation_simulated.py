"""Schemas at publish under drawn faults; and faults put into the checks, which the search finds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kwire.pending import Pending
from kwire.protocol.errors import KafkaError
from kwire.schemas.validation import batch, checks, rules
from kwire.schemas.validation.batch import PreparedOrFault, Schema
from kwire.schemas.validation.follower import Follower
from tests.sim.schema_validation import Fault, simulate
from tests.support.effort import seeds

SEEDS = 60


def test_no_record_passes_without_its_schema() -> None:
    accepted = refused = 0
    for seed in seeds(SEEDS):
        run = simulate(seed)
        accepted += run.accepted
        refused += run.refused
    assert accepted
    assert refused


def _joins(patch: pytest.MonkeyPatch) -> None:
    """Who asks while the topic is read is content with what was read before."""
    refresh = Follower.refresh

    def joined(self: Follower) -> Pending[None]:
        return self._under_way.done if self._under_way is not None else refresh(self)

    patch.setattr(Follower, "refresh", joined)


def _does_not_read(patch: pytest.MonkeyPatch) -> None:
    """What is not known is refused at once."""
    attempt = checks._Checking.attempt

    def hasty(self: checks._Checking) -> None:
        self._is_fresh = True
        attempt(self)

    patch.setattr(checks._Checking, "attempt", hasty)


def _passes_deleted(patch: pytest.MonkeyPatch) -> None:
    """Deleted versions count."""
    patch.setattr(batch, "versions_of", lambda state, head: state.of_id(".", batch.id_of(head)))


def _passes_unread(patch: pytest.MonkeyPatch) -> None:
    """Where schemas cannot be read, everything passes."""
    refreshed = checks._Checking._refreshed

    def open_(self: checks._Checking, done: Pending[None]) -> None:
        if isinstance(done.error(), KafkaError):
            self.done.complete(None)
        else:
            refreshed(self, done)

    patch.setattr(checks._Checking, "_refreshed", open_)


def _never_reads_anew(patch: pytest.MonkeyPatch) -> None:
    """What is known stays so."""
    patch.setattr(checks, "OLD_MS", 10**12)


def _keeps_the_old_topic(patch: pytest.MonkeyPatch) -> None:
    """A topic that was made anew is read beside what the old one said."""
    patch.setattr(Follower, "_anew", lambda self, offset: setattr(self, "_next_offset", offset))


def _any_subject(patch: pytest.MonkeyPatch) -> None:
    """Registered under another subject is good enough."""
    patch.setattr(rules.SideRules, "subject", lambda self, topic, name: _Any())


def _decodes_nothing(patch: pytest.MonkeyPatch) -> None:
    """What is to decode need not."""
    patch.setattr(batch, "_fault", lambda data, found, decode, allowance: "")


def _passes_what_is_not_parsed(patch: pytest.MonkeyPatch) -> None:
    """Where a schema cannot be parsed, its records pass."""
    prepared = checks._Checking._prepared

    def open_(self: checks._Checking, done: Pending[list[Pending[PreparedOrFault]]]) -> None:
        if any(one.error() is not None for one in done.result()):
            self.done.complete(None)
        else:
            prepared(self, done)

    patch.setattr(checks._Checking, "_prepared", open_)


def _refuses_what_is_not_parsed(patch: pytest.MonkeyPatch) -> None:
    """A schema that could not be parsed for a moment is one that never can be."""
    parsed = checks.SchemaChecks._parsed

    def final(
        self: checks.SchemaChecks, schema: Schema, done: Pending[PreparedOrFault], characters: int
    ) -> None:
        if done.error() is None:
            parsed(self, schema, done, characters)
        else:
            parsed(self, schema, Pending.completed("it cannot be read"), 0)

    patch.setattr(checks.SchemaChecks, "_parsed", final)


def _takes_what_is_half_read(patch: pytest.MonkeyPatch) -> None:
    """After a start what was deleted passes until the topic is read to where it was."""
    patch.setattr(
        Follower, "is_loaded", property(lambda self: True, lambda self, loaded: None), raising=False
    )


class _Any:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


MUTATIONS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    one.__name__: one
    for one in (
        *(_joins, _does_not_read, _passes_deleted, _passes_unread, _never_reads_anew),
        *(_keeps_the_old_topic, _any_subject, _decodes_nothing),
        *(_takes_what_is_half_read, _passes_what_is_not_parsed, _refuses_what_is_not_parsed),
    )
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_in_the_checks_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTATIONS[name](monkeypatch)
    with pytest.raises(Fault):
        _search(20 * SEEDS)


def _search(count: int) -> None:
    for seed in range(count):
        simulate(seed)
