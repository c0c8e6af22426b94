"""Batches that a coordinator has made are appended without the checks of what comes from outside:
what the log says afterwards is the same, and what comes from outside is checked as ever (ADR 16).
"""

from __future__ import annotations

import ast
import errno
from pathlib import Path

import pytest

from kwire.coordinator.open_batch import OpenBatch
from kwire.log.partition.config import LogConfig
from kwire.log.types import Origin
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import Record, build_batch, check_crc, parse_header, read_batch
from kwire.protocol.records.build import MadeBatch, framed, make_plain
from kwire.protocol.records.control import TransactionMarker, end_transaction_marker
from tests.support.replica_world import NOW_MS, World

KWIRE = Path(__file__).parents[3] / "kwire"
RECORDS: list[tuple[int, bytes, bytes | None]] = [
    (NOW_MS, b"key", b"value"),
    (NOW_MS, b"gone", None),
    (NOW_MS + 3, b"k" * 300, b""),
    (NOW_MS - 70, b"", b"v" * 9000),
    *[(NOW_MS, b"%d" % number, b"v") for number in range(100)],
]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def led(world: World, *replicas: int) -> None:
    """The first batch of an epoch takes the general way: the epoch has to be kept."""
    world.create(list(replicas))
    assert not appended(world)
    world.append(acks=1)
    world.scheduler.turn()


def made(world: World, records: list[tuple[int, bytes, bytes | None]]) -> MadeBatch:
    partition = world.partition()
    rows = [(at, framed(key, value)) for at, key, value in records]
    return make_plain(rows, 0, partition.log.next_offset, partition.leader_epoch)


def appended(world: World, count: int = 1) -> bool:
    """Whether a made batch was taken; if not, nothing has happened."""
    partition, log = world.partition(), world.partition().log
    before = (log.next_offset, log.log_end_offset, log.high_watermark, log.size_bytes)
    taken = partition.append_made(made(world, RECORDS[:count]), NOW_MS)
    after = (log.next_offset, log.log_end_offset, log.high_watermark, log.size_bytes)
    assert taken or before == after
    return taken


def written(world: World) -> bytes:
    (segment,) = world.partition().log.segments
    return Path(segment.log_path).read_bytes()


@pytest.mark.parametrize("count", [1, 2, 4, len(RECORDS)])
def test_a_made_batch_is_what_the_general_builder_makes(count: int) -> None:
    rows = [(at, framed(key, value)) for at, key, value in RECORDS[:count]]
    records = [Record(i, at, key, value, []) for i, (at, key, value) in enumerate(RECORDS[:count])]
    batch = make_plain(rows, -1, 70, 5)
    general = build_batch(
        [one._replace(offset=70 + one.offset) for one in records],
        base_offset=70, leader_epoch=5, base_sequence=-1,
    )  # fmt: skip
    assert batch.data == bytes(general)
    assert batch.header == parse_header(batch.data)
    assert check_crc(batch.data, 0, batch.header)
    read = [(one.timestamp, one.key, one.value) for one in read_batch(batch.data)]
    assert read == RECORDS[:count]


def test_a_made_batch_is_written_and_committed_at_once_as_the_general_way_does(
    tmp_path: Path,
) -> None:
    logs = []
    for name in ("made", "general"):
        world = World(tmp_path / name)
        led(world, 1)
        partition = world.partition()
        for count in (1, 3, 60):
            batch = OpenBatch(partition.log.next_offset, 1 << 20)
            batch.add([(key, value) for _, key, value in RECORDS[:count]], 0, NOW_MS)
            if name == "made":
                assert partition.append_made(batch.make(0, partition.leader_epoch), NOW_MS)
            else:
                partition.append(batch.build(0), acks=-1, wall_ms=NOW_MS, origin=Origin.COORDINATOR)
                partition.log.write_tail()
        log, traffic = partition.log, partition.traffic
        ends = (log.next_offset, log.log_end_offset, log.high_watermark, log.size_bytes)
        counts = (traffic.messages_in, traffic.bytes_in, traffic.produce_requests)
        active = log.segments.active
        times = (active.max_timestamp, active.offset_of_max_timestamp, active.first_timestamp())
        logs.append((written(world), ends, counts, times, list(active.index.offsets)))
    assert logs[0] == logs[1]


def test_a_follower_has_to_have_it_before_it_is_committed(world: World) -> None:
    led(world, 1, 2)
    assert appended(world)
    log = world.partition().log
    assert log.log_end_offset == 2 > log.high_watermark


@pytest.mark.parametrize(
    "config",
    [
        LogConfig(compression_type="lz4"),
        LogConfig(message_timestamp_type="LogAppendTime"),
        LogConfig(message_timestamp_before_max_ms=1),
        LogConfig(max_message_bytes=60),
        LogConfig(flush_messages=1),
        LogConfig(segment_bytes=200),
    ],
)
def test_where_the_topic_asks_for_more_the_general_way_decides(
    world: World, config: LogConfig
) -> None:
    led(world, 1)
    world.configs["t"] = config
    list(world.replicas.configure("t"))
    assert not appended(world, 3)


def test_a_topic_that_is_never_compressed_takes_made_batches(world: World) -> None:
    """`__transaction_state` is one."""
    led(world, 1)
    world.configs["t"] = LogConfig(compression_type="uncompressed")
    list(world.replicas.configure("t"))
    assert appended(world, 3)


def test_behind_what_waits_to_be_written_the_general_way_goes(world: World) -> None:
    led(world, 1)
    world.append(acks=1)
    assert not appended(world)
    world.scheduler.turn()
    assert appended(world)


def test_of_another_epoch_or_place_or_of_the_future_nothing_is_appended(world: World) -> None:
    led(world, 1)
    partition, epoch = world.partition(), world.partition().leader_epoch
    rows = [(NOW_MS, framed(b"k", b"v"))]
    end = partition.log.next_offset
    assert not partition.append_made(make_plain(rows, 0, end + 1, epoch), NOW_MS)
    assert not partition.append_made(make_plain(rows, 0, end, epoch + 1), NOW_MS)
    early = NOW_MS - LogConfig().message_timestamp_after_max_ms - 1
    assert not partition.append_made(make_plain(rows, 0, end, epoch), early)
    assert partition.log.next_offset == end


def test_a_disk_that_refuses_costs_the_batch_and_tells_who_waits(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    led(world, 1, 2)
    assert appended(world)
    partition, log = world.partition(), world.partition().log
    told: list[ErrorCode] = []
    partition.wait_for_commit(log.log_end_offset, told.append)
    before = written(world)

    def refuse(*_: object) -> int:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(log.local.files, "pwritev", refuse)
    with pytest.raises(KafkaError) as raised:
        partition.append_made(made(world, RECORDS[:1]), NOW_MS)
    assert raised.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert told == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert written(world) == before
    assert log.next_offset == log.log_end_offset
    assert not appended(world), "the general way says why"


@pytest.mark.parametrize("origin", [Origin.CLIENT, Origin.COORDINATOR])
def test_damaged_batches_from_outside_are_refused_as_ever(world: World, origin: Origin) -> None:
    led(world, 1)
    assert appended(world)
    partition, end = world.partition(), world.partition().log.next_offset
    sound = build_batch([Record(0, NOW_MS, b"k", b"v", [])])
    for at in range(17, len(sound)):
        damaged = bytearray(sound)
        damaged[at] ^= 0x10
        with pytest.raises(KafkaError) as raised:
            partition.append(damaged, acks=-1, wall_ms=NOW_MS, origin=origin)
        assert raised.value.code == ErrorCode.CORRUPT_MESSAGE
    assert partition.log.next_offset == end


def test_nothing_but_what_coordinators_make_goes_unchecked() -> None:
    """Whoever makes a batch, or appends one that was made, is on this list."""
    users: dict[str, set[str]] = {
        "MadeBatch": set(), "make_plain": set(), "make_control": set(), "append_made": set(),
        "TransactionMarker": set(),
    }  # fmt: skip
    for path in KWIRE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                function = node.func
                name = function.attr if isinstance(function, ast.Attribute) else None
                name = function.id if isinstance(function, ast.Name) else name
                if name in users:
                    users[name].add(path.relative_to(KWIRE).as_posix())
    assert users == {
        "MadeBatch": {"protocol/records/build.py"},
        "make_plain": {"coordinator/open_batch.py"},
        "make_control": {"protocol/records/control.py"},
        "TransactionMarker": {"api/shared/local_transactions.py"},
        "append_made": {
            "coordinator/coordinator_log.py",
            "coordinator/runtime.py",
            "replica/partition.py",
        },
    }


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_in_its_place_is_what_the_general_builder_makes(commit: bool) -> None:
    marker = TransactionMarker(9, 4, commit, 12, NOW_MS)
    general = end_transaction_marker(*marker, base_offset=70, leader_epoch=5)
    made = marker.made(70, 5)
    assert made.data == bytes(general)
    assert made.header == parse_header(general)


@pytest.mark.parametrize("config", [LogConfig(), LogConfig(message_timestamp_type="LogAppendTime")])
def test_a_marker_that_is_made_in_its_place_leaves_what_a_checked_one_does(
    tmp_path: Path, config: LogConfig
) -> None:
    found = []
    for name in ("made", "checked"):
        world = World(tmp_path / name)
        world.configs["t"] = config
        led(world, 1) if config == LogConfig() else world.create([1])
        partition = world.partition()
        for epoch, coordinator_epoch in ((0, 1), (1, 1), (0, 1), (2, 0), (2, 2)):
            marker = TransactionMarker(9, epoch, epoch != 1, coordinator_epoch, NOW_MS)
            try:
                partition.append(
                    marker if name == "made" else marker.batch(),
                    acks=-1, wall_ms=NOW_MS, origin=Origin.COORDINATOR, transaction_version=0,
                )  # fmt: skip
                found.append((name, "appended"))
            except KafkaError as error:
                found.append((name, str(error)))
            partition.log.write_tail()
        log = partition.log
        producers = [
            (each.producer_id, each.epoch, each.coordinator_epoch, each.last_timestamp)
            for each in log.active_producers()
        ]
        counts = (log.next_offset, log.high_watermark, partition.traffic.produce_requests)
        found.append((name, str((written(world), producers, counts))))
    made_ones = [what for name, what in found if name == "made"]
    assert made_ones == [what for name, what in found if name == "checked"]
    assert made_ones.count("appended") >= 2
    assert any("zombie" in what for what in made_ones)


MARKERS = [
    # Producer id and epoch, error code: measured on Apache Kafka 4.4, WriteTxnMarkers to an empty
    # partition.
    (-1, -2, -1),
    (-1, -1, -1),
    (-1, 0, -1),
    (-2, -3, 0),
    (-2, -2, 0),
    (-2, -1, -1),
    (-2, 0, 0),
    (5, -3, 47),
    (5, -2, 47),
    (5, -1, -1),
    (5, 0, 0),
]


@pytest.mark.parametrize("transaction_version", [0, 2])
@pytest.mark.parametrize(("producer_id", "epoch", "code"), MARKERS)
def test_markers_of_no_producer_or_epoch_end_as_those_of_kafka(
    tmp_path: Path, producer_id: int, epoch: int, code: int, transaction_version: int
) -> None:
    for name in ("made", "checked"):
        world = World(tmp_path / name)
        world.create([1])
        partition, found = world.partition(), 0
        marker = TransactionMarker(producer_id, epoch, True, 3, NOW_MS)
        try:
            partition.append(
                marker if name == "made" else marker.batch(),
                acks=-1, wall_ms=NOW_MS, origin=Origin.COORDINATOR,
                transaction_version=transaction_version,
            )  # fmt: skip
        except KafkaError as error:
            found = error.code
        partition.log.write_tail()
        assert (name, found, partition.log.next_offset) == (name, code, int(code == 0))
