"""Runs the controller on top of raft (DESIGN.md, decision 9).

While this node leads, a request becomes records, which are appended and replayed at once; its
answer - also of a request without records - waits until everything that was appended by then is
committed. When the node stops leading, the answers that wait get NOT_CONTROLLER and the controller
is loaded anew from what is committed. A request of many topics is decided in slices, one a turn of
the loop, and each slice's records are appended before the next is decided. While another node
leads, the controller replays what is committed and is ready to take over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from kwire.clock import Clock
from kwire.kraft.commit_feed import CommitFeed
from kwire.kraft.controller.context import ControllerContext, not_controller
from kwire.kraft.controller.results import Records, Result, SlicedWork
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.kraft.metadata_log import MetadataBatch, MetadataLog
from kwire.kraft.raft import RaftState
from kwire.kraft.raft import effects as fx
from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.roles.base import FOREVER_MS
from kwire.kraft.raft.types import BOOTSTRAP_SNAPSHOT
from kwire.kraft.snapshots.content import encode_batch, parse_snapshot
from kwire.kraft.snapshots.taker import ImageSource
from kwire.log.files import passes
from kwire.log.scheduling import Scheduler
from kwire.pending import Pending
from kwire.protocol.errors import KafkaError
from kwire.protocol.metadata_records import MetadataRecord
from kwire.protocol.structs import Request, Response
from kwire.slices import Slices

BATCH_RECORDS_MAX = 10_000
"""More records than this go out in several batches, as Kafka's: no request of a user has more."""

EXPIRES_PER_TURN_MAX = 10_000

T = TypeVar("T")


class MetadataController(Protocol):
    """What is run (kwire/kraft/controller/controller.py)."""

    @property
    def image(self) -> MetadataImage: ...

    def handle(
        self, request: Request[Response], context: ControllerContext, now_ms: int
    ) -> Result[Response]: ...

    def slices(
        self, request: Request[Response], context: ControllerContext, now_ms: int = 0
    ) -> SlicedWork[Response] | None: ...

    def begun(self) -> list[SlicedWork[None]]: ...

    def wrote(self, now_ms: int) -> None: ...

    def replay(self, record: MetadataRecord, offset: int, epoch: int | None = None) -> None: ...

    def load(self, records: Iterable[MetadataRecord], offset: int, epoch: int = 0) -> None: ...

    def discard(self) -> None: ...

    def activate(
        self,
        now_ms: int,
        next_offset: int,
        epoch: int,
        bootstrap_records: Records | None = None,
        is_empty: bool | None = None,
        leader_heard: tuple[int, int] | None = None,
    ) -> Records: ...

    def deactivate(self) -> None: ...

    def silences_ms(self, now_ms: int) -> list[tuple[int, int]]: ...

    def broker_refused(self, broker_id: int, epoch: int, since_ms: int, now_ms: int) -> Records: ...

    def deadline_ms(self) -> int | None: ...

    def expire(self, now_ms: int, wall_ms: int, next_offset: int | None = None) -> Records: ...


class Quorum(Protocol):
    """This node's replica of the metadata log, running (kwire/kraft/raft_driver.py)."""

    clock: Clock
    metadata_log: MetadataLog
    raft: RaftState
    feed: CommitFeed
    leader_id: int | None
    scheduler: Scheduler

    @property
    def now_ms(self) -> int: ...

    @property
    def is_running(self) -> bool: ...

    @property
    def published(self) -> ImageSource | None: ...

    def step(self, message: msg.Message) -> None: ...

    def upgrade_kraft_version(self, level: int, validate_only: bool) -> Pending[None]: ...

    def fail(self, error: Exception) -> None: ...

    def arm(self) -> None: ...


class _Held(Protocol):
    """An answer that waits until what comes before `end_offset` is committed."""

    end_offset: int

    def release(self) -> None: ...

    def refuse(self, error: Exception) -> None: ...


class _Waiting(Generic[T]):
    __slots__ = ("_reply", "_response", "end_offset")

    def __init__(self, end_offset: int, reply: Pending[T], response: T) -> None:
        self.end_offset = end_offset
        self._reply = reply
        self._response = response

    def release(self) -> None:
        self._reply.complete(self._response)

    def refuse(self, error: Exception) -> None:
        self._reply.fail(error)


class _Failing(Protocol):
    """An answer that may have to be refused."""

    def fail(self, error: Exception) -> bool: ...


class ControllerRunner:
    """The controller of this node, active or standing by. Also a listener of the commit feed."""

    def __init__(self, quorum: Quorum, controller: MetadataController) -> None:
        self._quorum = quorum
        self.controller = controller
        self.is_active = False
        self.next_offset = quorum.raft.log.start_offset
        self._has_metadata = False
        self._epoch = -1
        self._waiting: deque[_Held] = deque()
        self._batches: deque[tuple[int, Records]] = deque()
        self._slices = Slices(quorum.scheduler.call_soon)
        self._sliced: dict[_Failing, None] = {}
        """Requests that are not wholly appended."""

    # ---- requests

    def handle(self, request: Request[Response], context: ControllerContext) -> Pending[Response]:
        """A controller request; the answer comes when it holds. Errors are answers, except
        KafkaError NOT_CONTROLLER, with which the result fails when leadership is lost."""
        reply: Pending[Response] = Pending()
        was_active = self.is_active
        raft = self._quorum.raft
        context.next_offset = raft.log.end_offset
        context.wall_ms = context.wall_ms or self._quorum.clock.wall_ms()
        context.kraft_version = raft.voters.level
        context.voter_ids = tuple(raft.voters.voters.ids)
        context.active_controller = self._quorum.leader_id
        work = self.controller.slices(request, context, self._quorum.now_ms)
        if work is not None:
            return self._handle_in_slices(work)
        records, response = self.controller.handle(request, context, self._quorum.now_ms)
        wanted = context.wanted_kraft_version
        if wanted is not None:
            raised = self._quorum.upgrade_kraft_version(wanted.level, wanted.validate_only)
            error = raised.error()
            if isinstance(error, KafkaError):
                from kwire.kraft.controller.errors import error_response
                from kwire.kraft.controller.requests.features import update_failed

                records, response = [], error_response(request, update_failed(error))
        if records and not self._append(records):
            reply.fail(not_controller())
            return reply
        if not self.is_active:
            # An append may end the leadership: a leader that was asleep learns of it by then.
            if was_active:
                reply.fail(not_controller())
            else:
                reply.complete(response)
            return reply
        self.when_committed(raft.log.end_offset, reply, response)
        self._quorum.arm()
        return reply

    def _handle_in_slices(self, work: SlicedWork[Response]) -> Pending[Response]:
        """The work goes on when nobody waits for its answer any more, as any other request."""
        responses: list[Response] = []
        reply: Pending[Response] = Pending()

        def settle(appended: Pending[Response]) -> None:
            self._sliced.pop(appended, None)
            error = appended.error()
            if error is not None:
                reply.fail(error)
            else:
                self.when_all_committed(reply, appended.result())

        appended = self._slices.run(self._append_slices(work, responses), responses.pop)
        self._sliced[appended] = None
        appended.add_done_callback(settle)
        return reply

    def _go_on(self, works: list[SlicedWork[None]]) -> None:
        """Do what the controller has begun on its own, in slices."""
        for work in works:
            appended = self._slices.run(self._append_slices(work, []), lambda: None)
            self._sliced[appended] = None
            appended.add_done_callback(self._ended)

    def _ended(self, appended: Pending[None]) -> None:
        self._sliced.pop(appended, None)
        error = appended.error()
        if isinstance(error, Exception) and not isinstance(error, KafkaError):
            self._quorum.fail(error)

    def _append_slices(self, work: SlicedWork[T], responses: list[T]) -> Iterator[None]:
        """Nothing else is appended between the decision of a slice and its records. It ends when
        `resign` fails the request."""
        while True:
            try:
                records = next(work)
            except StopIteration as end:
                responses.append(end.value)
                self._go_on(self.controller.begun())
                return
            if records:
                if not self._append(records):
                    raise not_controller()
                self.controller.wrote(self._quorum.now_ms)
            self._quorum.arm()
            yield

    def append(self, records: Records) -> Pending[None]:
        """Append records that no request asked for; done when they are committed."""
        reply: Pending[None] = Pending()
        if not self.is_active or not self._append(records) or not self.is_active:
            reply.fail(not_controller())
        else:
            self.when_committed(self._quorum.raft.log.end_offset, reply, None)
        return reply

    def broker_refused(self, broker_id: int, epoch: int, since_ms: int) -> bool:
        """Fence a broker whose process is gone (`Controller.broker_refused`); whether it was."""
        if not self.is_active:
            return False
        quorum = self._quorum
        records = self.controller.broker_refused(broker_id, epoch, since_ms, quorum.now_ms)
        works = self.controller.begun()
        if records and not self._append(records):
            return False
        self._go_on(works)
        quorum.arm()
        return bool(records or works)

    def when_all_committed(self, reply: Pending[T], response: T) -> None:
        """Complete `reply` once everything that is appended by now is committed."""
        self.when_committed(self._quorum.raft.log.end_offset, reply, response)

    def when_committed(self, end_offset: int, reply: Pending[T], response: T) -> None:
        """Complete `reply` once everything before `end_offset` is committed."""
        if end_offset <= self._quorum.feed.next_offset:
            reply.complete(response)
        else:
            self._waiting.append(_Waiting(end_offset, reply, response))

    def _append(self, records: Records) -> bool:
        """Append and replay; False when this node does not lead any more."""
        quorum = self._quorum
        for start in range(0, len(records), BATCH_RECORDS_MAX):
            chunk = records[start : start + BATCH_RECORDS_MAX]
            raft = quorum.raft
            base_offset = raft.log.end_offset
            batch = encode_batch(
                chunk,
                base_offset=base_offset,
                epoch=self._epoch,
                timestamp_ms=quorum.clock.wall_ms(),
            )
            if not raft.is_leader or raft.epoch != self._epoch:
                self.resign()
                return False
            if not self._replay(base_offset, chunk):
                return False
            self._batches.append((base_offset, chunk))
            try:
                quorum.step(msg.Append(batch, len(chunk), self._epoch))
            except KafkaError:
                self._batches.pop()
                self.resign()
                return False
        return True

    def _replay(self, base_offset: int, records: Records) -> bool:
        try:
            for index, (record, _) in enumerate(records):
                self.controller.replay(record, base_offset + index, self._epoch)
        except Exception as error:
            self._quorum.fail(error)
            return False
        self._has_metadata = True
        self.next_offset = base_offset + len(records)
        return True

    def appended(self, effect: fx.AppendBatch) -> MetadataBatch:
        """The decoded form of a batch of ours that is in the log now."""
        base_offset, records = self._batches.popleft()
        assert base_offset == effect.base_offset, f"{base_offset} is not {effect.base_offset}"
        return MetadataBatch(
            base_offset,
            base_offset + len(records) - 1,
            effect.epoch,
            self._quorum.clock.wall_ms(),
            len(effect.batch),
            [record for record, _ in records],
        )

    # ---- leadership

    def claim(self, epoch: int) -> None:
        """This node leads: everything before the start of the epoch is committed and replayed."""
        if self.is_active:
            return
        quorum = self._quorum
        self._epoch = epoch
        bootstrap = None
        if not self._has_metadata:
            bootstrap = quorum.metadata_log.bootstrap_records()
        self.is_active = True
        records = self.controller.activate(
            quorum.now_ms,
            quorum.raft.log.end_offset,
            epoch,
            bootstrap,
            not self._has_metadata,
            quorum.raft.leader_heard,
        )
        if records:
            self._append(records)
        self._go_on(self.controller.begun())
        quorum.arm()

    def resign(self) -> None:
        """Lead no more: refuse what waits, go back to what is committed."""
        if not self.is_active:
            return
        self.is_active = False
        self._epoch = -1
        waiting, self._waiting = self._waiting, deque()
        self.controller.deactivate()
        for held in waiting:
            held.refuse(not_controller())
        sliced, self._sliced = self._sliced, {}
        for appended in sliced:
            appended.fail(not_controller())
        quorum = self._quorum
        if quorum.is_running and self.next_offset > quorum.feed.next_offset:
            try:
                self._reload()
            except Exception as error:
                quorum.fail(error)

    def _reload(self) -> None:
        """Forget what was replayed but not committed. Where files cannot be read for a while the
        node does not end for that (ADR 22): the image that was published says the same."""
        try:
            self._load_stored()
        except OSError as error:
            if not passes(error) or not self._load_published():
                raise

    def _load_published(self) -> bool:
        """Load the image that this node has published, if that is all that is committed."""
        source = self._quorum.published
        if source is None:
            return False
        image = source.image
        is_whole = image.offset >= 0 and image.offset + 1 == self._quorum.feed.next_offset
        if image.in_transaction or not is_whole:
            return False
        records = [record for record, _ in image.record_source()]
        self.on_snapshot(records, image.offset, image.epoch, source.last_timestamp_ms)
        return True

    def _load_stored(self) -> None:
        """Load snapshot and committed log anew."""
        quorum = self._quorum
        log = quorum.metadata_log
        self.controller.discard()
        self._has_metadata = False
        end_offset = quorum.feed.next_offset
        self.next_offset = quorum.raft.log.start_offset
        for snapshot in reversed(quorum.raft.log.snapshots):
            if snapshot.offset <= end_offset and snapshot != BOOTSTRAP_SNAPSHOT:
                content = parse_snapshot(log.snapshots.read(snapshot))
                self.on_snapshot(
                    content.records,
                    snapshot.offset - 1,
                    snapshot.epoch,
                    content.last_timestamp_ms,
                )
                break
        for batch in log.read_batches(self.next_offset, end_offset):
            self.on_commit(batch)

    # ---- what is committed

    def committed(self, high_watermark: int) -> None:
        """Release the answers that waited for it."""
        waiting = self._waiting
        while waiting and waiting[0].end_offset <= high_watermark:
            waiting.popleft().release()

    def on_commit(self, batch: MetadataBatch) -> None:
        """Replay what this node has not appended itself."""
        if batch.last_offset < self.next_offset:
            return
        known = max(self.next_offset - batch.base_offset, 0)
        for offset, record in enumerate(batch.records[known:], batch.base_offset + known):
            self.controller.replay(record, offset, batch.epoch)
            self._has_metadata = True
        self.next_offset = batch.last_offset + 1

    def on_snapshot(
        self, records: list[MetadataRecord], offset: int, epoch: int, timestamp_ms: int
    ) -> None:
        self.controller.load(records, offset, epoch)
        self._has_metadata = True
        self.next_offset = offset + 1

    # ---- time

    def deadline_ms(self) -> int:
        if not self.is_active:
            return FOREVER_MS
        deadline_ms = self.controller.deadline_ms()
        return FOREVER_MS if deadline_ms is None else deadline_ms

    def expire(self, now_ms: int) -> None:
        """Do what is due; one thing at a time, each after the last one was replayed."""
        for _ in range(EXPIRES_PER_TURN_MAX):
            if not self.is_active or self.deadline_ms() > now_ms:
                return
            quorum = self._quorum
            records = self.controller.expire(
                now_ms, quorum.clock.wall_ms(), quorum.raft.log.end_offset
            )
            works = self.controller.begun()
            if records and not self._append(records):
                return
            self._go_on(works)
