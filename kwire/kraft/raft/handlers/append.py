"""Appending and committing: the leader's own batches, flushes, what a commit sets off."""

from __future__ import annotations

from kwire.kraft.raft import effects as fx
from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.control_records import (
    BatchShape,
    ControlMessage,
    ControlRecord,
    ControlType,
)
from kwire.kraft.raft.roles.leader import Leader
from kwire.kraft.raft.state import RaftState
from kwire.kraft.raft.types import check
from kwire.kraft.raft.voters import VoterSet
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError


def handle_append(raft: RaftState, message: msg.Append) -> None:
    """The state machine's batch; raises KafkaError NOT_LEADER_OR_FOLLOWER."""
    leader = raft.leader()
    if leader is None or leader.epoch != message.epoch or leader.resign_requested:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"not the leader of {message.epoch}")
    check(leader.high_watermark is not None, "an append before the epoch's start is committed")
    check(message.record_count > 0, "an append without records")
    base_offset = raft.log.end_offset
    raft.log.append(base_offset, base_offset + message.record_count - 1, leader.epoch)
    raft.emit(fx.AppendBatch(base_offset, leader.epoch, message.batch))
    appended(raft)


def append_control(raft: RaftState, leader: Leader, entries: list[ControlRecord]) -> int:
    """Append one control batch; the offset of its last record."""
    base_offset = raft.log.end_offset
    last_offset = base_offset + len(entries) - 1
    raft.log.append(base_offset, last_offset, leader.epoch)
    raft.emit(fx.AppendControl(base_offset, leader.epoch, tuple(entries)))
    for index, (_, message) in enumerate(entries):
        apply_control(raft, base_offset + index, message)
    appended(raft)
    return last_offset


def apply_control(raft: RaftState, offset: int, message: ControlMessage | None) -> None:
    """Note what an appended control record says about voters and kraft.version."""
    if isinstance(message, m.KRaftVersionRecord):
        raft.voters.add_level(offset, message.kraft_version)
    elif isinstance(message, m.VotersRecord):
        raft.voters.add_voters(offset, VoterSet.from_record(message))
        raft.voters_changed()


def appended(raft: RaftState) -> None:
    """There is something new at the log's end: flush it, answer the fetches that wait for it."""
    request_flush(raft)
    raft.wake_fetches = True


def request_flush(raft: RaftState) -> None:
    """Ask for a flush; while one runs the next one waits for its end and then covers all."""
    if raft.flushing is None and raft.log.flushed_offset < raft.log.end_offset:
        raft.flush_token += 1
        raft.flushing = (raft.flush_token, raft.log.end_offset)
        raft.emit(fx.Flush(raft.flush_token))


def forget_flush(raft: RaftState) -> None:
    """The log was truncated: a flush that runs says nothing about what comes in its place."""
    raft.flushing = None


def handle_flushed(raft: RaftState, message: msg.Flushed) -> None:
    if raft.flushing is None or raft.flushing[0] != message.token:
        return
    end_offset, raft.flushing = raft.flushing[1], None
    raft.log.flushed_offset = max(raft.log.flushed_offset, end_offset)
    leader = raft.leader()
    if leader is not None and leader.local_flushed(raft.log.flushed_offset):
        leader_committed(raft, leader)
    request_flush(raft)


def leader_committed(raft: RaftState, leader: Leader) -> None:
    """The leader's high watermark has moved."""
    offset = leader.high_watermark
    assert offset is not None
    commit(raft, offset)
    _change_committed(raft, leader, offset)
    raft.wake_fetches = True


def _change_committed(raft: RaftState, leader: Leader, high_watermark: int) -> None:
    """A change of the voters may be done, the leader may be out."""
    pending = leader.pending_change
    due_at = pending.end_offset if pending is not None else None
    if due_at is not None and high_watermark >= due_at:
        raft.finish_change(leader, ErrorCode.NONE)
    offset = raft.voters.voters_offset
    if (
        raft.voters.level >= 1
        and offset is not None
        and offset < high_watermark
        and not leader.is_voter(raft.config.key)
    ):
        leader.resign_requested = True


def commit(raft: RaftState, offset: int) -> None:
    if offset > raft.log.end_offset:
        check(False, f"high watermark {offset} above the log's end {raft.log.end_offset}")
    if offset > raft.log.high_watermark:
        raft.log.high_watermark = offset
        raft.emit(fx.Commit(offset))


def start_of_epoch(raft: RaftState, leader: Leader) -> None:
    """The first batch of an epoch: the leader change; with kraft.version 1 also version and voters
    when they stand in the formatted checkpoint only, or this node's own entry is out of date."""
    message = m.LeaderChangeMessage
    entries: list[ControlRecord] = [
        (
            ControlType.LEADER_CHANGE,
            message(
                version=0,
                leader_id=raft.config.node_id,
                voters=[message.Voter(voter_id=voter) for voter in leader.voter_ids],
                granting_voters=[message.Voter(voter_id=voter) for voter in leader.granting_voters],
            ),
        )
    ]
    voters = raft.voters.voters
    if raft.voters.level >= 1:
        own = raft.config.voter_node
        if raft.voters.voters_offset == -1 or voters.needs_update(own):
            updated = voters.with_updated(own) or voters
            entries.append(
                (
                    ControlType.KRAFT_VERSION,
                    m.KRaftVersionRecord(version=0, kraft_version=raft.voters.level),
                )
            )
            entries.append((ControlType.VOTERS, updated.to_record()))
    else:
        leader.upgrade_voters = voters.with_replaced(raft.config.voter_node)
    append_control(raft, leader, entries)


def append_fetched(raft: RaftState, shapes: list[BatchShape], batches: bytes) -> None:
    """Whole batches from the leader that continue this log."""
    raft.emit(fx.AppendFetched(raft.log.end_offset, batches))
    for shape in shapes:
        raft.log.append(shape.base_offset, shape.last_offset, shape.epoch)
        for entry in shape.control:
            apply_control(raft, entry.offset, entry.message)
    request_flush(raft)
