"""Commits in slices keep every promise, whatever comes between two slices; faults are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kwire.api import offset_commit
from kwire.api.shared import commits_in_slices
from kwire.coordinator.group.made_offsets import MadeOffsets
from tests.sim.sliced_commits import CommitHistory
from tests.sim.slices import Fault
from tests.support.effort import seeds

pytestmark = pytest.mark.usefixtures("quiet")

SEEDS_OF_A_MUTATION = 10


def test_commits_in_slices_keep_every_promise() -> None:
    for seed in seeds(3):
        history = CommitHistory(seed)
        history.run()
        assert history.between["topics"]
        assert history.between["connections"]


# -- faults that have to be found


def does_not_look_again(patch: pytest.MonkeyPatch) -> None:
    """What is made is committed, also for a topic that has gone meanwhile."""
    original = commits_in_slices.commit_in_slices

    def commit_in_slices(context: Any, topics: Any, made: Any, decide: Any, _: Any) -> Any:
        return original(context, topics, made, decide, decide)

    patch.setattr(offset_commit, "commit_in_slices", commit_in_slices)


def is_overtaken(patch: pytest.MonkeyPatch) -> None:
    """The connection's next request starts at once."""
    original = commits_in_slices.commit_in_slices

    def commit_in_slices(context: Any, *given: Any) -> Any:
        context.let_next_start()
        return original(context, *given)

    patch.setattr(offset_commit, "commit_in_slices", commit_in_slices)


def loses_a_slice(patch: pytest.MonkeyPatch) -> None:
    """The last one is answered and not stored."""
    original = MadeOffsets.replay

    def replay(self: Any, shard: Any, offset: int, producer_id: int) -> None:
        self._rows = self._rows[: len(self._rows) - 1] or self._rows
        original(self, shard, offset, producer_id)

    patch.setattr(MadeOffsets, "replay", replay)


@pytest.mark.parametrize(
    "mutation",
    [does_not_look_again, is_overtaken, loses_a_slice],
    ids=lambda mutation: mutation.__name__,
)
def test_a_mutation_is_found(
    mutation: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    with pytest.raises(Fault):
        _search()


def _search() -> None:
    for seed in range(SEEDS_OF_A_MUTATION):
        CommitHistory(seed).run()
