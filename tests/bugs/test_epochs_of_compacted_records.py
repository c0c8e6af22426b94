"""A kill made a compacted log forget where the epochs began of which no record was left.

Recovery took the leader epochs of all batches that it checks anew. Of an epoch whose batches
compaction had removed nothing was left, and the next one began where its first surviving batch is.
So the leader told a replica, which had led without knowing that it no longer did, that its old
epoch ended far behind its log: what nobody had committed stayed in that replica. Found by
simulation (seed 750541).
"""

from __future__ import annotations

import pytest

from kwire.log.partition.leader_epochs import LeaderEpochs
from kwire.protocol.records import Record, build_batch
from tests.support.logs import NOW_MS, World

ENTRIES = [(0, 0), (1, 8), (3, 9), (5, 25)]


def test_epochs_without_batches_survive_a_kill() -> None:
    """As compaction leaves it: of epoch 1 nothing, of epoch 3 only the last batch."""
    world = World()
    world.append(8, epoch=0)
    world.scheduler.turn()
    last = build_batch([Record(0, NOW_MS, b"k", b"v")], base_offset=17, leader_epoch=3)
    world.log.append_as_follower(memoryview(last))
    world.log.leader_epochs.replace([(0, 0), (1, 8), (3, 9)])
    world.scheduler.turn()
    log = world.kill()
    assert log.leader_epochs.entries == [(0, 0), (1, 8), (3, 9)]
    assert log.end_offset_for_epoch(0) == (0, 8), "where a replica that led alone is cut off"


def test_what_the_batches_say_of_epochs_is_so() -> None:
    world = World()
    world.append(8, epoch=0)
    world.append(1, epoch=1)
    world.append(3, epoch=3)
    world.scheduler.turn()
    assert world.log.leader_epochs.entries == [(0, 0), (1, 8), (3, 9)]
    world.log.leader_epochs.replace([(0, 0), (1, 8), (2, 9), (3, 10)])
    world.scheduler.turn()
    log = world.kill()
    assert log.leader_epochs.entries == [(0, 0), (1, 8), (3, 9)]

    log.leader_epochs.replace([(0, 0), (1, 4), (2, 8)])
    world.scheduler.turn()
    log = world.kill()
    assert log.leader_epochs.entries == [(0, 0), (1, 8), (3, 9)]


@pytest.mark.parametrize(
    ("batches", "kept"),
    [
        # Compaction has left an epoch 0 batch at 7, and of epoch 3 one at 17.
        ([(0, 7), (3, 17)], ENTRIES),
        ([(3, 24), (5, 30)], ENTRIES),
        ([(1, 8), (3, 9)], ENTRIES),
        # The file is older than the log: it was truncated, another leader went on.
        ([(0, 9), (3, 17)], [(0, 0), (3, 17), (5, 25)]),
        ([(1, 7)], [(0, 0), (1, 7), (3, 9), (5, 25)]),
        ([(4, 11)], [(0, 0), (1, 8), (3, 9), (4, 11), (5, 25)]),
        ([(4, 26)], [(0, 0), (1, 8), (3, 9), (4, 26)]),
        ([(7, 40)], [*ENTRIES, (7, 40)]),
        ([(5, 24)], [(0, 0), (1, 8), (3, 9), (5, 24)]),
        ([(0, 30)], [(0, 0)]),
    ],
)
def test_batches_take_away_only_what_they_contradict(
    batches: list[tuple[int, int]], kept: list[tuple[int, int]]
) -> None:
    epochs = LeaderEpochs()
    epochs.load(list(ENTRIES))
    for epoch, offset in batches:
        epochs.observe(epoch, offset)
    assert epochs.entries == kept
    assert all(epochs.epoch_for(offset) == epoch for epoch, offset in batches)
