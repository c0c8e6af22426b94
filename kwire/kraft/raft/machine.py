"""The machine: which handler a message goes to, and what a role's intents mean.

Handlers and roles are below it and do not know it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from kwire.kraft.raft import effects as fx
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
from kwire.kraft.raft.roles.base import Intent
from kwire.kraft.raft.roles.follower import Follower
from kwire.kraft.raft.roles.leader import Leader
from kwire.kraft.raft.roles.nominee import Candidate, Nominee, Prospective
from kwire.kraft.raft.roles.resigned import Resigned
from kwire.kraft.raft.state import RaftState
from kwire.kraft.raft.types import check
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode

POLLS_MAX = 20
"""More role changes than this in one step are a fault of ours."""


def start(raft: RaftState, now_ms: int) -> list[fx.Effect]:
    """The first step; to be called once, before any other."""
    raft.begin(now_ms)
    _poll(raft, now_ms)
    return raft.take_effects()


def step(raft: RaftState, message: msg.Message, now_ms: int) -> list[fx.Effect]:
    """React to one message; see the package's contract.

    Raises KafkaError only for `Append` (not the leader); a broken invariant is RaftInvariantError,
    after which the replica must not go on.
    """
    _handle(raft, message, now_ms)
    _poll(raft, now_ms)
    return raft.take_effects()


# ---- messages

# The request and the response are of the API that the table is asked for.
RequestHandler: TypeAlias = "Callable[[RaftState, msg.Request[Any], int], None]"
ResponseHandler: TypeAlias = "Callable[[RaftState, int, Any, Any, int], bool]"

REQUESTS: dict[int, RequestHandler] = {
    ApiKey.FETCH: fetch.handle,
    ApiKey.VOTE: vote.handle,
    ApiKey.BEGIN_QUORUM_EPOCH: epochs.handle_begin,
    ApiKey.END_QUORUM_EPOCH: epochs.handle_end,
    ApiKey.DESCRIBE_QUORUM: describe.handle,
    ApiKey.FETCH_SNAPSHOT: snapshot.handle,
    ApiKey.ADD_RAFT_VOTER: changes.handle_add,
    ApiKey.REMOVE_RAFT_VOTER: changes.handle_remove,
    ApiKey.UPDATE_RAFT_VOTER: changes.handle_update,
}

RESPONSES: dict[int, ResponseHandler] = {
    ApiKey.FETCH: fetch.handle_response,
    ApiKey.API_VERSIONS: changes.handle_api_versions_response,
    ApiKey.VOTE: vote.handle_response,
    ApiKey.BEGIN_QUORUM_EPOCH: epochs.handle_begin_response,
    ApiKey.END_QUORUM_EPOCH: epochs.handle_end_response,
    ApiKey.FETCH_SNAPSHOT: snapshot.handle_response,
    ApiKey.ADD_RAFT_VOTER: changes.handle_join_response,
    ApiKey.REMOVE_RAFT_VOTER: changes.handle_join_response,
    ApiKey.UPDATE_RAFT_VOTER: changes.handle_update_response,
}


def _handle(raft: RaftState, message: msg.Message, now_ms: int) -> None:
    if isinstance(message, msg.Request):
        api_key = message.request.API_KEY
        handler = None if api_key is None else REQUESTS.get(api_key)
        if handler is None:
            check(False, f"API {api_key} is not raft's")
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
    sent = outstanding.request
    handler = RESPONSES[sent.API_KEY]
    if not handler(raft, outstanding.node.id, sent, message.response, now_ms):
        raft.requests.back_off(outstanding.node, now_ms)


def _failed(raft: RaftState, message: msg.Failed, now_ms: int) -> None:
    outstanding = raft.requests.answered(message.correlation)
    if outstanding is None:
        return
    sent = outstanding.request
    raft.requests.back_off(outstanding.node, now_ms)
    if isinstance(sent, m.VoteRequest) and message.code == ErrorCode.UNSUPPORTED_VERSION:
        vote.handle_unsupported(raft, sent, now_ms)
    elif isinstance(sent, m.ApiVersionsRequest):
        changes.api_versions_failed(raft, outstanding.node.id, message.code, now_ms)


# ---- roles


def _poll(raft: RaftState, now_ms: int) -> None:
    """Do what the role wants until it is the same one afterwards."""
    for _ in range(POLLS_MAX):
        role = raft.role
        deadline_ms, intents = role.poll(raft, now_ms)
        for intent in intents:
            deadline_ms = min(deadline_ms, _INTENTS[intent](raft, now_ms))
        if raft.role is role:
            break
    else:
        check(False, f"the role changes without end ({raft.role.name.value})")
    # Whatever is due has been done: anything else would be a busy loop.
    raft.deadline_ms = max(now_ms + 1, min(deadline_ms, fetch.poll_waiting(raft, now_ms)))
    raft.announce()


def _ask_for_pre_votes(raft: RaftState, now_ms: int) -> int:
    raft.become_prospective(now_ms)
    return now_ms


def _stand(raft: RaftState, now_ms: int) -> int:
    raft.become_candidate(now_ms)
    return now_ms


def _give_up_pre_votes(raft: RaftState, now_ms: int) -> int:
    assert isinstance(raft.role, Prospective)
    raft.give_up_pre_vote(raft.role, now_ms)
    return now_ms


def _lead(raft: RaftState, now_ms: int) -> int:
    assert isinstance(raft.role, Candidate)
    raft.become_leader(raft.role, now_ms)
    append.start_of_epoch(raft, _leader(raft))
    return now_ms


def _resign(raft: RaftState, now_ms: int) -> int:
    raft.become_resigned(_leader(raft), now_ms)
    return now_ms


def _leave_epoch(raft: RaftState, now_ms: int) -> int:
    raft.become_unattached(raft.epoch + 1, None, now_ms)
    return now_ms


def _find_leader(raft: RaftState, now_ms: int) -> int:
    return fetch.send_to_bootstrap(raft, now_ms)


def _fetch(raft: RaftState, now_ms: int) -> int:
    """The next Fetch or FetchSnapshot to the leader, or a Fetch to find a better one."""
    follower = _follower(raft)
    if follower.fetching is not None:
        return snapshot.send_fetch(raft, follower, now_ms)
    return fetch.send_to_leader(raft, follower, now_ms)


def _update_voter(raft: RaftState, now_ms: int) -> int:
    follower = _follower(raft)
    if changes.send_update_voter(raft, follower, now_ms):
        follower.update_voter_at_ms = now_ms + raft.update_voter_period_ms
        return follower.update_voter_at_ms
    return _fetch(raft, now_ms)


def _join_voters(raft: RaftState, now_ms: int) -> int:
    follower = _follower(raft)
    if changes.send_join(raft, follower, now_ms):
        follower.update_voter_at_ms = now_ms + raft.update_voter_period_ms
        return follower.update_voter_at_ms
    return _fetch(raft, now_ms)


def _request_pre_votes(raft: RaftState, now_ms: int) -> int:
    assert isinstance(raft.role, Nominee)
    return vote.send_requests(raft, raft.role, True, now_ms)


def _request_votes(raft: RaftState, now_ms: int) -> int:
    assert isinstance(raft.role, Nominee)
    return vote.send_requests(raft, raft.role, False, now_ms)


def _go_on_with_change(raft: RaftState, now_ms: int) -> int:
    return changes.poll(raft, _leader(raft), now_ms)


def _begin_epoch(raft: RaftState, now_ms: int) -> int:
    leader = _leader(raft)
    return leader.epoch_announced(epochs.send_begin(raft, leader, now_ms), now_ms)


def _end_epoch(raft: RaftState, now_ms: int) -> int:
    assert isinstance(raft.role, Resigned)
    return epochs.send_end(raft, raft.role, now_ms)


def _leader(raft: RaftState) -> Leader:
    assert isinstance(raft.role, Leader)
    return raft.role


def _follower(raft: RaftState) -> Follower:
    assert isinstance(raft.role, Follower)
    return raft.role


# What each intent comes to: does it, and returns when to poll the role again at the latest.
_INTENTS: dict[Intent, Callable[[RaftState, int], int]] = {
    Intent.ASK_FOR_PRE_VOTES: _ask_for_pre_votes,
    Intent.STAND: _stand,
    Intent.GIVE_UP_PRE_VOTES: _give_up_pre_votes,
    Intent.LEAD: _lead,
    Intent.RESIGN: _resign,
    Intent.LEAVE_EPOCH: _leave_epoch,
    Intent.FIND_LEADER: _find_leader,
    Intent.FETCH: _fetch,
    Intent.UPDATE_VOTER: _update_voter,
    Intent.JOIN_VOTERS: _join_voters,
    Intent.REQUEST_PRE_VOTES: _request_pre_votes,
    Intent.REQUEST_VOTES: _request_votes,
    Intent.GO_ON_WITH_CHANGE: _go_on_with_change,
    Intent.BEGIN_EPOCH: _begin_epoch,
    Intent.END_EPOCH: _end_epoch,
}
