"""What is checked while a history runs, at the moment it happens.

`Checkers.watch()` wraps a few methods of the production classes for as long as a history runs: a
high watermark that moves is compared with what is known to be committed (by anyone), a leadership
with every other of its epoch, committed metadata with everybody else's. Nothing is polled, so the
checks cost a part of what the run does.

    promise                                         checked when
    one leader per epoch (quorum, partitions)       one is elected or known, a leadership begins
    epochs and high watermarks do not go back       a role changes, a high watermark moves
    committed metadata is never lost nor forked     a node applies committed metadata
    a majority of the voters has it                 the quorum's leader commits
    a new leader has everything that is committed   a leadership begins
    the in-sync replicas have what is committed     a leader's high watermark or an ISR moves
    replicas are equal up to the high watermark     a high watermark moves, at the end
    nothing above the high watermark is served      a consumer gets records (`ClientChecks`)
    nothing committed is cut off                    a replica truncates its log, or its metadata
    a high watermark is within the log              a replica truncates its log
    a snapshot is the log up to it                  one is written, or loaded
    acknowledged (acks=all) means committed         a producer gets its answer
    who is taken for dead without a time-out is     raft or the controller is told of it
    no duplicate, in order                          records are committed (`model.py`)
    read_committed is exact                         a consumer gets records, at the end
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from zlib import crc32

from kwire.coordinator.runtime import CoordinatorRuntime, ShardState
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.kraft.images.topics import NO_LEADER_CHANGE
from kwire.kraft.metadata_log import MetadataBatch
from kwire.kraft.snapshots.content import parse_snapshot
from kwire.kraft.snapshots.files import SnapshotFiles
from kwire.log.types import FetchSlices, Isolation
from kwire.node.node import Node
from kwire.protocol.records import iterate_headers
from kwire.replica.partition import Partition
from tests.sim.model import CommittedLog, Keyed, Violation, batch_of, keyed_records
from tests.sim.offsets import Coordinators

READ_BYTES = 1 << 20
MIN_ISR = 2
INTERNAL = ("__",)
GROUPS = "group-coordinator"
UNCLEAN = "unclean"
"""Topics whose names begin so have unclean elections: nobody promises that anything stays."""

Key = tuple[bytes, int]


class Checkers:
    """All checks of one history; a broken promise raises Violation out of the event it is in."""

    def __init__(self) -> None:
        self.logs: dict[Key, CommittedLog] = {}
        self.by_name: dict[tuple[str, int], CommittedLog] = {}
        self.first: Violation | None = None
        self.checks = 0
        self.compacts = False  # the internal topics are cleaned during the history
        self.topics: dict[str, None] = {}  # created by committed metadata
        self._quorum_leaders: dict[int, int] = {}
        self._quorum_epochs: dict[tuple[int, int], int] = {}
        self._partition_leaders: dict[tuple[bytes, int, int], tuple[int, int]] = {}
        self.newest_leader_epoch: dict[tuple[str, int], int] = {}
        self._committers: dict[tuple[bytes, int, int], int] = {}
        self._marks: dict[tuple[int, int, bytes, int], tuple[int, int]] = {}
        self._metadata: dict[int, tuple[int, int]] = {}
        self._records: dict[int, tuple[int, Any]] = {}  # committed, by offset: epoch, record
        self._batch_ends: set[int] = set()  # offsets behind batches that are committed
        self._isrs: dict[Key, tuple[int, tuple[int, ...]]] = {}  # committed: leader epoch, ISR
        self.deciders: dict[tuple[int, int, int], list[int]] = {}
        """Voters by whom a leader moved its high watermark: (node id, epoch, offset) -> ids."""
        self._incarnations: dict[int, bytes] = {}  # the newest registration that is committed
        self._node_ids: dict[int, int] = {}  # by the loop, which a host keeps
        self.coordinators = Coordinators()  # of groups
        self.now: Callable[[], float] = lambda: 0.0
        self.life_of: Callable[[int], int] = lambda node_id: 0
        self.honest_node: Callable[[int], Node | None] = lambda node_id: None
        self.running_node: Callable[[int], Node | None] = lambda node_id: None
        self.serving_node: Callable[[int], Node | None] = lambda node_id: None

    def fail(self, text: str) -> None:
        """Remember the first violation and raise it."""
        raise self.violated(Violation(text))

    def violated(self, violation: Violation) -> Violation:
        """Remember the first one: production code may swallow what is raised in a callback."""
        self.first = self.first or violation
        return violation

    # -- hooks

    def attach(self, node: Node) -> None:
        """A new life of a node begins."""
        node.replicas.add_listener(
            lambda partition, epoch: self._guarded(self._leadership, node, partition, epoch)
        )
        self._node_ids[id(node.loop)] = node.config["node.id"]

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Hook the production classes until the history ends."""
        from kwire.kraft.controller.controller import Controller
        from kwire.kraft.raft.handlers import epochs
        from kwire.kraft.raft.roles.leader import Leader
        from kwire.kraft.raft.state import RaftState
        from kwire.kraft.raft_driver import RaftDriver

        checkers = self
        advance = Partition.advance_high_watermark
        leader_changed = RaftDriver._leader_changed
        commit = RaftDriver._commit
        decide = Leader.update_high_watermark
        truncate = Partition.truncate_to
        truncate_metadata = RaftDriver._truncate_to
        become_leader = RaftState.become_leader
        write_snapshot = SnapshotFiles.write
        broker_refused = Controller.broker_refused
        leader_refused = epochs.handle_refused
        load, finish_loading = CoordinatorRuntime.load, CoordinatorRuntime._finish_loading

        def coordinates(runtime: Any, partition: int, epoch: int) -> None:
            load(runtime, partition, epoch)
            checkers._coordinates(runtime, partition)

        def coordinates_anew(runtime: Any, current: Any, end_offset: int) -> None:
            finish_loading(runtime, current, end_offset)
            checkers._coordinates(runtime, current.partition)

        def broker_gone(controller: Any, broker_id: int, epoch: int, *times: int) -> Any:
            records = broker_refused(controller, broker_id, epoch, *times)
            if records:
                checkers._guarded(checkers.fenced_as_gone, broker_id, epoch)
            return records

        def leader_gone(raft: Any, message: Any, now_ms: int) -> None:
            who = f"n{raft.config.node_id}"
            checkers._guarded(checkers.left_as_gone, who, message.leader_id, message.epoch)
            leader_refused(raft, message, now_ms)

        def truncated(partition: Partition, offset: int) -> None:
            checkers._guarded(checkers._truncation, partition, offset)
            truncate(partition, offset)
            checkers._guarded(checkers._truncated, partition)

        def metadata_truncated(driver: Any, effect: Any) -> None:
            end_offset, log = effect.end_offset, driver.metadata_log.log
            who = f"n{driver.config.node_id}"
            checkers._guarded(checkers.metadata_truncated, who, log, end_offset)
            truncate_metadata(driver, effect)

        def snapshot_written(files: Any, snapshot: Any, batches: list[bytes]) -> None:
            content = parse_snapshot(b"".join(batches))
            checkers._guarded(checkers.snapshot, "written", content.records, snapshot.offset)
            write_snapshot(files, snapshot, batches)

        def advanced(partition: Partition, offset: int, size_bytes: int = 0) -> None:
            # Before: what follows from it answers producers and consumers.
            checkers._guarded(checkers._high_watermark, partition, offset)
            advance(partition, offset, size_bytes)

        def quorum_leader(driver: Any, effect: Any) -> None:
            checkers._guarded(checkers._quorum_leader, driver, effect.leader_id, effect.epoch)
            leader_changed(driver, effect)

        def elected(raft: Any, role: Any, now_ms: int) -> None:
            checkers._guarded(checkers.quorum_leader_elected, raft.config.node_id, role.epoch)
            become_leader(raft, role, now_ms)

        def decided(leader: Any) -> bool:
            moved = decide(leader)
            if moved:
                checkers.deciders[leader.leader_id, leader.epoch, leader.high_watermark] = list(
                    leader.voters
                )
            return moved

        def committed(driver: Any, effect: Any) -> None:
            listeners = driver.feed._listeners
            if not listeners or type(listeners[0]) is not _MetadataListener:
                listeners.insert(0, _MetadataListener(checkers, driver))
            if driver.raft.is_leader:
                checkers._guarded(checkers._majority_has, driver.raft, effect.offset)
            commit(driver, effect)

        Partition.advance_high_watermark = advanced  # type: ignore[method-assign]
        RaftDriver._leader_changed = quorum_leader  # type: ignore[method-assign]
        RaftState.become_leader = elected  # type: ignore[method-assign]
        RaftDriver._commit = committed  # type: ignore[method-assign]
        Leader.update_high_watermark = decided  # type: ignore[method-assign]
        Partition.truncate_to = truncated  # type: ignore[method-assign]
        RaftDriver._truncate_to = metadata_truncated  # type: ignore[method-assign]
        SnapshotFiles.write = snapshot_written  # type: ignore[method-assign]
        Controller.broker_refused = broker_gone  # type: ignore[method-assign]
        epochs.handle_refused = leader_gone
        CoordinatorRuntime.load = coordinates  # type: ignore[method-assign]
        CoordinatorRuntime._finish_loading = coordinates_anew  # type: ignore[method-assign]
        try:
            yield
        finally:
            Partition.advance_high_watermark = advance  # type: ignore[method-assign]
            RaftDriver._leader_changed = leader_changed  # type: ignore[method-assign]
            RaftState.become_leader = become_leader  # type: ignore[method-assign]
            RaftDriver._commit = commit  # type: ignore[method-assign]
            Leader.update_high_watermark = decide  # type: ignore[method-assign]
            Partition.truncate_to = truncate  # type: ignore[method-assign]
            RaftDriver._truncate_to = truncate_metadata  # type: ignore[method-assign]
            SnapshotFiles.write = write_snapshot  # type: ignore[method-assign]
            Controller.broker_refused = broker_refused  # type: ignore[method-assign]
            epochs.handle_refused = leader_refused
            CoordinatorRuntime.load = load  # type: ignore[method-assign]
            CoordinatorRuntime._finish_loading = finish_loading  # type: ignore[method-assign]

    def _coordinates(self, runtime: Any, partition: int) -> None:
        current = runtime._partitions.get(partition)
        if runtime._module != GROUPS or current is None or current.state is not ShardState.ACTIVE:
            return
        node_id = self._node_ids[id(runtime._loop)]
        self.coordinators.loaded(partition, current.leader_epoch, node_id, self.now())

    def _guarded(self, check: Callable[..., None], *arguments: Any) -> None:
        self.checks += 1
        try:
            check(*arguments)
        except Violation as violation:
            raise self.violated(violation) from None

    # -- partitions

    def log_of(self, partition: Partition) -> CommittedLog:
        key = partition.topic_id, partition.index
        log = self.logs.get(key)
        if log is None:
            is_user_topic = not partition.topic.startswith(INTERNAL)
            log = CommittedLog(
                f"{partition.topic}-{partition.index}",
                is_user_topic=is_user_topic,
                is_compacted=self.compacts and not is_user_topic,
            )
            self.logs[key] = self.by_name[partition.topic, partition.index] = log
        return log

    def _high_watermark(self, partition: Partition, offset: int) -> None:
        state = partition.state
        if partition.topic.startswith(UNCLEAN):
            return
        who = f"n{state.broker_id} ({'leader' if partition.is_leader else 'follower'}"
        who += f" at epoch {state.leader_epoch})"
        log = self.log_of(partition)
        life = self.life_of(state.broker_id)
        key = state.broker_id, life, partition.topic_id, partition.index
        epoch, mark = self._marks.get(key, (-1, -1))
        if state.leader_epoch < epoch:
            self.fail(f"{who}: the leader epoch of {log.name} was {epoch}")
        if state.leader_epoch == epoch and offset < mark:
            self.fail(f"{who}: high watermark of {log.name} goes from {mark} to {offset}")
        self._marks[key] = state.leader_epoch, offset
        if offset > partition.log.log_end_offset:
            self.fail(
                f"{who}: high watermark {offset} of {log.name} is behind the log's end "
                f"{partition.log.log_end_offset}"
            )
        if partition.log.log_start_offset > max(offset, log.end):
            self.fail(
                f"{who}: {log.name} begins at {partition.log.log_start_offset}, committed is up to "
                f"{log.end}"
            )
        start = max(mark, partition.log.log_start_offset, 0) if mark >= 0 else None
        if start is None:
            start = min(partition.log.high_watermark, log.end)
        if start < min(offset, log.end):
            for data in batches_of(partition.log, start, min(offset, log.end)):
                log.compare(data, max(start, _first(data)), min(offset, log.end, _next(data)), who)
        if partition.is_leader:
            self._held_by_the_isr(partition, offset, log, who)
        if offset > log.end:
            if not partition.is_leader:
                self.fail(
                    f"{who}: high watermark {offset} of {log.name}, no leader is past {log.end}"
                )
            for data in batches_of(partition.log, log.end, offset):
                log.extend(data, min(offset, _next(data)), state.leader_epoch, who)

    def _held_by_the_isr(
        self, partition: Partition, offset: int, log: CommittedLog, who: str
    ) -> None:
        """Every in-sync replica has what is committed: those that run, that have not lost what
        they had, and that have not heard of a later leader. In sync is also whom the controller
        has added, whether the leader knows or not."""
        state = partition.state
        key = partition.topic_id, partition.index, state.leader_epoch
        first = self._committers.setdefault(key, state.broker_id)
        if first != state.broker_id:
            self.fail(f"{who}: n{first} has led {log.name} at the same epoch")
        needed = min(MIN_ISR, len(state.replicas))
        if len(state.isr) < needed:
            self.fail(f"{who}: {log.name} commits {offset} with {state.isr}, {needed} are needed")
        epoch, added = self._isrs.get((partition.topic_id, partition.index), (-1, ()))
        in_sync = state.isr if epoch != state.leader_epoch else (*state.isr, *added)
        for replica in dict.fromkeys(in_sync):
            node = self.honest_node(replica)
            known = (
                None
                if node is None
                else node.replicas.partition_by_id(partition.topic_id, partition.index)
            )
            if known is None or known.log is None:
                continue
            if known.state.leader_epoch > partition.leader_epoch:
                continue
            if known.log.log_end_offset < offset:
                self.fail(
                    f"{who}: high watermark {offset} of {log.name}, the log of n{replica}, which "
                    f"is in sync, ends at {known.log.log_end_offset}"
                )

    def _leadership(self, node: Node, partition: Partition, epoch: int | None) -> None:
        if epoch is None:
            return
        node_id = node.broker_id
        life = self.life_of(node_id)
        key = partition.topic_id, partition.index, epoch
        first = self._partition_leaders.setdefault(key, (node_id, life))
        place = partition.topic, partition.index
        self.newest_leader_epoch[place] = max(epoch, self.newest_leader_epoch.get(place, -1))
        log = self.log_of(partition)
        if first != (node_id, life):
            self.fail(f"n{node_id} leads {log.name} at epoch {epoch}, which n{first[0]} did before")
        if partition.log is None:
            return
        who = f"n{node_id} (new leader at epoch {epoch})"
        needed = log.end_before(epoch)
        if partition.log.log_end_offset < needed:
            self.fail(
                f"{who}: its log of {log.name} ends at {partition.log.log_end_offset}, committed "
                f"is up to {needed}"
            )
        self.compare_whole(partition, log, needed, who)

    def _truncation(self, partition: Partition, offset: int) -> None:
        """A replica cuts its log off at `offset`: what is committed there stays."""
        log = self.logs.get((partition.topic_id, partition.index))
        node_id = partition.state.broker_id
        if log is None or partition.log is None or self.honest_node(node_id) is None:
            return
        if offset >= min(log.end, partition.log.log_end_offset):
            return
        for data in batches_of(partition.log, offset, offset + 1):
            known = log.batch_at(offset)
            if known is not None and known == batch_of(next(iterate_headers(data))[1]):
                self.fail(
                    f"n{node_id} cuts {log.name} off at {offset}, where it has what is committed "
                    f"up to {log.end}: {known}"
                )

    def _truncated(self, partition: Partition) -> None:
        mark, end = partition.state.high_watermark, partition.log.log_end_offset
        if mark > end:
            self.fail(
                f"n{partition.state.broker_id} has cut {partition.topic}-{partition.index} off at "
                f"{end}, and goes on with the high watermark {mark}"
            )

    def compare_whole(self, partition: Partition, log: CommittedLog, end: int, who: str) -> None:
        """A replica's log from its beginning to `end` with what is committed."""
        start = partition.log.log_start_offset
        for data in batches_of(partition.log, start, end):
            log.compare(data, max(start, _first(data)), min(end, _next(data)), who)

    # -- the quorum

    def fenced_as_gone(self, broker_id: int, epoch: int) -> None:
        """The controller fences a broker before its session is over."""
        node = self.serving_node(broker_id)
        if node is not None and node.lifecycle.epoch == epoch:
            self.fail(f"broker {broker_id} is fenced as gone, and lives (epoch {epoch})")

    def left_as_gone(self, who: str, leader_id: int, epoch: int) -> None:
        """A follower gives up its leader before the fetch time-out."""
        node = self.serving_node(leader_id)
        raft = None if node is None or node.metadata.driver is None else node.metadata.driver.raft
        if raft is not None and raft.is_leader and raft.epoch == epoch:
            self.fail(f"{who}: the leader of epoch {epoch}, {leader_id}, is given up, and lives")

    def quorum_leader_elected(self, node_id: int, epoch: int) -> None:
        """A candidate has its majority; it need not get far enough for others to know it."""
        first = self._quorum_leaders.setdefault(epoch, node_id)
        if first != node_id:
            self.fail(f"n{node_id}: leader of epoch {epoch} is {node_id}, it was {first}")

    def _quorum_leader(self, driver: Any, leader_id: int | None, epoch: int) -> None:
        node_id = driver.config.node_id
        if leader_id is not None:
            first = self._quorum_leaders.setdefault(epoch, leader_id)
            if first != leader_id:
                self.fail(f"n{node_id}: leader of epoch {epoch} is {leader_id}, it was {first}")
        key = node_id, 0
        if epoch < self._quorum_epochs.get(key, -1):
            self.fail(f"n{node_id}: quorum epoch {epoch} after {self._quorum_epochs[key]}")
        self._quorum_epochs[key] = epoch

    def metadata_committed(self, node_id: int, batch: MetadataBatch) -> None:
        """A node applies committed metadata: a batch, or several that it reads from its log."""
        self._batch_ends.add(batch.last_offset + 1)
        placed: list[tuple[int, Any]] = list(enumerate(batch.records, batch.base_offset))
        for offset, record in placed or [(batch.base_offset, None), (batch.last_offset, None)]:
            content = crc32(repr(record).encode())
            known = self._metadata.get(offset)
            if known is None:
                self._metadata[offset] = batch.epoch, content
                if record is not None:
                    self._records[offset] = batch.epoch, record
                    self._record_committed(record)
            elif known != (batch.epoch, content):
                self.fail(
                    f"n{node_id}: committed metadata at {offset} has epoch {batch.epoch}, content "
                    f"{content:x}; another node has {known[0]}, {known[1]:x}"
                )

    def _record_committed(self, record: Any) -> None:
        kind = type(record).NAME
        if kind == "TopicRecord":
            self.topics[record.name] = None
        elif kind == "RegisterBrokerRecord":
            self._incarnations[record.broker_id] = bytes(record.incarnation_id)
        elif kind == "PartitionRecord":
            key = record.topic_id, record.partition_id
            self._isrs[key] = record.leader_epoch, tuple(record.isr)
        elif kind == "PartitionChangeRecord":
            key = record.topic_id, record.partition_id
            epoch, isr = self._isrs.get(key, (-1, ()))
            if record.isr is not None:
                self._isr_committed(record, isr)
                isr = tuple(record.isr)
            self._isrs[key] = epoch + (record.leader != NO_LEADER_CHANGE), isr

    def _majority_has(self, raft: Any, offset: int) -> None:
        """What a leader of the quorum commits a majority of its voters has: of those that run at
        most a minority has not. Its voters are those of the moment in which it was decided: the
        same step may then take one out, by a record behind what is committed."""
        decided = raft.config.node_id, raft.role.epoch, offset
        voters = self.deciders.pop(decided, None) or list(raft.role.voters)
        lacking = []
        for node_id in voters:
            node = self.running_node(node_id)
            driver = None if node is None else node.metadata.driver
            if driver is not None and driver.raft.log.end_offset < offset:
                lacking.append(node_id)
        if 2 * (len(voters) - len(lacking)) <= len(voters):
            self.fail(
                f"n{raft.config.node_id} commits metadata up to {offset} by the voters {voters}, "
                f"of which {lacking} do not have it"
            )

    def metadata_truncated(self, who: str, log: Any, end_offset: int) -> None:
        """A node cuts its log of metadata off at `end_offset`: what is committed there stays."""
        for data in batches_of(log, end_offset, log.log_end_offset):
            for _, header in iterate_headers(data):
                known = self._metadata.get(header.base_offset)
                if known is not None and known[0] == header.partition_leader_epoch:
                    self.fail(
                        f"{who} cuts its metadata off at {end_offset}, where it has what is "
                        f"committed: offset {header.base_offset} of epoch {known[0]}"
                    )

    def snapshot(self, what: str, records: list[Any], end: int) -> None:
        """A snapshot holds what the log up to `end` says, no more and no less; that of formatting
        stands before the log."""
        if end == 0:
            return
        image, content = MetadataImage(), MetadataImage()
        for offset in sorted(self._records):
            if offset < end:
                epoch, record = self._records[offset]
                image.replay(record, offset, epoch)
        if end not in self._batch_ends and end in self._metadata and end - 1 in self._metadata:
            self.fail(f"a snapshot is {what} up to {end}, within a batch")
        content.load([_message(record) for record in records], end - 1, 0)
        expected, found = (
            sorted(repr(_message(record)) for record in made.to_records())
            for made in (image, content)
        )
        if expected != found:
            missing = [record for record in expected if record not in found]
            extra = [record for record in found if record not in expected]
            self.fail(
                f"a snapshot {what} up to {end} is not what the log says: missing {missing[:3]}, "
                f"too much {extra[:3]}"
            )

    def _isr_committed(self, record: Any, before: tuple[int, ...] = ()) -> None:
        """Whoever is in an ISR that the controller has committed has everything committed. So has
        who is new in it, in its newest life, also when it has lost something: it may not be in
        the ISR for what an earlier life had (KIP-903)."""
        log = self.logs.get((record.topic_id, record.partition_id))
        for replica in record.isr if log is not None else ():
            node = self.honest_node(replica)
            if node is None and replica not in before:
                node = self.running_node(replica)
                known_as = self._incarnations.get(replica)
                node = node if node is not None and node.incarnation_id == known_as else None
            known = (
                None
                if node is None
                else node.replicas.partition_by_id(record.topic_id, record.partition_id)
            )
            if log is None or known is None or known.log is None:
                continue
            if known.log.log_end_offset < log.end:
                self.fail(
                    f"n{replica} is in the ISR {record.isr} of {log.name}, its log ends at "
                    f"{known.log.log_end_offset}, committed is up to {log.end}"
                )

    # -- the end

    def finish(self, nodes: dict[int, Node]) -> None:
        """Everything is in sync: all replicas have what is committed, and the same image."""
        for node_id, node in nodes.items():
            for partition in node.replicas:
                log = self.log_of(partition)
                self._guarded(self._at_end, node_id, partition, log)
        images = {
            node_id: sorted(
                (topic.name, index, p.leader, p.leader_epoch, p.isr)
                for topic in node.image.topics.by_name.values()
                for index, p in topic.partitions.items()
            )
            for node_id, node in nodes.items()
        }
        if len({repr(image) for image in images.values()}) > 1:
            self.fail(f"the nodes' metadata differs at the end: {images}")

    def _at_end(self, node_id: int, partition: Partition, log: CommittedLog) -> None:
        if partition.log is None:
            self.fail(f"n{node_id} has no log of {log.name} at the end")
        if partition.log.log_end_offset < log.end:
            self.fail(
                f"n{node_id}: {log.name} ends at {partition.log.log_end_offset} at the end, "
                f"committed is up to {log.end}"
            )
        who = f"n{node_id} at the end"
        self.compare_whole(partition, log, log.end, who)
        if log.is_compacted:
            found: dict[int, Keyed] = {}
            for data in batches_of(partition.log, partition.log.log_start_offset, log.end):
                for position, header in iterate_headers(data):
                    found.update(keyed_records(data, position, header))
            log.check_last_values(found, log.end, who)


class _MetadataListener:
    """Hears of committed metadata before the node does."""

    def __init__(self, checkers: Checkers, driver: Any) -> None:
        self._checkers = checkers
        self._node_id = driver.config.node_id

    def on_commit(self, batch: MetadataBatch) -> None:
        self._checkers._guarded(self._checkers.metadata_committed, self._node_id, batch)

    def on_snapshot(self, records: list[Any], offset: int, epoch: int, timestamp_ms: int) -> None:
        self._checkers._guarded(self._checkers.snapshot, "loaded", records, offset + 1)


def batches_of(log: Any, start: int, end: int) -> Iterator[memoryview]:
    """The bytes of whole batches from the one that holds `start` up to `end`."""
    offset, disk = start, log.local.files
    while offset < end:
        fault, disk.fault = disk.fault, None  # nothing is kept from the checkers
        try:
            found = log.read(offset, READ_BYTES, isolation=Isolation.LOG_END, min_one=True)
        finally:
            disk.fault = fault
        if not isinstance(found, FetchSlices) or not found.size_bytes:
            return
        data = memoryview(b"".join(found.buffers))
        yield data
        offset = _next(data)


def _message(record: Any) -> Any:
    return record[0] if isinstance(record, tuple) else record


def _first(data: memoryview) -> int:
    return int.from_bytes(data[:8], "big")


def _next(data: memoryview) -> int:
    """The offset after the last whole batch."""
    last = 0
    for _, header in iterate_headers(data):
        last = header.last_offset + 1
    return last
