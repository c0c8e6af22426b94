"""A follower whose leader has nothing new asks again without looking, until something moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.replica.fetcher import LeaderFetcher
from tests.support.replicas import Replicas


@pytest.fixture
def world(tmp_path: Path) -> Replicas:
    """Broker 2 has all that broker 1 has, and has settled."""
    world = Replicas(tmp_path)
    world.lead(1, epoch=0)
    world.append(1, b"a", b"b")
    world.exchange()
    assert len(_fetcher(world)._settled) == 1
    return world


def _fetcher(world: Replicas) -> LeaderFetcher:
    (fetcher,) = world[2].fetchers._by_leader.values()
    return fetcher


def test_it_asks_again_without_looking(world: Replicas, monkeypatch: pytest.MonkeyPatch) -> None:
    def look(*_: object) -> None:
        raise AssertionError("looked at a partition")

    monkeypatch.setattr(LeaderFetcher, "_asked_of", look)
    before = len(world[2].sent)
    world.exchange()
    asked = world[2].sent[before:]
    assert len(asked) > 2
    assert not any(x.topics or x.forgotten_topics_data for x in asked)
    assert len({x.session_epoch for x in asked}) == len(asked)
    assert {x.session_id for x in asked} == {asked[0].session_id}


def test_records_are_fetched_and_it_settles_again(world: Replicas) -> None:
    world.append(1, b"c")
    world.exchange()
    assert world.values(2) == [b"a", b"b", b"c"]
    assert world[2].partition.state.high_watermark == 3
    assert len(_fetcher(world)._settled) == 1


def test_a_log_that_begins_elsewhere_by_itself_is_told(world: Replicas) -> None:
    """Retention on the follower alone."""
    before = len(world[2].sent)
    world[2].log.move_start(1)
    world.exchange()
    named = [x.topics[0].partitions[0] for x in world[2].sent[before:] if x.topics]
    assert [x.log_start_offset for x in named] == [1]
    assert world[1].partition.state.followers[2].log_start_offset == 1


def test_a_log_that_fails_is_not_asked_for_any_more(world: Replicas) -> None:
    world[2].log.fail(OSError("gone"), lost=True)
    world.exchange()
    (followed,) = _fetcher(world).followed.values()
    assert followed.state.value == "failed"


def test_a_new_leadership_is_followed(world: Replicas) -> None:
    world.lead(1, epoch=1)
    world.append(1, b"c")
    world.exchange()
    assert world.values(2) == [b"a", b"b", b"c"]
    assert world[2].sent[-1].session_id
    assert world[1].partition.state.followers[2].log_end_offset == 3


def test_one_that_does_not_settle_looks_each_time(
    world: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world[2], "settings", world[2].settings._replace(settles=False))
    world.append(1, b"c")
    world.exchange()
    assert len(_fetcher(world)._settled) == 0


def test_nobody_watches_what_is_given_up(world: Replicas) -> None:
    world[2].fetchers.forget(world[2].partition)
    assert not world[2].partition.watchers
    assert world[2].log.on_moving is None
