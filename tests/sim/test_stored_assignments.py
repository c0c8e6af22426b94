"""Assignments that are stored in slices keep every promise; faults are found."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire.coordinator.group.classic import membership, storing
from tests.sim.checkers import Violation
from tests.sim.stored_assignments import AssignmentHistory
from tests.support.effort import seeds

SEEDS, SEEDS_OF_MUTATION = 10, 60


@pytest.fixture(autouse=True)
def _slices(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every group is a large one, and a slice is one member."""
    monkeypatch.setattr(membership, "AT_ONCE_MEMBERS_MAX", 0)
    monkeypatch.setattr(storing, "SLICE_MEMBERS", 1)
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", seeds(SEEDS))
def test_a_member_hears_what_the_first_assignment_of_its_generation_has(seed: int) -> None:
    history = AssignmentHistory(seed)
    history.run()
    assert history.ended


def goes_on_behind_another_generation(patch: pytest.MonkeyPatch) -> None:
    """What was begun is stored, whatever the group is by then."""
    patch.setattr(storing.Storing, "is_current", lambda self, group: group is self._group)


def the_last_assignment_counts(patch: pytest.MonkeyPatch) -> None:
    """A second SyncGroup of the leader takes the place of the first."""
    original = membership.Membership._leader_synced

    def leader_synced(self: Any, group: Any, *given: Any) -> Any:
        self._groups.storing.pop(group.group_id, None)
        return original(self, group, *given)

    patch.setattr(membership.Membership, "_leader_synced", leader_synced)


def loses_a_member(patch: pytest.MonkeyPatch) -> None:
    """The last slice is not made."""
    patch.setattr(
        storing.Storing,
        "has_more",
        property(lambda self: self._made.count + 1 < len(self.assignments)),
    )


def nobody_goes_on(patch: pytest.MonkeyPatch) -> None:
    """The next slice has no deadline."""
    original = membership.Membership.store_slice

    def store_slice(self: Any, key: Any, moment: Any) -> Any:
        result = original(self, key, moment)
        self._groups.deadlines.cancel(key)
        return result

    patch.setattr(membership.Membership, "store_slice", store_slice)


@pytest.mark.parametrize(
    "mutation",
    [
        goes_on_behind_another_generation,
        the_last_assignment_counts,
        loses_a_member,
        nobody_goes_on,
    ],
    ids=lambda mutation: mutation.__name__,
)
def test_a_mutation_is_found(
    mutation: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    with pytest.raises((Violation, AssertionError, KeyError)):
        _search()


def _search() -> None:
    for seed in range(SEEDS_OF_MUTATION):
        AssignmentHistory(seed).run()
