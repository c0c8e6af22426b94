"""Where new replicas go: spread over brokers and racks, leaders unfenced."""

from __future__ import annotations

from collections import Counter

import pytest

from kwire.clock import SeededRandom
from kwire.kraft.controller.placement import UsableBroker, place
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.controllers import ControllerBench, directory


def _brokers(*racks: str | None, fenced: tuple[int, ...] = ()) -> list[UsableBroker]:
    return [UsableBroker(i, rack, i in fenced) for i, rack in enumerate(racks)]


@pytest.mark.parametrize("seed", range(20))
def test_leaders_and_replicas_are_even(seed: int) -> None:
    placed = place(_brokers(*[None] * 4), 40, 3, SeededRandom(seed))
    assert Counter(replicas[0] for replicas in placed) == dict.fromkeys(range(4), 10)
    assert Counter(b for replicas in placed for b in replicas) == dict.fromkeys(range(4), 30)
    assert all(len(set(replicas)) == 3 for replicas in placed)


@pytest.mark.parametrize("seed", range(20))
def test_replicas_of_a_partition_are_in_different_racks(seed: int) -> None:
    racks = ("a", "a", "b", "b", "c", "c")
    placed = place(_brokers(*racks), 30, 3, SeededRandom(seed))
    assert all({racks[b] for b in replicas} == {"a", "b", "c"} for replicas in placed)
    assert Counter(replicas[0] for replicas in placed) == dict.fromkeys(range(6), 5)


@pytest.mark.parametrize("seed", range(20))
def test_more_replicas_than_racks_use_every_rack(seed: int) -> None:
    racks = ("a", "a", "a", "b")
    for replicas in place(_brokers(*racks), 12, 3, SeededRandom(seed)):
        assert len(set(replicas)) == 3
        assert {racks[b] for b in replicas} == {"a", "b"}


@pytest.mark.parametrize("seed", range(20))
def test_fenced_brokers_get_replicas_but_do_not_lead(seed: int) -> None:
    placed = place(_brokers(None, None, None, fenced=(1,)), 12, 3, SeededRandom(seed))
    assert all(set(replicas) == {0, 1, 2} for replicas in placed)
    assert 1 not in {replicas[0] for replicas in placed}
    few = place(_brokers(None, None, None, fenced=(1,)), 12, 2, SeededRandom(seed))
    assert all(1 not in replicas for replicas in few), "only when nobody else is left"


def test_one_seed_gives_one_placement() -> None:
    brokers = _brokers("a", "b", None, "a", "b")
    assert place(brokers, 30, 3, SeededRandom(4)) == place(
        list(reversed(brokers)), 30, 3, SeededRandom(4)
    )


def test_what_cannot_be() -> None:
    with pytest.raises(KafkaError, match="only 2 broker") as raised:
        place(_brokers(None, None), 1, 3, SeededRandom(1))
    assert raised.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
    with pytest.raises(KafkaError, match="currently fenced, or have all their log directories c"):
        place(_brokers(None, None, fenced=(0, 1)), 1, 1, SeededRandom(1))
    with pytest.raises(KafkaError, match="must be positive"):
        place(_brokers(None), 1, 0, SeededRandom(1))


def test_brokers_that_leave_or_are_cordoned_get_nothing() -> None:
    bench = ControllerBench()
    bench.start(1, 2, 3)
    bench.create("t", {0: [1, 2]})
    bench.heartbeat(3, cordoned_log_dirs=[directory(3)])
    bench.heartbeat(1, want_shut_down=True)
    answer = bench.create("u", partitions=6, factor=1)
    assert answer.error_code == 0
    replicas = {p.replicas for p in bench.image.topics.by_name["u"].partitions.values()}
    assert replicas == {(2,)}
    assert bench.create("v", partitions=1, factor=2).error_code == 38
