"""Producers get the same answers on both roads, and their logs hold the same bytes (ADR 55)."""

from __future__ import annotations

import pytest

from kwire.api.plain.produces import ProduceAnswer
from kwire.log.partition.producers import ProducerEntry, Producers
from kwire.protocol.records import BatchHeader
from kwire.server.replying_connection import ReplyingConnection
from kwire.server.slots import Slot
from tests.sim.two_roads import difference
from tests.sim.two_roads_of_produces import ProduceRoad
from tests.support.effort import seeds


@pytest.mark.parametrize("seed", seeds(10))
def test_both_roads_give_the_same_answers_and_keep_the_same_records(seed: int) -> None:
    assert difference(seed, road=ProduceRoad) is None


def test_many_requests_of_these_histories_take_the_plain_road() -> None:
    taken = of_plain_apis = 0
    for seed in range(2):
        road = ProduceRoad(seed, plain=True)
        road.run()
        taken += road.taken
        of_plain_apis += road.of_plain_apis
    assert taken > of_plain_apis / 6, (taken, of_plain_apis)


def _parts_from_seed(seeds_max: int = 20) -> str | None:
    for seed in range(seeds_max):
        if found := difference(seed, road=ProduceRoad):
            return found
    return None


def test_a_road_that_does_not_look_at_sequences_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def continues(self: Producers, header: BatchHeader) -> ProducerEntry | None:
        return self.entries.get(header.producer_id)

    monkeypatch.setattr(Producers, "continues", continues)
    assert _parts_from_seed()


def test_a_road_that_cannot_take_a_producer_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def take_next(self: Producers, entry: ProducerEntry, header: BatchHeader) -> None:
        had = entry.producer_id in self._before
        original(self, entry, header)
        if not had:
            del self._before[entry.producer_id]

    original = Producers.take_next
    monkeypatch.setattr(Producers, "take_next", take_next)
    assert _parts_from_seed()


def test_a_road_that_forgets_the_batches_before_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def take_next(self: Producers, entry: ProducerEntry, header: BatchHeader) -> None:
        original(self, entry, header)
        entry.batches = entry.batches[-1:]

    original = Producers.take_next
    monkeypatch.setattr(Producers, "take_next", take_next)
    assert _parts_from_seed()


def test_a_road_that_does_not_hear_of_a_failed_write_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ProduceAnswer, "ended", lambda self, code: self.send())
    assert _parts_from_seed()


def test_a_road_that_answers_out_of_turn_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def take_place(self: ReplyingConnection, place: Slot) -> None:
        self._slots.appendleft(place)

    monkeypatch.setattr(ReplyingConnection, "take_place", take_place)
    assert _parts_from_seed()


def test_a_road_that_does_not_count_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def written(self: ProduceAnswer) -> None:
        self.connection.answered(self)

    monkeypatch.setattr(ProduceAnswer, "written", written)
    assert _parts_from_seed()
