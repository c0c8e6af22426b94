"""An index file was missing after a clean stop: the epoch file was overwritten with the epochs of
the segment whose index was rebuilt; OffsetForLeaderEpoch knew nothing of later ones (KIP-101)."""

from __future__ import annotations

from tests.support.logs import DIRECTORY, World


def test_the_epochs_of_other_segments_stay() -> None:
    world = World()
    for epoch in (0, 1, 2):
        world.append(2, epoch=epoch)
        world.scheduler.turn()
        world.log.roll()
        world.scheduler.turn()
    known = list(world.log.leader_epochs.entries)
    assert known == [(0, 0), (1, 2), (2, 4)]
    world.log.close(sync=True)
    world.disk.unlink(f"{DIRECTORY}/{0:020d}.index")
    log = world.open(clean=True, recovery_point=6)
    assert log.leader_epochs.entries == known
    assert log.end_offset_for_epoch(0) == (0, 2)
    assert world.reopen().leader_epochs.entries == known
