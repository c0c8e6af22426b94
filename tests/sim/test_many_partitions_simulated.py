"""A node with very many partitions ends while it is written to: each keeps what was acknowledged.

`make sim` does it with 10,000 partitions.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import islice

import pytest

from kwire.log import flushing
from kwire.log.files import Files
from kwire.log.flushing import SyncRequest
from kwire.replica.manager import ReplicaManager
from tests.sim.many_partitions import KINDS, ManyPartitions
from tests.sim.model import Violation
from tests.support.effort import seeds

pytestmark = pytest.mark.usefixtures("quiet")

PARTITIONS = 10_000 if os.environ.get("KWIRE_SIM_RUNS") else 400
FEW = 200
SEEDS_OF_A_MUTATION = 6


@pytest.mark.parametrize("seed", seeds(len(KINDS)))
def test_each_of_many_partitions_keeps_what_was_acknowledged(seed: int) -> None:
    ManyPartitions(seed, PARTITIONS).run()


# -- faults that have to be found


def follows_a_change_in_three_turns(patch: pytest.MonkeyPatch) -> None:
    """What would come in later ones is left out."""
    original = ReplicaManager.apply
    patch.setattr(ReplicaManager, "apply", lambda *of: islice(original(*of), 3))


def syncs_the_first_hundred(patch: pytest.MonkeyPatch) -> None:
    """A round of syncs leaves the others out."""
    original = flushing.sync_files

    def sync_files(files: Files, request: SyncRequest) -> None:
        first = SyncRequest()
        first.handles = request.handles[:100]
        original(files, first)

    patch.setattr(flushing, "sync_files", sync_files)


def _search() -> None:
    for seed in range(SEEDS_OF_A_MUTATION):
        ManyPartitions(seed, FEW).run()


MUTATIONS = (follows_a_change_in_three_turns, syncs_the_first_hundred)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_mutation_is_found(
    mutation: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    with pytest.raises(Violation):
        _search()
