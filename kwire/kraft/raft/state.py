"""`RaftState`: what one replica is, how its role changes, and how it sends.

It knows the roles and no handler: `machine.py` hands it each message and does what its role wants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from kwire.clock import Random
from kwire.kraft.raft import effects as fx
from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.config import RaftConfig
from kwire.kraft.raft.election import ElectionState
from kwire.kraft.raft.log_state import LogState
from kwire.kraft.raft.requests import Requests
from kwire.kraft.raft.roles.base import FOREVER_MS, Role
from kwire.kraft.raft.roles.follower import Follower
from kwire.kraft.raft.roles.leader import Leader
from kwire.kraft.raft.roles.nominee import Candidate, Nominee, Prospective
from kwire.kraft.raft.roles.resigned import Resigned
from kwire.kraft.raft.roles.unattached import Unattached
from kwire.kraft.raft.transitions import ALLOWED, SAME_EPOCH, RoleName
from kwire.kraft.raft.types import (
    Endpoint,
    Endpoints,
    Node,
    ReplicaKey,
    ReplyTo,
    check,
    find_endpoint,
    value,
)
from kwire.kraft.raft.voters import VoterHistory, VoterSet
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode

FIRST_BOOTSTRAP_ID = -2


@value
class WaitingFetch:
    """A Fetch that found nothing to send yet."""

    message: msg.Request[m.FetchRequest]
    partition: m.FetchRequest.FetchPartition
    until_ms: int


class LeaderEndpoint(Protocol):
    """An entry of NodeEndpoints in any of the quorum's responses."""

    node_id: int
    host: str
    port: int


class RaftState:
    """One replica of the metadata log.

    `machine.step` feeds it; read `role`, `leader_id`, `epoch`, `log`, `voters`, `deadline_ms`.
    """

    def __init__(
        self,
        config: RaftConfig,
        random: Random,
        log: LogState,
        voters: VoterHistory,
        election: ElectionState | None,
    ) -> None:
        self.config = config
        self.log = log
        self.voters = voters
        self.random = random
        self.effects: list[fx.Effect] = []
        self.deadline_ms = FOREVER_MS
        self.shutting_down = False
        self.update_voter_period_ms = config.fetch_timeout_ms
        self.waiting_fetches: dict[ReplyTo, WaitingFetch] = {}
        self.wake_fetches = False  # log end, high watermark or role are new
        self.leader_heard: tuple[int, int] | None = None
        """(leader, when) of the last sign of life of the last leader known, unless it was this
        replica itself."""
        self.complete: tuple[int, int] | None = None
        """(high watermark, when) of the last answer of a leader whose high watermark this replica
        had reached with it."""
        self._quick_epoch = -1
        self._quick_until_ms = 0
        self.flush_token = 0
        self.flushing: tuple[int, int] | None = None
        self.requests = Requests(
            self._bootstrap_nodes(),
            random,
            request_timeout_ms=config.request_timeout_ms,
            retry_backoff_ms=config.retry_backoff_ms,
        )
        self._announced: tuple[int | None, int] | None = None
        self.role: Role = self._initial_role(election or ElectionState(0))
        self.is_started = False

    # ---- what others may read

    @property
    def epoch(self) -> int:
        return self.role.epoch

    @property
    def leader_id(self) -> int | None:
        return self.role.leader_id

    @property
    def is_led(self) -> bool:
        return self.role.is_led

    @property
    def is_voter(self) -> bool:
        """Whether this replica votes: among the newest voters, or removed by a change that is not
        known to be committed. Without the latter a leader that removes itself and dies could
        leave behind a quorum in which nobody can win (Ongaro's thesis, 4.2.2)."""
        if not self.config.can_be_voter:
            return False
        key, voters = self.config.key, self.voters
        if voters.voters.is_voter(key):
            return True
        offset = voters.voters_offset
        return (
            offset is not None
            and offset >= self.log.high_watermark
            and voters.voters_before.is_voter(key)
        )

    @property
    def is_leader(self) -> bool:
        return isinstance(self.role, Leader)

    def leader(self) -> Leader | None:
        return self.role if isinstance(self.role, Leader) else None

    # ---- what a step begins and ends with

    def begin(self, now_ms: int) -> None:
        """The role after a restart has its deadlines from here on, and is durable."""
        check(not self.is_started, "raft is started twice")
        self.is_started = True
        role = self.role
        if isinstance(role, Unattached | Resigned | Candidate):
            role.election_at_ms = now_ms + self.random_election_ms()
        elif isinstance(role, Follower):
            role.fetch_by_ms = now_ms + self.config.fetch_timeout_ms
            role.update_voter_at_ms = now_ms + self.update_voter_period_ms
        self._persist()
        alone = self.voters.voters.is_only_voter(self.config.key) and self.is_voter
        if alone and not isinstance(role, Candidate):
            self.become_prospective(now_ms)

    def take_effects(self) -> list[fx.Effect]:
        effects, self.effects = self.effects, []
        return effects

    def emit(self, effect: fx.Effect) -> None:
        self.effects.append(effect)

    def announce(self) -> None:
        """Tell who listens about leader and epoch; about itself once it is caught up."""
        role = self.role
        leader_id: int | None = role.leader_id
        if isinstance(role, Leader) and role.high_watermark is None:
            leader_id = None
        if isinstance(role, Resigned):
            leader_id = None
        now = (leader_id, role.epoch)
        if now != self._announced:
            self._announced = now
            self.emit(fx.LeaderChanged(*now))

    # ---- transitions

    def _initial_role(self, election: ElectionState) -> Role:
        """The role after a restart, from `quorum-state` and the end of the log."""
        voters = self.voters.voters
        ids = tuple(voters.ids)
        epoch, leader_id = election.epoch, election.leader_id
        if epoch < self.log.last_epoch:
            return Unattached(
                self.log.last_epoch, ids, leader_id=None, voted=None, election_at_ms=FOREVER_MS
            )
        local = self.config.key
        if leader_id == local.id:
            return Resigned(
                epoch,
                ids,
                local_id=local.id,
                endpoints=self.config.endpoints,
                successors=[],
                election_at_ms=FOREVER_MS,
            )
        stood = election.voted is not None and election.voted in (local, ReplicaKey(local.id))
        if leader_id is None and stood and self.is_voter:
            return Candidate(epoch, ids, local, FOREVER_MS)
        endpoints = voters.endpoints(leader_id) if leader_id is not None else ()
        if leader_id is None or not endpoints:
            return Unattached(
                epoch,
                ids,
                leader_id=leader_id,
                voted=election.voted,
                election_at_ms=FOREVER_MS,
            )
        return Follower(
            epoch,
            ids,
            leader_id=leader_id,
            leader_endpoints=endpoints,
            voted=election.voted,
            fetch_by_ms=FOREVER_MS,
            update_voter_at_ms=FOREVER_MS,
        )

    def random_election_ms(self) -> int:
        """An election time-out between once and twice the configured one."""
        timeout_ms = self.config.election_timeout_ms
        return timeout_ms + (self.random.below(timeout_ms) if timeout_ms else 0)

    def elect_quickly(self, until_ms: int) -> None:
        """The leader of this epoch is known to be gone: an election that fails is soon tried again,
        until then."""
        self._quick_epoch = self.role.epoch
        self._quick_until_ms = until_ms

    def elect_as_usual(self) -> None:
        self._quick_epoch, self._quick_until_ms = -1, 0

    def elects_quickly(self, now_ms: int) -> bool:
        return self._quick_epoch == self.role.epoch and now_ms < self._quick_until_ms

    def random_wait_ms(self, now_ms: int) -> int:
        """How long to wait for votes or pre-votes, or until the next try."""
        if not self.elects_quickly(now_ms):
            return self.random_election_ms()
        wait_ms = self.config.stagger_ms
        return wait_ms + self.random.below(2 * wait_ms)

    def _become(self, role: Role, durable: bool = True) -> None:
        before = self.role
        check(
            role.name in ALLOWED[before.name],
            f"{before.name.value} cannot become {role.name.value}",
        )
        check(
            role.epoch > before.epoch
            or (role.epoch == before.epoch and role.name in SAME_EPOCH[before.name]),
            f"{before.name.value} of epoch {before.epoch} cannot become {role.name.value} of "
            f"epoch {role.epoch}",
        )
        if isinstance(before, Leader):
            self.finish_change(before, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.role = role
        if isinstance(before, Leader) or self._is_another_leader(role):
            self.leader_heard = None
        if durable:
            self._persist()
        self.wake_fetches = True

    def _is_another_leader(self, role: Role) -> bool:
        """Whether the role follows another leader than the one last heard of."""
        heard = self.leader_heard
        if heard is None or isinstance(role, Leader):
            return False
        return role.leader_id not in (None, heard[0])

    def _persist(self) -> None:
        self.emit(fx.PersistElection(self.role.election, self.voters.level))

    @property
    def _voter_ids(self) -> tuple[int, ...]:
        return tuple(self.voters.voters.ids)

    def become_unattached(self, epoch: int, leader_id: int | None, now_ms: int) -> None:
        before = self.role
        if not self.is_voter:
            election_at_ms = FOREVER_MS
        elif isinstance(before, Unattached | Resigned | Candidate) or (
            isinstance(before, Prospective) and not before.tally.lost
        ):
            election_at_ms = before.election_at_ms
        else:
            election_at_ms = now_ms + self.random_election_ms()
        if election_at_ms <= now_ms:
            election_at_ms = now_ms + self.random_election_ms()
        self._become(
            Unattached(
                epoch,
                self._voter_ids,
                leader_id=leader_id,
                voted=before.voted if epoch == before.epoch else None,
                election_at_ms=election_at_ms,
            )
        )

    def become_follower(
        self, epoch: int, leader_id: int, endpoints: Endpoints, now_ms: int
    ) -> None:
        check(leader_id != self.config.node_id, f"node {leader_id} cannot follow itself")
        before = self.role
        if isinstance(before, Follower) and before.epoch == epoch:
            check(
                before.leader_id == leader_id,
                f"epoch {epoch} has the leaders {before.leader_id} and {leader_id}",
            )
        self._become(
            Follower(
                epoch,
                self._voter_ids,
                leader_id=leader_id,
                leader_endpoints=endpoints,
                voted=before.voted if epoch == before.epoch else None,
                fetch_by_ms=now_ms + self.config.fetch_timeout_ms,
                update_voter_at_ms=now_ms + self.update_voter_period_ms,
            )
        )
        self.requests.reset_all()

    def add_vote(self, role: Unattached | Prospective, candidate: ReplicaKey) -> None:
        """Vote in this epoch, durably before anybody hears of it."""
        role.vote_for(candidate)
        self._persist()

    def become_prospective(self, now_ms: int) -> None:
        before = self.role
        check(self.is_voter, "an observer stands for no election")
        self._become(
            Prospective(
                before.epoch,
                self._voter_ids,
                self.config.node_id,
                leader_id=None if isinstance(before, Resigned) else before.leader_id,
                leader_endpoints=() if isinstance(before, Resigned) else before.leader_endpoints,
                voted=before.voted,
                election_at_ms=now_ms + self.random_wait_ms(now_ms),
                leader_is_gone=isinstance(before, Follower) and before.leader_is_gone,
            ),
            durable=isinstance(before, Resigned),
        )
        self.requests.reset_all()

    def become_candidate(self, now_ms: int) -> None:
        check(self.is_voter, "an observer stands for no election")
        epoch = self.role.epoch + 1
        wait_ms = self.random_wait_ms(now_ms)
        if self.elects_quickly(now_ms):
            self._quick_epoch = epoch
        self._become(Candidate(epoch, self._voter_ids, self.config.key, now_ms + wait_ms))
        self.requests.reset_all()

    def give_up_pre_vote(self, role: Prospective, now_ms: int) -> None:
        """No majority would vote: back to the leader of the epoch, if one is known."""
        if role.leader_id is not None and role.leader_endpoints and not role.leader_is_gone:
            self.become_follower(role.epoch, role.leader_id, role.leader_endpoints, now_ms)
            assert isinstance(self.role, Follower)
            self.role.leader_is_silent = True
            if self.elects_quickly(now_ms):
                self.role.leader_refuses = True
                self.role.fetch_by_ms = now_ms + self.random_wait_ms(now_ms)
        else:
            self.become_unattached(role.epoch, role.leader_id, now_ms)

    def become_leader(self, candidate: Candidate, now_ms: int) -> None:
        """The records that begin its epoch are the caller's to append."""
        leader = Leader(
            candidate.epoch,
            self.voters.voters,
            local=self.config.key,
            endpoints=self.config.endpoints,
            start_offset=self.log.end_offset,
            granting_voters=candidate.tally.granting(),
            fetch_timeout_ms=self.config.fetch_timeout_ms,
            now_ms=now_ms,
        )
        self._become(leader)
        self.requests.reset_all()

    def become_resigned(self, leader: Leader, now_ms: int) -> None:
        self._become(
            Resigned(
                leader.epoch,
                leader.voter_ids,
                local_id=self.config.node_id,
                endpoints=self.config.endpoints,
                successors=leader.successors(),
                election_at_ms=now_ms + self.random_election_ms(),
            ),
            durable=False,
        )
        self.requests.reset_all()

    def finish_change(self, leader: Leader, code: ErrorCode, text: str | None = None) -> None:
        """The leader is busy with no change of the voters any more; who asked for one hears."""
        pending = leader.pending_change
        leader.pending_change = None
        if pending is not None and not pending.answered:
            self.emit(fx.Reply(pending.request.reply_to, pending.response(code, text)))

    def heard_of_leader(self, follower: Follower, now_ms: int) -> None:
        """Wait another fetch time-out, unless the leader has ended the epoch: what still comes
        from it was sent before."""
        if follower.leader_is_gone:
            return
        if follower.leader_refuses:
            follower.leader_refuses = False
            self.elect_as_usual()
        follower.leader_is_silent = False
        self.leader_heard = (follower.leader_id, now_ms)
        follower.fetch_by_ms = now_ms + self.config.fetch_timeout_ms

    def voters_changed(self) -> None:
        """The newest voter set of the log is another one."""
        voters = self.voters.voters
        role = self.role
        if isinstance(role, Leader):
            role.set_voters(voters)
        elif not isinstance(role, Nominee):
            role.voter_ids = tuple(voters.ids)

    def follow_hint(
        self, epoch: int, leader_id: int | None, endpoints: Endpoints, now_ms: int
    ) -> None:
        """What a request or response says about the leader; Kafka's rule for acting on it."""
        role = self.role
        if epoch > role.epoch:
            if leader_id is None or leader_id == self.config.node_id:
                self.become_unattached(epoch, None, now_ms)
            elif not endpoints:
                self.become_unattached(epoch, leader_id, now_ms)
            else:
                self.become_follower(epoch, leader_id, endpoints, now_ms)
        elif epoch == role.epoch and leader_id is not None:
            self._follow_in_epoch(leader_id, endpoints, now_ms)

    def _follow_in_epoch(self, leader_id: int, endpoints: Endpoints, now_ms: int) -> None:
        role = self.role
        if leader_id == self.config.node_id or role.leader_id not in (None, leader_id):
            return
        knows = role.leader_id is not None and bool(role.leader_endpoints)
        if endpoints and (not knows or len(endpoints) > len(role.leader_endpoints)):
            self.become_follower(role.epoch, leader_id, endpoints, now_ms)

    # ---- sending

    def _bootstrap_nodes(self) -> tuple[Node, ...]:
        own = {(endpoint.host, endpoint.port) for endpoint in self.config.endpoints}
        addresses = dict.fromkeys(self.config.bootstrap_servers)
        static = self.config.static_voters
        for node in static.nodes if static is not None else ():
            endpoint = find_endpoint(node.endpoints, self.config.listener_name)
            if endpoint is not None and node.key.id != self.config.node_id:
                addresses[(endpoint.host, endpoint.port)] = None
        return tuple(
            Node(FIRST_BOOTSTRAP_ID - index, host, port)
            for index, (host, port) in enumerate(a for a in addresses if a not in own)
        )

    def node_of(self, node_id: int, endpoints: Endpoints) -> Node | None:
        """Where a node is reached by this node's controller listener."""
        endpoint = find_endpoint(endpoints, self.config.listener_name)
        return None if endpoint is None else Node(node_id, endpoint.host, endpoint.port)

    def other_voters(self) -> tuple[Node, ...]:
        """Where the other voters are, as far as the newest voter set tells."""
        nodes = (
            self.node_of(voter.key.id, voter.endpoints)
            for voter in self.voters.voters.nodes
            if voter.key.id != self.config.node_id
        )
        return tuple(node for node in nodes if node is not None)

    def endpoints_from(
        self, leader_id: int | None, node_endpoints: Sequence[LeaderEndpoint]
    ) -> Endpoints:
        """The leader's endpoint in a response's NodeEndpoints, else that of the voter set."""
        if leader_id is None:
            return ()
        for entry in node_endpoints:
            if entry.node_id == leader_id:
                return (Endpoint(self.config.listener_name, entry.host, entry.port),)
        return self.voters.voters.endpoints(leader_id)

    def send(
        self, node: Node, build: Callable[[], msg.RaftRequest], now_ms: int
    ) -> tuple[bool, int]:
        """Send a request unless one is out or the node is backed off: sent, and when next."""
        ready_at_ms = self.requests.ready_at_ms(node, now_ms)
        if ready_at_ms > now_ms:
            return False, ready_at_ms
        request = build()
        correlation = self.requests.sent(node, request, now_ms)
        self.emit(fx.Send(correlation, node, request))
        return True, now_ms + self.config.request_timeout_ms

    def send_to_voters(
        self,
        voter_ids: list[int],
        voters: VoterSet,
        build: Callable[[ReplicaKey], msg.RaftRequest],
        now_ms: int,
    ) -> int:
        """One request to each of these voters; when to try again."""
        retry_at_ms = FOREVER_MS
        for voter_id in voter_ids:
            voter = voters.get(voter_id)
            node = self.node_of(voter_id, voter.endpoints) if voter is not None else None
            if voter is None or node is None:
                continue
            _, at_ms = self.send(node, partial(build, voter.key), now_ms)
            retry_at_ms = min(retry_at_ms, at_ms)
        return retry_at_ms

    @property
    def role_name(self) -> RoleName:
        return self.role.name
