"""Runs raft: performs its effects in order on a log, a network and a clock.

Effects are performed strictly in order. One of them may have to wait, the write of `quorum-state`:
what comes after it waits too, while raft goes on in memory, so that no vote and no claim leaves
this node before it is durable. Of several such writes in a row only the last one is done. Flushes
run beside the loop; the node's own records count only once a flush has covered them.

The node's controller, if it has one, is run by `ControllerRunner`; everybody else listens to
committed batches (`listeners`) and to changes of the leader (`on_leader_change`).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

from kwire.clock import Clock, Random
from kwire.kept_errors import kept
from kwire.kraft.commit_feed import CommitFeed, LeaderListener, Listener
from kwire.kraft.controller_runner import ControllerRunner, MetadataController
from kwire.kraft.metadata_log import MetadataBatch, MetadataLog
from kwire.kraft.quorum_counts import QuorumCounts
from kwire.kraft.quorum_replies import reply_records, reply_snapshot
from kwire.kraft.raft import RaftConfig, RaftState, machine
from kwire.kraft.raft import effects as fx
from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.roles.base import FOREVER_MS
from kwire.kraft.raft.roles.resigned import Resigned
from kwire.kraft.raft.types import Node, OffsetAndEpoch
from kwire.kraft.snapshots.content import parse_snapshot, read_header
from kwire.kraft.snapshots.policy import SnapshotPolicy
from kwire.kraft.snapshots.taker import ImageSource, Snapshotter
from kwire.log.directories.shortages import error_text
from kwire.log.files import NotBegunError, ShortageError, passes
from kwire.log.scheduling import Scheduler, Timer
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.structs import Request, Response

logger = logging.getLogger(__name__)

WAITING_EFFECTS_MAX = 100_000
AGAIN_MS, AGAIN_MS_MAX = 50, 1000

E = TypeVar("E", bound=fx.Effect)


# What a shortage may stand in the way of, and that can be done again as if nothing had been.
_RETRIED = (
    fx.AppendControl,
    fx.AppendBatch,
    fx.AppendFetched,
    fx.TruncateTo,
    fx.StartAt,
    fx.DeleteBefore,
    fx.WriteSnapshot,
    fx.LoadSnapshot,
)


class Sender(Protocol):
    """The network, as raft uses it (`kwire/network/peer.py`).

    Ids below -1 are bootstrap servers; `RaftDriver.address_of` resolves every id that is sent to.
    """

    def send(
        self,
        node: int,
        api_key: int,
        request: Request[Response],
        *,
        timeout_ms: int | None = None,
    ) -> Pending[Response]: ...

    def disconnect(self, node_id: int) -> None: ...


class LoopClock(Protocol):
    """What the driver needs of an event loop."""

    def time(self) -> float: ...


class RaftDriver:
    """One node's replica of the metadata log, running.

    `scheduler` gives timers and jobs beside the loop; `loop.time()` is the time of every deadline.
    `on_fatal(error)` hears of what the node cannot go on after: a failed write, a broken
    invariant, a record it cannot replay; the driver does nothing any more then.
    """

    def __init__(
        self,
        config: RaftConfig,
        metadata_log: MetadataLog,
        *,
        sender: Sender,
        loop: LoopClock,
        scheduler: Scheduler,
        clock: Clock,
        random: Random,
        controller: MetadataController | None = None,
        policy: SnapshotPolicy | None = None,
        on_fatal: Callable[[Exception], None] | None = None,
    ) -> None:
        self.config = config
        self.metadata_log = metadata_log
        self.clock = clock
        self._sender = sender
        self._loop = loop
        self.scheduler = scheduler
        self._on_fatal = on_fatal
        self._addresses: dict[int, tuple[str, int]] = {}
        self._of_another_cluster: dict[str, None] = {}
        self._queue: deque[fx.Effect] = deque()
        self._is_draining = False
        self._is_blocked = False
        self._timer: Timer | None = None
        self._timer_at_ms = FOREVER_MS
        self._leader_listeners: list[LeaderListener] = []
        self._stopped: Pending[None] | None = None
        self._closed = False
        self.error: Exception | None = None
        self.waits_for = ""  # what is short, while effects wait for that
        self._again_ms = AGAIN_MS
        self.leader_id: int | None = None
        state = metadata_log.log_state()
        history = metadata_log.voter_history(state, config.static_voters)
        election = metadata_log.read_election()
        self._first_snapshot = state.latest_snapshot
        self.raft = RaftState(config, random, state, history, election)
        self.counts = QuorumCounts()
        self.feed = CommitFeed(metadata_log, state.start_offset)
        self.runner = None if controller is None else ControllerRunner(self, controller)
        if self.runner is not None:
            self.feed.add(self.runner)
        self.snapshotter = Snapshotter(self, policy or SnapshotPolicy(), scheduler)
        self._performers: dict[type, Callable[[Any], None]] = {}
        self._on(fx.PersistElection, self._persist)
        self._on(fx.AppendControl, self._append_control)
        self._on(fx.AppendBatch, self._append_batch)
        self._on(fx.AppendFetched, self._append_fetched)
        self._on(fx.TruncateTo, self._truncate_to)
        self._on(fx.StartAt, self._start_at)
        self._on(fx.DeleteBefore, self._delete_before)
        self._on(fx.Flush, self._flush)
        self._on(fx.Send, self._send)
        self._on(fx.Reply, self._reply)
        self._on(fx.ReplyRecords, partial(reply_records, metadata_log.log))
        self._on(fx.ReplySnapshot, partial(reply_snapshot, metadata_log.snapshots))
        self._on(fx.WriteSnapshot, self._write_snapshot)
        self._on(fx.FreezeSnapshot, self._freeze_snapshot)
        self._on(fx.Commit, self._commit)
        self._on(fx.LoadSnapshot, self._load_snapshot)
        self._on(fx.LeaderChanged, self._leader_changed)
        self._on(fx.Upgraded, self._reply_upgraded)

    def _on(self, effect: type[E], perform: Callable[[E], None]) -> None:
        """From now on effects of this class are performed like this."""
        self._performers[effect] = perform

    # ---- the outside

    @property
    def now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    @property
    def epoch(self) -> int:
        return self.raft.epoch

    @property
    def complete(self) -> tuple[int, int] | None:
        """(offset, time of the loop in ms): all that was committed then is in front of the offset,
        if who led the quorum by its own account did lead it. None before a leader has said."""
        leader = self.raft.leader()
        if leader is None:
            return self.raft.complete
        offset = leader.high_watermark
        return None if offset is None else (offset, self.now_ms)

    @property
    def is_active(self) -> bool:
        """Whether this node's controller serves."""
        return self.runner is not None and self.runner.is_active

    @property
    def is_running(self) -> bool:
        """Neither stopping nor failed."""
        return self.error is None and self._stopped is None and not self._closed

    @property
    def published(self) -> ImageSource | None:
        """Who holds the image of what is committed."""
        return self.snapshotter.source

    def add_listener(self, listener: Listener) -> None:
        """Tell this listener of everything committed; before `start` only."""
        self.feed.add(listener)

    def on_leader_change(self, listener: LeaderListener) -> None:
        self._leader_listeners.append(listener)

    def address_of(self, node_id: int) -> tuple[str, int] | None:
        """Where a node is reached that raft sends to, or that is a voter."""
        known = self._addresses.get(node_id)
        if known is not None:
            return known
        endpoints = self.raft.voters.voters.endpoints(node_id)
        if not endpoints and node_id == self.raft.leader_id:
            endpoints = self.raft.role.leader_endpoints
        node = self.raft.node_of(node_id, endpoints)
        return None if node is None else (node.host, node.port)

    def start(self) -> None:
        """Load the newest snapshot and begin; a quorum of one leads when this returns, or as soon
        as its first writes are durable."""
        try:
            if self._first_snapshot is not None:
                self.feed.load_snapshot(self._first_snapshot)
                self.snapshotter.loaded(self._first_snapshot, self.now_ms)
            effects = machine.start(self.raft, self.now_ms)
        except Exception as error:
            self.fail(error)
            return
        self._queue.extend(effects)
        self._drain()
        self.arm()

    def step(self, message: msg.Message) -> None:
        """One message to raft. Only `Append` raises (KafkaError, not the leader)."""
        if self._closed:
            return
        try:
            effects = machine.step(self.raft, message, self.now_ms)
        except KafkaError:
            raise
        except Exception as error:
            self.fail(error)
            return
        self._queue.extend(effects)
        self._drain()
        self.arm()

    def request(
        self, request: Request[Response], version: int, *, listener: str
    ) -> Pending[Response]:
        """A request for raft that came in by this listener (Vote, Fetch, DescribeQuorum, ...)."""
        reply: Pending[Response] = Pending()
        if self._closed:
            reply.fail(KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "shutting down"))
            return reply
        reply.set_on_cancel(lambda: self.step(msg.Cancel(reply)))
        self.step(msg.Request(request, version, reply, listener, self.clock.wall_ms()))
        return reply

    def upgrade_kraft_version(self, level: int, validate_only: bool) -> Pending[None]:
        """Raise kraft.version (UpdateFeatures); done when committed, fails with KafkaError."""
        reply: Pending[None] = Pending()
        self.step(msg.UpgradeVersion(self.raft.epoch, level, validate_only, reply))
        return reply

    def stop(self) -> Pending[None]:
        """Resign if leading, tell the voters, close the log. Done when all of it has happened."""
        if self._stopped is not None:
            return self._stopped
        self._stopped = Pending()
        if self._closed:
            self._stopped.complete(None)
            return self._stopped
        if self.runner is not None:
            self.runner.resign()
        self.step(msg.Shutdown())
        if not self._maybe_close():
            self.scheduler.call_later(self.config.request_timeout_ms, self._close)
        return self._stopped

    def _maybe_close(self) -> bool:
        """Close once a resigned leader has been heard by all voters."""
        if self._stopped is None or self._closed:
            return False
        role = self.raft.role
        if (isinstance(role, Resigned) and role.unacknowledged) or self._is_blocked:
            return False
        self._close()
        return True

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.snapshotter.stop()
        if self._timer is not None:
            self._timer.cancel()
        self._queue.clear()
        done = self._stopped

        def close(_: Pending[None] | None = None) -> None:
            self.metadata_log.close()
            if done is not None:
                done.complete(None)

        if self.error is not None:
            close()
        else:
            self.metadata_log.flush().add_done_callback(close)

    def fail(self, error: Exception) -> None:
        """Stop for good: nothing that follows could be trusted."""
        if self.error is not None:
            return
        self.error = kept(error)
        logger.error("the metadata quorum stops on this node: %s", error)
        if self.runner is not None:
            self.runner.resign()
        self._close()
        if self._on_fatal is not None:
            self._on_fatal(error)

    # ---- effects

    def _drain(self) -> None:
        if self._is_draining or self._is_blocked:
            return
        self._is_draining = True
        try:
            while self._queue and not self._is_blocked and not self._closed:
                effect = self._queue.popleft()
                try:
                    self._performers[type(effect)](effect)
                except (KafkaError, OSError) as error:
                    if not self._may_pass(effect, error):
                        raise
                    self._queue.appendleft(effect)
                    self._wait(error)
        except Exception as error:
            self.fail(error)
        finally:
            self._is_draining = False
        if self._stopped is not None:
            self._maybe_close()

    def _may_pass(self, effect: fx.Effect, error: Exception) -> bool:
        """Whether this is a shortage, and everything is as before the effect."""
        if len(self._queue) > WAITING_EFFECTS_MAX:
            return False
        return isinstance(effect, _RETRIED) and (self.metadata_log.log.is_short or passes(error))

    def _wait(self, error: Exception) -> None:
        """Nothing leaves this node until there is again what was short: as if it were away."""
        if not self.waits_for:
            logger.error("the metadata quorum waits on this node: %s", error)
        self.waits_for = error_text(self.metadata_log.log.shortage.error or error)
        self._is_blocked = True
        pause_ms, self._again_ms = self._again_ms, min(2 * self._again_ms, AGAIN_MS_MAX)
        self.scheduler.call_later(pause_ms, self._try_again)

    def _try_again(self) -> None:
        if not self._closed:
            self.metadata_log.was_short = True
            self.metadata_log.log.resume_appends().add_done_callback(self._resumed)

    def _resumed(self, resumed: Pending[None]) -> None:
        error, log = resumed.error(), self.metadata_log.log
        if self._closed:
            return
        if log.error is not None and not log.is_short:
            self.fail(log.error)
        elif error is not None:
            self._wait(error)
        else:
            self._is_blocked = False
            self._drain()
            if self._is_blocked:
                return
            self._passed()
            self.arm()

    def _passed(self) -> None:
        if self.waits_for:
            logger.warning("the metadata quorum goes on on this node")
        self.waits_for, self._again_ms = "", AGAIN_MS
        self.metadata_log.was_short = False

    def _persist(self, effect: fx.PersistElection) -> None:
        if self._queue and isinstance(self._queue[0], fx.PersistElection):
            return
        written = self.metadata_log.write_election(effect.election, effect.kraft_version)
        self._is_blocked = True
        written.add_done_callback(lambda done: self._persisted(effect, done))

    def _persisted(self, effect: fx.PersistElection, written: Pending[None]) -> None:
        self._is_blocked = False
        error = written.error()
        if isinstance(error, ShortageError | NotBegunError) and not self._closed:
            self._queue.appendleft(effect)
            self._wait(error)
            return
        if error is not None:
            self.fail(error)
            return
        self._passed()
        self._drain()
        self.arm()

    def _append_control(self, effect: fx.AppendControl) -> None:
        wall_ms = self.clock.wall_ms()
        self.counts.appended(effect.base_offset, len(effect.records), self._loop.time())
        size_bytes = self.metadata_log.append_control(
            effect.base_offset, effect.epoch, effect.records, wall_ms
        )
        last_offset = effect.base_offset + len(effect.records) - 1
        self.feed.appended(
            MetadataBatch(effect.base_offset, last_offset, effect.epoch, wall_ms, size_bytes, [])
        )

    def _append_batch(self, effect: fx.AppendBatch) -> None:
        self.metadata_log.append_batch(
            effect.base_offset, effect.epoch, effect.batch, self.clock.wall_ms()
        )
        record_count = self.metadata_log.log.log_end_offset - effect.base_offset
        self.counts.appended(effect.base_offset, record_count, self._loop.time())
        if self.runner is not None:
            self.feed.appended(self.runner.appended(effect))

    def _append_fetched(self, effect: fx.AppendFetched) -> None:
        self.metadata_log.append_fetched(effect.base_offset, effect.batches)
        self.counts.fetched_records += self.metadata_log.log.log_end_offset - effect.base_offset
        self.feed.appended_raw(effect.batches)

    def _truncate_to(self, effect: fx.TruncateTo) -> None:
        self.feed.truncated(effect.end_offset)
        self.metadata_log.truncate_to(effect.end_offset)

    def _start_at(self, effect: fx.StartAt) -> None:
        self.metadata_log.start_at(effect.snapshot)

    def _delete_before(self, effect: fx.DeleteBefore) -> None:
        self.metadata_log.delete_before(effect.snapshot, effect.gone)

    def _flush(self, effect: fx.Flush) -> None:
        def flushed(done: Pending[None]) -> None:
            error = done.error()
            if error is not None:
                self.fail(error)
            else:
                self.step(msg.Flushed(effect.token))

        self.metadata_log.flush().add_done_callback(flushed)

    def _send(self, effect: fx.Send) -> None:
        node = effect.node
        address = (node.host, node.port)
        if self._addresses.get(node.id, address) != address:
            self._sender.disconnect(node.id)
        self._addresses[node.id] = address

        def answered(done: Pending[msg.RaftResponse]) -> None:
            error = done.error()
            if error is None:
                response = done.result()
                if response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID:
                    self._report_another_cluster(node)
                self.step(msg.Response(effect.correlation, response))
            else:
                code = getattr(error, "code", ErrorCode.NETWORK_EXCEPTION)
                self.step(msg.Failed(effect.correlation, int(code)))

        request = effect.request
        self._sender.send(
            node.id, request.API_KEY, request, timeout_ms=self.config.request_timeout_ms
        ).add_done_callback(answered)

    def _report_another_cluster(self, node: Node) -> None:
        """Nothing else would: this node waits for a leader, and the others see none of it."""
        address = f"{node.host}:{node.port}"
        if address not in self._of_another_cluster:
            self._of_another_cluster[address] = None
            logger.error(
                "the controller at %s belongs to another cluster than this node (%s): "
                "one of the two was formatted with a wrong cluster id",
                address,
                self.config.cluster_id,
            )

    # ---- replies

    def _reply(self, effect: fx.Reply) -> None:
        effect.reply_to.complete(effect.response)

    def _reply_upgraded(self, effect: fx.Upgraded) -> None:
        if effect.code:
            effect.reply_to.fail(KafkaError(ErrorCode(effect.code), effect.message))
        elif self.runner is None:
            effect.reply_to.complete(None)
        else:
            self.runner.when_committed(effect.end_offset, effect.reply_to, None)

    # ---- snapshots, commits, leaders

    def _write_snapshot(self, effect: fx.WriteSnapshot) -> None:
        self.metadata_log.snapshots.write_piece(effect.snapshot, effect.position, effect.chunk)

    def _freeze_snapshot(self, effect: fx.FreezeSnapshot) -> None:
        snapshots = self.metadata_log.snapshots
        snapshots.freeze(effect.snapshot)
        content = parse_snapshot(snapshots.read(effect.snapshot))
        stored = msg.SnapshotStored(effect.snapshot, content.voters, content.kraft_version)
        self.step(stored)

    def _commit(self, effect: fx.Commit) -> None:
        self.metadata_log.log.update_high_watermark(effect.offset)
        self.counts.committed(effect.offset, self._loop.time())
        before = self.feed.delivered_bytes
        self.feed.commit(effect.offset)
        if self.runner is not None:
            self.runner.committed(effect.offset)
        self.snapshotter.committed(self.feed.delivered_bytes - before)

    def _load_snapshot(self, effect: fx.LoadSnapshot) -> None:
        self.metadata_log.log.update_high_watermark(effect.snapshot.offset)
        self.counts.snapshots_loaded += 1
        self.feed.load_snapshot(effect.snapshot)
        self.snapshotter.loaded(effect.snapshot, self.now_ms)

    def _leader_changed(self, effect: fx.LeaderChanged) -> None:
        self.leader_id = effect.leader_id
        self.counts.leader_changed(effect.leader_id, self._loop.time())
        for listener in self._leader_listeners:
            listener(effect.leader_id, effect.epoch)
        if self.runner is None:
            return
        mine = effect.leader_id == self.config.node_id and effect.epoch == self.raft.epoch
        if mine and self.raft.is_leader and self._stopped is None:
            self.runner.claim(effect.epoch)
        else:
            self.runner.resign()

    def snapshot_facts(self, snapshot: OffsetAndEpoch) -> tuple[int, int]:
        """Size in bytes and timestamp of the last record contained, of a stored snapshot."""
        snapshots = self.metadata_log.snapshots
        size_bytes = snapshots.size(snapshot)
        timestamp_ms, _, _ = read_header(snapshots.read_piece(snapshot, 0, 1 << 16))
        return size_bytes, timestamp_ms

    # ---- time

    def arm(self) -> None:
        """Set the timer to the next deadline of raft or the controller; one that comes too early
        stays, and finds nothing to do."""
        if self._closed:
            return
        at_ms = self.raft.deadline_ms
        if self.runner is not None:
            at_ms = min(at_ms, self.runner.deadline_ms())
        if self._timer is not None:
            if self._timer_at_ms <= at_ms:
                return
            self._timer.cancel()
            self._timer = None
        self._timer_at_ms = at_ms
        if at_ms < FOREVER_MS:
            self._timer = self.scheduler.call_later(max(0, at_ms - self.now_ms), self._fire)

    def _fire(self) -> None:
        self._timer = None
        if self._closed:
            return
        now_ms = self.now_ms
        if self.raft.deadline_ms <= now_ms:
            self.step(msg.Tick())
        if self.runner is not None and not self._closed:
            self.runner.expire(now_ms)
        self.arm()
