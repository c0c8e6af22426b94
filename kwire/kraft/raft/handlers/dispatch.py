"""Which handler a message goes to, as tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.handlers import (
    append,
    changes,
    describe,
    epochs,
    fetch,
    snapshot,
    upgrade,
    vote,
)
from kwire.kraft.raft.roles.leader import Leader
from kwire.kraft.raft.types import check
from kwire.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kwire.kraft.raft.state import RaftState

API_FETCH, API_API_VERSIONS = 1, 18
API_VOTE, API_BEGIN_QUORUM_EPOCH, API_END_QUORUM_EPOCH = 52, 53, 54
API_DESCRIBE_QUORUM, API_FETCH_SNAPSHOT = 55, 59
API_ADD_RAFT_VOTER, API_REMOVE_RAFT_VOTER, API_UPDATE_RAFT_VOTER = 80, 81, 82

RequestHandler = Callable[["RaftState", msg.Request, int], None]
ResponseHandler = Callable[["RaftState", int, Any, Any, int], bool]

REQUESTS: dict[int, RequestHandler] = {
    API_FETCH: fetch.handle,
    API_VOTE: vote.handle,
    API_BEGIN_QUORUM_EPOCH: epochs.handle_begin,
    API_END_QUORUM_EPOCH: epochs.handle_end,
    API_DESCRIBE_QUORUM: describe.handle,
    API_FETCH_SNAPSHOT: snapshot.handle,
    API_ADD_RAFT_VOTER: changes.handle_add,
    API_REMOVE_RAFT_VOTER: changes.handle_remove,
    API_UPDATE_RAFT_VOTER: changes.handle_update,
}

RESPONSES: dict[int, ResponseHandler] = {
    API_FETCH: fetch.handle_response,
    API_API_VERSIONS: changes.handle_api_versions_response,
    API_VOTE: vote.handle_response,
    API_BEGIN_QUORUM_EPOCH: epochs.handle_begin_response,
    API_END_QUORUM_EPOCH: epochs.handle_end_response,
    API_FETCH_SNAPSHOT: snapshot.handle_response,
    API_ADD_RAFT_VOTER: changes.handle_join_response,
    API_REMOVE_RAFT_VOTER: changes.handle_join_response,
    API_UPDATE_RAFT_VOTER: changes.handle_update_response,
}


def handle(raft: RaftState, message: msg.Message, now_ms: int) -> None:
    """One message of `messages.py`."""
    if isinstance(message, msg.Request):
        handler = REQUESTS.get(message.request.API_KEY)
        if handler is None:
            check(False, f"API {message.request.API_KEY} is not raft's")
        else:
            handler(raft, message, now_ms)
    elif isinstance(message, msg.Response):
        _response(raft, message, now_ms)
    elif isinstance(message, msg.Flushed):
        append.handle_flushed(raft, message)
    elif isinstance(message, msg.Append):
        append.handle_append(raft, message)
    elif isinstance(message, msg.Failed):
        _failed(raft, message, now_ms)
    elif not isinstance(message, msg.Tick):
        _rare(raft, message, now_ms)


def _rare(raft: RaftState, message: msg.Message, now_ms: int) -> None:
    if isinstance(message, msg.Cancel):
        fetch.cancel(raft, message.reply_to)
    elif isinstance(message, msg.SnapshotCreated):
        snapshot.handle_created(raft, message)
    elif isinstance(message, msg.SnapshotStored):
        snapshot.handle_stored(raft, message, now_ms)
    elif isinstance(message, msg.DeletePrefix):
        snapshot.handle_delete_prefix(raft, message)
    elif isinstance(message, msg.Resign):
        role = raft.role
        if isinstance(role, Leader) and role.epoch == message.epoch:
            role.resign_requested = True
    elif isinstance(message, msg.LeaderRefused):
        epochs.handle_refused(raft, message, now_ms)
    elif isinstance(message, msg.UpgradeVersion):
        upgrade.handle(raft, message)
    elif isinstance(message, msg.Shutdown):
        raft.shutting_down = True
        raft.wake_fetches = True


def _response(raft: RaftState, message: msg.Response, now_ms: int) -> None:
    outstanding = raft.requests.answered(message.correlation)
    if outstanding is None:
        return
    sent: Any = outstanding.request
    handler = RESPONSES[sent.API_KEY]
    if not handler(raft, outstanding.node.id, sent, message.response, now_ms):
        raft.requests.back_off(outstanding.node, now_ms)


def _failed(raft: RaftState, message: msg.Failed, now_ms: int) -> None:
    outstanding = raft.requests.answered(message.correlation)
    if outstanding is None:
        return
    sent: Any = outstanding.request
    raft.requests.back_off(outstanding.node, now_ms)
    if sent.API_KEY == API_VOTE and message.code == ErrorCode.UNSUPPORTED_VERSION:
        vote.handle_unsupported(raft, sent, now_ms)
    elif sent.API_KEY == API_API_VERSIONS:
        changes.api_versions_failed(raft, outstanding.node.id, message.code, now_ms)
