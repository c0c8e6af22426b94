"""Sequences, epochs, transactions and verification, as Apache Kafka 4.4 keeps them."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.log.partition.config import LogConfig
from kwire.log.partition.producer_snapshots import decode_snapshot, encode_snapshot
from kwire.log.partition.producers import ONGOING
from kwire.log.types import Isolation, Origin
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.data_directories import committed_offsets
from tests.support.logs import World, client_batch, names, read_all

SEQUENCE_MAX = 2**31 - 1


def _send(world: World, sequence: int, count: int = 1, *, epoch: int = 0, **options: Any) -> Any:
    info = world.append(
        count,
        producer_id=options.pop("producer_id", 9),
        producer_epoch=epoch,
        base_sequence=sequence,
        **options,
    )
    world.scheduler.turn()
    return info


def _refused(world: World, sequence: int, count: int = 1, **options: Any) -> ErrorCode:
    before = world.log.next_offset
    with pytest.raises(KafkaError) as caught:
        _send(world, sequence, count, **options)
    assert world.log.next_offset == before
    return caught.value.code


def test_sequences_follow_on() -> None:
    world = World()
    _send(world, 0, 3)
    _send(world, 3, 2)
    assert _refused(world, 6) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert _refused(world, 4) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    _send(world, 5)


def test_the_last_five_batches_are_answered_with_their_first_offsets() -> None:
    world = World()
    first = [_send(world, at * 2, 2) for at in range(6)]
    for at in range(1, 6):
        again = _send(world, at * 2, 2)
        assert again.duplicate
        assert (again.base_offset, again.last_offset) == (
            first[at].base_offset,
            first[at].last_offset,
        )
    assert world.log.log_end_offset == 12
    assert _refused(world, 0, 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    # Another shape of a known range is no duplicate.
    assert _refused(world, 2, 3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_duplicate_of_what_is_not_written_yet_completes_with_it() -> None:
    world = World()
    options: dict[str, Any] = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0}
    first = world.append(**options)
    again = world.append(**options)
    assert again.duplicate
    assert again.base_offset == first.base_offset
    assert not again.written.done
    world.scheduler.turn()
    assert again.written.done


def test_a_duplicate_of_what_waits_for_its_flush_completes_with_that() -> None:
    """No further write may ever come: the batch is in the file already."""
    world = World(config=LogConfig(flush_messages=1))
    world.scheduler.holds_jobs = True
    first, again = _send(world, 0), _send(world, 0)
    assert again.duplicate
    assert not again.written.done
    world.scheduler.holds_jobs = False
    world.scheduler.turn()
    assert first.written.done
    assert again.written.done
    assert world.log.log_end_offset == 1


def test_a_duplicate_says_the_append_time_of_the_first() -> None:
    world = World(config=LogConfig(message_timestamp_type="LogAppendTime"))
    first = _send(world, 0)
    world.clock.now_ms += 1000
    assert _send(world, 0).log_append_time_ms == first.log_append_time_ms


def test_sequences_wrap() -> None:
    world = World()
    _send(world, SEQUENCE_MAX - 1, 2)
    _send(world, 0)
    _send(world, 1)
    world = World()
    _send(world, SEQUENCE_MAX, 3)  # one batch across the end
    assert world.log.producers.entries[9].last_sequence == 1
    assert _send(world, SEQUENCE_MAX, 3).duplicate
    _send(world, 2)


def test_an_unknown_producer_may_begin_anywhere() -> None:
    """Its records may have been deleted by retention."""
    world = World()
    _send(world, 41)
    assert _refused(world, 41 + 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_epochs() -> None:
    world = World()
    _send(world, 0, 3, epoch=1)
    assert _refused(world, 3, epoch=0) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert _refused(world, 3, epoch=2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    _send(world, 0, epoch=2)
    assert _refused(world, 0, 3, epoch=1) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_batch_with_producer_needs_a_sequence() -> None:
    assert _refused(World(), -1) == ErrorCode.INVALID_RECORD


def test_state_survives_restart_and_kill() -> None:
    world = World(config=LogConfig(segment_bytes=400))
    for at in range(8):
        _send(world, at * 2, 2)
    for start in (world.reopen, world.kill):
        start()
        assert _send(world, 14, 2).duplicate
        assert _refused(world, 17) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    _send(world, 16, 1)


def test_producers_expire() -> None:
    world = World()
    _send(world, 0)
    _send(world, 0, transactional=True, producer_id=10, guard=world.log.begin_verification(10, 0))
    world.clock.now_ms += 86_400_000 - 1
    assert world.log.producers.expire(world.clock.now_ms) == []
    world.clock.now_ms += 1
    assert world.log.producers.expire(world.clock.now_ms) == [9]
    assert [e.producer_id for e in world.log.active_producers()] == [10], "its transaction is open"
    world.reopen()
    assert [e.producer_id for e in world.log.active_producers()] == [10]


# -- transactions ---------------------------------------------------------------------------------


@pytest.fixture
def transactional() -> World:
    world = World()
    world.log.producers.verify = False
    return world


def test_last_stable_offset(transactional: World) -> None:
    world = transactional
    log = world.log
    world.append(2)
    _send(world, 0, 2, transactional=True)
    world.append(1)
    world.scheduler.turn()
    log.update_high_watermark(3)
    assert log.last_stable_offset == 2
    log.update_high_watermark(2)
    assert log.last_stable_offset == 2
    log.update_high_watermark(1)
    assert log.last_stable_offset == 1
    world.mark(9, 0, commit=True)
    world.scheduler.turn()
    log.update_high_watermark(5)
    assert log.last_stable_offset == 2, "the marker is not below the high watermark"
    log.update_high_watermark(6)
    assert log.last_stable_offset == 6


def test_aborted_transactions_are_told_with_what_was_read(transactional: World) -> None:
    world = transactional
    _send(world, 0, 2, transactional=True)
    _send(world, 0, 2, transactional=True, producer_id=8)
    world.mark(9, 0, commit=False)
    world.append(1)
    world.mark(8, 0, commit=True)
    world.scheduler.turn()
    world.log.update_high_watermark(world.log.log_end_offset)
    slices: Any = world.log.read(0, 1 << 20, isolation=Isolation.COMMITTED)
    assert slices.aborted == [(9, 0)]
    assert world.log.read(5, 1 << 20, isolation=Isolation.COMMITTED).aborted == []  # type: ignore[union-attr]
    assert world.log.read(0, 1 << 20).aborted is None  # type: ignore[union-attr]
    assert committed_offsets(world.log) == [2, 3, 5]


def test_rules_inside_a_transaction(transactional: World) -> None:
    world = transactional
    _send(world, 0, transactional=True)
    assert _refused(world, 1) == ErrorCode.INVALID_TXN_STATE
    world.mark(9, 0, commit=True, coordinator_epoch=4)
    with pytest.raises(KafkaError) as caught:
        world.mark(9, 0, commit=True, coordinator_epoch=3)
    assert caught.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    world.scheduler.turn()
    _send(world, 1)


@pytest.mark.parametrize(
    ("version", "epoch", "is_open", "is_accepted"),
    [
        (1, 3, True, True),
        (1, 2, True, False),
        (2, 4, True, True),
        (2, 3, True, False),
        (2, 3, False, True),  # the marker again
        (2, 2, False, False),
    ],
)
def test_epochs_of_markers(
    transactional: World, version: int, epoch: int, is_open: bool, is_accepted: bool
) -> None:
    """With transaction version 2 the coordinator has bumped the epoch before it writes markers."""
    world = transactional
    _send(world, 0, epoch=3, transactional=True)
    if not is_open:
        world.mark(9, 3, commit=True)
    if is_accepted:
        world.mark(9, epoch, commit=True, transaction_version=version)
    else:
        with pytest.raises(KafkaError) as caught:
            world.mark(9, epoch, commit=True, transaction_version=version)
        assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_clients_may_not_write_markers(transactional: World) -> None:
    from kwire.protocol.records.control import end_transaction_marker

    marker = end_transaction_marker(9, 0, True, 0, transactional.clock.now_ms)
    with pytest.raises(KafkaError) as caught:
        transactional.log.append_as_leader(marker, leader_epoch=0)
    assert caught.value.code == ErrorCode.INVALID_RECORD


def test_transactional_records_need_verification() -> None:
    world = World()
    log = world.log
    assert _refused(world, 0, transactional=True) == ErrorCode.INVALID_TXN_STATE
    guard = log.begin_verification(9, 0)
    assert log.begin_verification(9, 0) is guard
    assert _refused(world, 0, transactional=True) == ErrorCode.INVALID_TXN_STATE
    _send(world, 0, transactional=True, guard=guard)
    assert log.begin_verification(9, 0) is ONGOING
    _send(world, 1, transactional=True)
    world.mark(9, 0, commit=True)
    assert _refused(world, 2, transactional=True, guard=guard) == ErrorCode.INVALID_TXN_STATE
    # An idempotent batch outside of a transaction needs none.
    _send(world, 2)


def test_a_stale_epoch_is_told_before_a_missing_verification() -> None:
    """KAFKA-19690: a producer recovers from the one, the other is fatal."""
    world = World()
    guard = world.log.begin_verification(9, 5)
    _send(world, 0, epoch=5, transactional=True, guard=guard)
    world.mark(9, 6, commit=True, transaction_version=2)
    code = _refused(world, 1, epoch=5, transactional=True)
    assert code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert _refused(world, 0, epoch=6, transactional=True) == ErrorCode.INVALID_TXN_STATE


def test_first_sequence_of_a_verified_transaction() -> None:
    """A later batch that overtook the first one must not begin the transaction (KIP-890)."""
    world = World()
    log = world.log
    guard = log.begin_verification(9, 0, sequence=5)
    assert log.begin_verification(9, 0, sequence=0) is guard
    code = _refused(world, 5, transactional=True, guard=guard)
    assert code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    _send(world, 0, transactional=True, guard=guard)


def test_coordinators_need_no_sequence() -> None:
    world = World()
    batch = client_batch(1, base_sequence=0)
    info = world.log.append_as_leader(batch, leader_epoch=0, origin=Origin.COORDINATOR)
    world.scheduler.turn()
    assert info.base_offset == 0


# -- snapshots ------------------------------------------------------------------------------------


def test_snapshot_is_kafkas_message(transactional: World) -> None:
    world = transactional
    _send(world, 0, 3)
    _send(world, 7, 2, transactional=True, producer_id=4, epoch=2)
    world.log.close()
    raw = world.disk.read_file(world.path(".snapshot", 5))
    assert raw[:2] == b"\x00\x01"
    message = m.ProducerSnapshot.decode(raw[2:], 1)
    found = [
        (
            e.producer_id,
            e.epoch,
            e.last_sequence,
            e.last_offset,
            e.offset_delta,
            e.timestamp,
            e.coordinator_epoch,
            e.current_txn_first_offset,
        )
        for e in message.producer_entries
    ]
    now = world.clock.now_ms
    assert found == [(4, 2, 8, 4, 1, now, -1, 3), (9, 0, 2, 2, 2, now, -1, -1)]
    assert encode_snapshot(decode_snapshot(raw)) == raw


@pytest.mark.parametrize("position", range(0, 56, 5))
def test_every_damaged_byte_of_a_snapshot_is_noticed(position: int) -> None:
    world = World()
    _send(world, 0, 3)
    world.log.close()
    raw = bytearray(world.disk.read_file(world.path(".snapshot", 3)))
    assert len(raw) == 56
    raw[position] ^= 0x40
    with pytest.raises(ValueError, match="snapshot"):
        decode_snapshot(bytes(raw))


def test_snapshots_are_kept_for_each_segment_and_the_end() -> None:
    world = World(config=LogConfig(segment_bytes=300))
    for at in range(9):
        _send(world, at)
    bases = world.log.segments.bases
    world.reopen()
    world.reopen()
    offsets = [int(n[:20]) for n in names(world.disk) if n.endswith(".snapshot")]
    assert offsets == [*bases[1:], 9]
    assert len(read_all(world.log)) == 9
