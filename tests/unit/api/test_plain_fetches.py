"""What the plain road of Fetch looks at, and what it remembers (ADR 55)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kwire.api import fetch
from kwire.api.fetch import plain_road
from kwire.api.plain.looks import ASKED_OF, IN_VAIN_MAX
from kwire.clock import SeededRandom
from kwire.log.types import Isolation
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.fetch_frames import QuietFetches
from kwire.protocol.frame import encode_request
from kwire.replica.bounded_read import ReadTarget
from kwire.replica.delayed_read import ReadContext
from kwire.replica.quiet_read import kind_of
from kwire.replica.reading import ReadLimits
from kwire.server.context import RequestContext
from kwire.server.fetch_sessions import FetchSession, FetchSessionCache, SessionPartition
from kwire.server.request_counts import RequestCounts
from kwire.slices import Slices
from tests.support.connections import TurningLoop
from tests.support.parts import made_parts
from tests.support.replica_world import World

VERSION = 12
BYTES_MAX = 1 << 20
LIMITS = ReadLimits(1, BYTES_MAX, 0, Isolation.HIGH_WATERMARK, from_follower=True)


class Asked:
    """A connection's road to a session where nothing happens."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looks = 0
        epoch_start = QuietFetches.epoch_start

        def counted(frames: QuietFetches, body: memoryview) -> int | None:
            self.looks += 1
            return epoch_start(frames, body)

        monkeypatch.setattr(QuietFetches, "epoch_start", counted)
        self.world = world
        self.cache = FetchSessionCache(3, SeededRandom(1))
        self.session = self.opened()
        self.parts = made_parts(
            fetch_sessions=self.cache,
            fetch_bytes_max=BYTES_MAX,
            read_context=SimpleNamespace(selector=None),
        )
        self.connection: Any = SimpleNamespace(
            turn_s=0.0,
            unreplied_writes=[],
            consumer=None,
            is_measured=False,
            holds_reads=False,
            is_follower=False,
            sends_files=False,
        )
        self.road = plain_road(self.parts, RequestCounts(1), VERSION)

    def opened(self) -> FetchSession:
        asked = m.FetchRequest.FetchPartition(partition=0, partition_max_bytes=100)
        session = self.cache.create(
            [SessionPartition("t", asked)], privileged=False, uses_topic_ids=False, now_ms=0
        )
        assert session is not None
        for partition in session.partitions.values():
            partition.high_watermark = partition.local_log_start_offset = 0
        return session

    def rests(self) -> None:
        """The general way has found nothing."""
        partitions = self.session.partitions.values()
        late = self.world.replicas.traffic.late
        if self.session.look_for_quiet(kind_of(LIMITS), late) is not None:
            for each in partitions:
                target = ReadTarget(self.world.partition(each.index), each)
                self.session.found_nothing(self.world.replicas, target)

    def ask(self, names: bool = False, client_id: str = "x") -> bytes | None:
        """The session's next fetch: what the road answers."""
        request = m.FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=BYTES_MAX,
            session_id=self.session.session_id,
            session_epoch=self.session.epoch,
        )
        if names:
            part = m.FetchRequest.FetchPartition(partition=0, partition_max_bytes=100)
            request.topics = [m.FetchRequest.FetchTopic(topic="t", partitions=[part])]
        body = b"".join(encode_request(1, VERSION, 7, client_id, request))[4:]
        answer: bytes | None = self.road(self.connection, memoryview(body))
        return answer


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    world = World(tmp_path)
    world.create([1])
    return Asked(world, monkeypatch)


def test_fetches_that_name_partitions_are_not_looked_at_for_long(asked: Asked) -> None:
    for _ in range(IN_VAIN_MAX + 10 * ASKED_OF):
        assert asked.ask(names=True) is None
    assert asked.looks == IN_VAIN_MAX + 10


def test_a_fetch_of_a_consumer_is_none_of_a_follower(asked: Asked) -> None:
    """A connection's requests are counted with the followers' by what its last fetch was."""
    for _ in range(3):
        asked.ask()
        asked.rests()
    asked.connection.is_follower = True
    assert asked.ask() is not None
    assert not asked.connection.is_follower


def test_a_consumer_that_has_come_to_rest_takes_the_road(asked: Asked) -> None:
    for _ in range(10 * ASKED_OF):
        asked.ask(names=True)
    answers = []
    for _ in range(ASKED_OF + 2):
        answers.append(asked.ask())
        asked.rests()
    assert answers[-1] is not None
    looks = asked.looks
    for _ in range(2 * ASKED_OF):
        asked.ask(names=True)
    assert asked.ask() is not None, "what is remembered is found all the same"
    assert asked.looks < looks + 2 * IN_VAIN_MAX


def test_what_binds_one_client_of_a_connection_does_not_bind_another(asked: Asked) -> None:
    """The rates of the connection are those of its last general request."""
    asked.connection.consumer = SimpleNamespace(window_bytes_max=7)
    asked.connection.holds_reads = True
    asked.ask(client_id="free")
    asked.rests()
    assert asked.ask(client_id="free") is not None
    assert asked.road._known is not None
    assert asked.road._known.limits.bytes_max == BYTES_MAX


class Meter:
    """Counts slices."""

    def __init__(self) -> None:
        self.count = 0

    def begin(self) -> None:
        self.count += 1

    def end(self) -> None:
        pass


@pytest.mark.parametrize(("replica_id", "is_measured"), [(-1, True), (2, False)])
def test_a_wait_of_many_partitions_that_ends_counts_for_the_time_of_its_client(
    asked: Asked, monkeypatch: pytest.MonkeyPatch, replica_id: int, is_measured: bool
) -> None:
    """Where the client got a quota of time while it waited, its slices were nobody's."""
    monkeypatch.setattr(fetch, "SLICE_PARTITIONS", 0)
    turning, meter, charged = TurningLoop(), Meter(), list[int]()
    slices = Slices(turning.call_soon)
    asked.parts.slices = slices
    asked.parts.replicas = asked.world.replicas
    deadlines: Any = None  # this wait has begun
    asked.parts.read_context = ReadContext(deadlines, lambda topic, index: True)
    asked.connection.slices_of = lambda context: slices.measured_by(meter)
    asked.connection.charge_read = lambda context, size_bytes: charged.append(size_bytes) or 0
    session = asked.session
    request = m.FetchRequest(session_id=session.session_id, session_epoch=session.epoch)
    request.replica_state.replica_id = request.replica_id = replica_id
    context = RequestContext(asked.parts, asked.connection, ApiKey.FETCH, VERSION, 1, "x")
    targets = [ReadTarget(asked.world.partition(x.index), x) for x in session.partitions.values()]
    limits = ReadLimits(1, BYTES_MAX, 1000, Isolation.HIGH_WATERMARK, replica_id=replica_id)
    deadline = SimpleNamespace(callback=lambda: None, cancel=lambda: None)
    answer = fetch._Fetch(context, request).go_on(session, targets, limits, deadline, 1)  # type: ignore[arg-type]
    deadline.callback()
    while turning.soon:
        turning.turn()
    assert answer.done
    assert (meter.count > 0, len(charged)) == (is_measured, int(is_measured))


def test_what_moves_while_a_fetch_waits_is_read_in_the_order_of_the_session(
    asked: Asked, tmp_path: Path
) -> None:
    world = World(tmp_path / "two")
    world.create([1], partitions=2)
    shape = m.FetchRequest.FetchPartition
    listed = [
        SessionPartition("t", shape(partition=index, partition_max_bytes=1000)) for index in (1, 0)
    ]
    session = asked.cache.create(listed, privileged=False, uses_topic_ids=False, now_ms=0)
    assert session is not None
    session.wants_quiet = True
    late = world.replicas.traffic.late
    limits = ReadLimits(BYTES_MAX, BYTES_MAX, 1000, Isolation.HIGH_WATERMARK, from_follower=True)
    quiet = session.look_for_quiet(kind_of(limits), late)
    assert quiet is not None
    for each in listed:
        each.high_watermark = each.local_log_start_offset = 0
        session.found_nothing(world.replicas, ReadTarget(world.partition(each.index), each))
    assert len(quiet) == 2
    deadlines: Any = None  # this wait has begun
    asked.parts.replicas = world.replicas
    asked.parts.read_context = ReadContext(deadlines, lambda topic, index: True)
    asked.connection.charge_read = lambda context, size_bytes: 0
    quiet.disturbed(world.partition(0))
    request = m.FetchRequest(session_id=session.session_id, session_epoch=session.epoch)
    context = RequestContext(asked.parts, asked.connection, ApiKey.FETCH, VERSION, 1, "x")
    target = ReadTarget(world.partition(0), listed[1])
    deadline = SimpleNamespace(callback=lambda: None, cancel=lambda: None)
    answer = fetch._Fetch(context, request).go_on(
        session,
        [target],
        limits,
        deadline,  # type: ignore[arg-type]
        1,
        quiet,
    )
    for index in (0, 1):
        world.append(index=index)
        world.scheduler.turn()
    assert not answer.done
    deadline.callback()
    response = answer.result()
    assert isinstance(response, m.FetchResponse)
    partitions = response.responses[0].partitions
    assert [x.partition_index for x in partitions] == [1, 0]
    assert all(x.records for x in partitions)
