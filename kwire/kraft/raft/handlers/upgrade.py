"""Raising kraft.version from 0 to 1 (KIP-853): the static voters become a record in the log.

The leader can do it once every voter has told its directory id and supported versions by
UpdateRaftVoter, which voters send while kraft.version is 0, too.
"""

from __future__ import annotations

from kwire.kraft.raft import effects as fx
from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.config import KRAFT_VERSION_MAX
from kwire.kraft.raft.control_records import ControlRecord, ControlType
from kwire.kraft.raft.handlers import append
from kwire.kraft.raft.state import RaftState
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode


def handle(raft: RaftState, message: msg.UpgradeVersion) -> None:
    code, text = _refusal(raft, message)
    end_offset = raft.log.end_offset
    if code == ErrorCode.NONE and not message.validate_only and message.level > raft.voters.level:
        leader = raft.leader()
        assert leader is not None
        assert leader.upgrade_voters is not None
        entries: list[ControlRecord] = [
            (
                ControlType.KRAFT_VERSION,
                m.KRaftVersionRecord(version=0, kraft_version=message.level),
            ),
            (ControlType.VOTERS, leader.upgrade_voters.to_record()),
        ]
        end_offset = append.append_control(raft, leader, entries) + 1
    raft.emit(fx.Upgraded(message.reply_to, code, text, end_offset))


def _refusal(raft: RaftState, message: msg.UpgradeVersion) -> tuple[ErrorCode, str | None]:
    leader = raft.leader()
    if leader is None or leader.epoch != message.epoch:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER, f"not the leader of epoch {message.epoch}"
    level, current = message.level, raft.voters.level
    invalid = ErrorCode.INVALID_UPDATE_VERSION
    if level == current:
        return ErrorCode.NONE, None
    if level < current:
        return invalid, (
            f"Invalid upgrade of kraft.version from version {current} to {level} because the new "
            f"version is a downgrade"
        )
    voters = leader.upgrade_voters
    if level > KRAFT_VERSION_MAX or voters is None or not voters.supports(level):
        return invalid, (
            f"Invalid upgrade of kraft.version to {level} because not all of the voters support it"
        )
    if any(key.directory_id is None for key in voters.keys):
        return invalid, "Directory id must be known for all of the voters"
    return ErrorCode.NONE, None
