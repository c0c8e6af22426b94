"""A follower that had led without writing anything was told the same truncation for ever.

Its last epoch began at the end of its log and held no record, so that cutting the log there cut
nothing, and its next fetch named the same epoch again (simulation seed 17; Kafka's UnifiedLog drops
such an epoch also when there is no record to drop).
"""

from __future__ import annotations

from pathlib import Path

from tests.support.replicas import Replicas


def test_a_follower_forgets_an_epoch_in_which_it_wrote_nothing(tmp_path: Path) -> None:
    world = Replicas(tmp_path)
    world.lead(1, epoch=0)
    world.append(1, b"a")
    world.exchange()
    world[1].is_up = False
    world.lead(2, epoch=1)  # and nobody hears of it
    world[1].is_up, world[2].is_up = True, False
    world.lead(1, epoch=2)
    world.append(1, b"b")
    world[2].is_up = True
    assert world.epochs(2)[-1] == (1, 1)
    world.lead(1, epoch=3)
    world.exchange()
    assert world.values(2) == world.values(1) == [b"a", b"b"]
    assert world.epochs(2) == [(0, 0), (2, 1)]
