"""Fetch, versions 4-18: read records, wait for them, remember what was asked (KIP-227).

Answers with at least one batch where there is one, whatever the limits, then within
partition_max_bytes and max_bytes. Waits up to max_wait_ms for min_bytes; an error in reading a
partition ends the wait, a partition that does not exist only when there is no other. From version
13 topics are named by id; version 12 and later find diverging epochs (KIP-595), 16 and later name
current leaders (KIP-951). isolation_level 1 reads up to the last stable offset and lists aborted
transactions. A consumer at version 11 or later reads from followers too, and with
RackAwareReplicaSelector is told of one in its rack (KIP-392). A follower's fetch tells how much it
has. A topic that goes within a session by ids is UNKNOWN_TOPIC_OR_PARTITION there, and
INCONSISTENT_TOPIC_ID once its name is in use again. An error of a session
(FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR) is the whole
answer. A consumer gets no more at once than its quota allows in all windows but one, and nothing
while it is over it: its session goes on, one that was to be opened is not. A fetch of many
partitions is looked up, read and answered in slices, each partition as it is in its turn (ADR 52).
Source: KIP-219, KIP-227, KIP-516, KIP-595, KIP-951; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from kwire.api.plain.fetches import PlainFetches
from kwire.api.shared.fetch_limits import limits_of, look_for_quiet, quiet_of, replica_of
from kwire.api.shared.fetch_size import ONE_PARTITION_BYTES, response_bytes_of
from kwire.api.shared.fetched_topics import FetchedTopics, answer_of, downgrade, new_topic
from kwire.api.shared.refused_partitions import Refused, order_of, parts_in_order
from kwire.log.types import ISOLATION_LEVELS
from kwire.pending import Answer, Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.replica.bounded_read import SLICE_BYTES, ReadTarget, nothing
from kwire.replica.delayed_read import DelayedRead
from kwire.replica.reading import ReadLimits, ReadResult
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.context import RequestContext
from kwire.server.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchSession,
    SessionKey,
    SessionPartition,
    partitions_of,
)
from kwire.server.leader_hints import HINTED_ERRORS, LeaderHints, missing_partition_error
from kwire.server.sliced_response import SlicedResponse

if TYPE_CHECKING:
    from kwire.quota.sensor import Sensor
    from kwire.replica.quiet_read import QuietRead
    from kwire.server.deadlines import Deadline
    from kwire.slices import Slices

VERSIONS = (4, 18)
FOLLOW = Requires(
    Operation.CLUSTER_ACTION, ResourceType.CLUSTER, denied=Denied.ENTRY, note="of followers"
)
READ_TOPIC = Requires(
    Operation.READ,
    ResourceType.TOPIC,
    "topics[].topic",
    denied=Denied.ENTRY,
    note="of clients",
)
AUTHORIZATION = (FOLLOW, READ_TOPIC)
SESSIONS_FROM = 7
TOPIC_IDS_FROM = 13
LEADER_HINTS_FROM = 16
STORAGE_ERRORS_FROM = 6
FULL_EPOCHS = (INITIAL_EPOCH, FINAL_EPOCH)
SLICE_PARTITIONS = 200
"""A fetch of no more partitions is answered at once. A slice ends with SLICE_BYTES too."""

Response: TypeAlias = m.FetchResponse | SlicedResponse


def handle(context: RequestContext, request: m.FetchRequest) -> Answer[Response]:
    """See the module."""
    return _Fetch(context, request).start()


def error_response(context: RequestContext, error: KafkaError) -> m.FetchResponse:
    """An error of the whole request (versions 7 and later carry it)."""
    return _error(error.code)


def _error(code: int) -> m.FetchResponse:
    response = m.FetchResponse()
    response.error_code = int(code)
    return response


class _Fetch:
    """One request: its session, what it reads, its answer."""

    __slots__ = (
        "_consumer",
        "_context",
        "_hints",
        "_is_asked",
        "_limits",
        "_pending",
        "_quiet",
        "_refused",
        "_replica_id",
        "_request",
        "_response",
        "_session",
        "_slices",
        "_targets",
        "_topic_ids",
        "_work",
    )

    def __init__(self, context: RequestContext, request: m.FetchRequest) -> None:
        self._context = context
        self._request = request
        self._topic_ids = context.api_version >= TOPIC_IDS_FROM
        self._replica_id = replica_of(context, request)
        self._session: FetchSession | None = None
        self._targets: list[ReadTarget[SessionPartition]] = []
        self._refused: list[Refused] = []
        self._response: m.FetchResponse | None = None
        self._pending: Pending[Response] | None = None
        self._hints: LeaderHints | None = None
        self._slices: Slices | None = None
        """Where it is done in slices."""
        self._work: Pending[None] | DelayedRead[SessionPartition] | None = None
        """What of it is under way."""
        self._consumer: Sensor | None = None
        """What its answer is counted for."""
        self._is_asked = False
        self._quiet: QuietRead[SessionPartition] | None = None
        """Partitions of the session that are read in passing."""

    def start(self) -> Answer[Response]:
        if self._is_long():
            return self._start_in_slices()
        asked = self._asked_partitions()
        if not isinstance(asked, list):
            return self._session_error(asked)
        self._limits = limits = self.limits()
        refused = self._follower_refused(limits)
        for partition in asked:
            self._add(partition, refused)
        if self._targets and self._request.isolation_level not in ISOLATION_LEVELS:
            return self._invalid(asked)
        read = self._new_read(None)
        read.start()
        if self._response is not None:
            return self._response
        self._pending = Pending(read.cancel)
        return self._pending

    def _session_error(self, code: ErrorCode) -> m.FetchResponse:
        self.limits()
        is_bound = self._consumer is not None or self._is_asked
        return (self._throttled() if is_bound else None) or _error(code)

    def go_on(
        self,
        session: FetchSession,
        targets: list[ReadTarget[SessionPartition]],
        limits: ReadLimits,
        deadline: Deadline,
        order: int,
        quiet: QuietRead[SessionPartition] | None = None,
    ) -> Pending[Response]:
        """As `start`, of an incremental fetch that names nothing and has waited until now."""
        self._session, self._targets, self._limits = session, targets, limits
        self._quiet = quiet
        if len(targets) > SLICE_PARTITIONS:
            self._begin_slices(limits)
        self._work = read = self._new_read(self._slices)
        deadline.callback = read.expired
        read.go_on(deadline, order)
        self._pending = Pending(self._cancel)
        return self._pending

    def _new_read(self, slices: Slices | None) -> DelayedRead[SessionPartition]:
        return DelayedRead(
            self._context.parts.read_context,
            self._targets,
            self._limits,
            self._finish,
            slices,
            self._failed,
            self._quiet,
            self._regroup,
        )

    def _regroup(self) -> Slices | None:
        """More partitions are to be read than those that have begun."""
        self._targets.sort(key=order_of)
        is_long = len(self._targets) > SLICE_PARTITIONS
        if is_long and self._slices is None and self._pending is not None:
            return self._begin_slices(self._limits)
        return None

    # -- in slices

    def _is_long(self) -> bool:
        """Whether so many partitions are asked for that others must have a turn meanwhile."""
        request = self._request
        count = 0
        for topic in request.topics:
            count += len(topic.partitions)
        if not self._is_full():
            session = self._context.parts.fetch_sessions.get(request.session_id)
            if session is not None:
                self._quiet = quiet = quiet_of(session, self._context, request, self._replica_id)
                count += len(session.partitions if quiet is None else session.moving)
        return count > SLICE_PARTITIONS

    def _begin_slices(self, limits: ReadLimits) -> Slices:
        """What a client has to wait for the time of its slices is asked for, too."""
        slices = self._context.parts.slices
        if limits.replica_id < 0 and self._context.slices is not slices:
            slices, self._is_asked = self._context.slices, True
        self._slices = slices
        return slices

    def _start_in_slices(self) -> Answer[Response]:
        asked: list[SessionPartition] | None = None
        if not self._is_full():
            known = self._asked_partitions()
            if not isinstance(known, list):
                return self._session_error(known)
            asked = known
        self._limits = limits = self.limits()
        slices = self._begin_slices(limits)
        pending: Pending[Response] = Pending(self._cancel)
        self._pending = pending
        self._run(slices, self._look_up_in_slices(asked, pending))
        return pending

    def _cancel(self) -> None:
        work, self._work = self._work, None  # a read knows us: no cycle stays
        if work is not None:
            work.cancel()

    def _run(self, slices: Slices, work: Iterator[None]) -> None:
        """What fails in it is what becomes of the request."""
        self._work = done = slices.run(work, nothing)
        done.add_done_callback(self._ended)

    def _ended(self, work: Pending[None]) -> None:
        error = work.error()
        if error is not None:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        """What is no error of a partition is one of the request; of an answer that was given it is
        the caller's."""
        self._work = None
        if self._pending is None or not self._pending.fail(error):
            raise error

    def _look_up_in_slices(
        self, asked: list[SessionPartition] | None, pending: Pending[Response]
    ) -> Iterator[None]:
        """`asked` is None in a full fetch, whose partitions are made here."""
        if asked is None:
            listed: dict[SessionKey, SessionPartition] = {}
            self._close_named()
            partitions = partitions_of(self._request.topics, self._topic_ids)
            for at, (key, partition) in enumerate(partitions):
                if at and at % SLICE_PARTITIONS == 0:
                    yield
                listed[key] = SessionPartition(key[0], partition)
            asked = self._listed(listed)
            yield
        limits = self._limits
        refused = self._follower_refused(limits)
        for at, known in enumerate(asked):
            if at and at % SLICE_PARTITIONS == 0:
                yield
            self._add(known, refused)
        if self._quiet is not None:
            self._add_what_moved(asked)
        if self._targets and self._request.isolation_level not in ISOLATION_LEVELS:
            pending.complete(self._invalid(asked))
            return
        self._work = read = self._new_read(self._slices)
        read.start()

    def _add_what_moved(self, asked: list[SessionPartition]) -> None:
        """What is read in passing no more, since the others were looked up."""
        session, known = self._session, set(asked)
        assert session is not None
        if session.quiet is not self._quiet:
            self._quiet = None
        for partition in session.partitions.values() if self._quiet is None else session.moving:
            if partition not in known:
                self._add(partition, None)
        self._targets.sort(key=order_of)

    def _answer_in_slices(self, pending: Pending[Response]) -> Iterator[None]:
        """`_answer`, and its encoding."""
        response = m.FetchResponse()
        sliced = SlicedResponse(response, "responses", self._context.api_version)
        topics = FetchedTopics(sliced)
        self._look_for_quiet()
        count = size_bytes = 0
        for part in parts_in_order(self._targets, self._refused):
            if count >= SLICE_PARTITIONS or size_bytes >= SLICE_BYTES:
                count = size_bytes = 0
                topics.end_slice()
                yield
            count += 1
            answer = self._answer_to(part)
            if answer is not None:
                topics.add(part.request.topic, answer)
            result = part.result
            if result.buffers:
                size_bytes += result.size_bytes
                result.buffers = None  # the answer has them, until it is encoded
        topics.end()
        self._complete(response)
        pending.complete(sliced)

    def _finish(self) -> None:
        throttled, consumer = None, self._consumer
        self._work = None
        if self._is_asked:
            throttled = self._throttled()
        elif consumer is not None:
            # Nearly always it is within the quota for certain: this is `Sensor.count`.
            context = self._context
            if self._session is None and len(self._targets) == 1 and not self._refused:
                (target,) = self._targets
                response_bytes = ONE_PARTITION_BYTES[context.api_version] + target.result.size_bytes
            else:
                response_bytes = self._response_bytes()
            if self._pending is None and (connection := context.connection) is not None:
                now_s = connection.turn_s
            else:
                now_s = context.parts.loop.time()
            pending = consumer.pending + response_bytes
            if pending <= consumer.room and now_s < consumer.quiet_until_s:
                consumer.pending = pending
                consumer.counted_s = now_s
            else:
                throttled = self._throttled()
        if self._slices is not None and throttled is None:
            assert self._pending is not None
            self._run(self._slices, self._answer_in_slices(self._pending))
            return
        self._response = response = throttled or self._answer()
        if self._pending is not None:
            self._pending.complete(response)

    # -- what is asked

    def _asked_partitions(self) -> list[SessionPartition] | ErrorCode:
        """The partitions in the order of reading, or the error of the session."""
        request = self._request
        if self._is_full():
            self._close_named()
            return self._listed(
                {
                    key: SessionPartition(key[0], asked)
                    for key, asked in partitions_of(request.topics, self._topic_ids)
                }
            )
        cache = self._context.parts.fetch_sessions
        session = cache.resume(request.session_id, request.session_epoch, self._topic_ids)
        if not isinstance(session, FetchSession):
            code: ErrorCode = session
            return code
        if self._quiet is None:
            session.disturb()
        if request.topics or request.forgotten_topics_data:
            session.update(request.topics, request.forgotten_topics_data)
        if not session.partitions:
            cache.remove(session.session_id)
            return []
        cache.used(session, self._context.now_ms)
        self._session = session
        if self._quiet is None:
            return list(session.partitions.values())
        return session.moving_in_order()

    def _is_full(self) -> bool:
        if self._context.api_version < SESSIONS_FROM:
            return True
        return self._request.session_epoch in FULL_EPOCHS

    def _close_named(self) -> None:
        if self._request.session_id != NO_SESSION:
            self._context.parts.fetch_sessions.remove(self._request.session_id)

    def _listed(self, listed: dict[SessionKey, SessionPartition]) -> list[SessionPartition]:
        """The partitions of a full fetch, for which a session is opened if it is to be."""
        partitions = list(listed.values())
        version, epoch = self._context.api_version, self._request.session_epoch
        if version >= SESSIONS_FROM and epoch == INITIAL_EPOCH:
            self._session = self._context.parts.fetch_sessions.create(
                partitions,
                privileged=self._replica_id >= 0,
                uses_topic_ids=self._topic_ids,
                now_ms=self._context.now_ms,
            )
        return partitions

    def _invalid(self, asked: list[SessionPartition]) -> m.FetchResponse:
        """The answer to an isolation level that there is not, as Apache Kafka 4.4 gives it."""
        response = _error(ErrorCode.UNKNOWN_SERVER_ERROR)
        if self._topic_ids:
            return response
        result = ReadResult.refused(ErrorCode.UNKNOWN_SERVER_ERROR)
        self._refused = [Refused(partition, result) for partition in asked]
        self._targets = []
        self._session = None
        response.responses = self._answer().responses
        return response

    def limits(self, *, is_bound: bool = True) -> ReadLimits:
        """What the request allows, and what binds its client where that `is_bound`."""
        context, request = self._context, self._request
        parts, connection = context.parts, context.connection
        bytes_max = min(request.max_bytes, parts.fetch_bytes_max)
        if connection is not None:
            connection.is_follower = self._replica_id >= 0
            if self._replica_id < 0 and connection.holds_reads and is_bound:
                if connection.is_measured:
                    self._is_asked = connection.is_read(context)
                if (consumer := connection.consumer) is not None:
                    self._consumer = consumer
                    if bytes_max > consumer.window_bytes_max:
                        bytes_max = consumer.window_bytes_max
        return limits_of(context, request, self._replica_id, bytes_max)

    def _follower_refused(self, limits: ReadLimits) -> ErrorCode | None:
        if limits.replica_id >= 0 and not self._context.allows(FOLLOW):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return None

    def _add(self, asked: SessionPartition, refused: ErrorCode | None) -> None:
        """Make the partition one to read, or refuse it."""
        parts = self._context.parts
        is_other_topic = False
        if isinstance(asked.topic, bytes):
            known = parts.metadata.image.topics.by_id.get(asked.topic)
            if known is not None:
                asked.name = known.name
            partition = parts.replicas.partition_by_id(asked.topic, asked.index)
            if partition is None and asked.name is not None:
                # The session's topic is gone; one that was made anew in its place is another.
                partition = parts.replicas.partition(asked.name, asked.index)
                is_other_topic = partition is not None
        else:
            partition = parts.replicas.partition(asked.topic, asked.index)
        name = asked.name
        if refused is not None:
            code = refused
        elif name is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        elif (
            parts.authorizer is not None
            and self._replica_id < 0
            and not self._context.allows(READ_TOPIC, name)
        ):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif partition is None:
            code = missing_partition_error(parts.metadata.image.topics, name, asked.index)
        else:
            self._targets.append(ReadTarget(partition, asked, is_other_topic))
            return
        self._refused.append(Refused(asked, ReadResult.refused(code)))

    # -- the answer

    def _response_bytes(self) -> int:
        is_full = self._session is None or self._request.session_epoch == INITIAL_EPOCH
        results = [target.result for target in self._targets]
        version = self._context.api_version
        return response_bytes_of(version, results, len(self._refused), is_full=is_full)

    def _throttled(self) -> m.FetchResponse | None:
        """The answer to a consumer over its quota: nothing that was read, and nothing that the
        session would have to remember. None to one within it, for which the answer is counted."""
        connection, response_bytes = self._context.connection, 0
        assert connection is not None
        if self._consumer is not None:
            response_bytes = self._response_bytes()
        wait_ms = connection.charge_read(self._context, response_bytes)
        if wait_ms <= 0:
            return None
        response = m.FetchResponse(throttle_time_ms=wait_ms)
        if self._session is not None:
            if self._request.session_epoch == INITIAL_EPOCH:
                self._context.parts.fetch_sessions.remove(self._session.session_id)
            else:
                response.session_id = self._session.session_id
        return response

    def _answer(self) -> m.FetchResponse:
        """What was read comes first, behind it what was refused: unknown ids, then the rest. An
        incremental fetch answers what is new. What is sent is counted here."""
        response = m.FetchResponse()
        self._look_for_quiet()
        responses: list[m.FetchResponse.FetchableTopicResponse] = []
        last: bytes | str | None = None  # the topic before: only neighbours share an entry
        for part in parts_in_order(self._targets, self._refused):
            answer = self._answer_to(part)
            if answer is None:
                continue
            key = part.request.topic
            if not responses or key != last:
                last = key
                topic = new_topic(key)
                responses.append(topic)
            topic.partitions.append(answer)
        response.responses = responses
        self._complete(response)
        return response

    def _look_for_quiet(self) -> None:
        """From now on partitions in which nothing happens are read in passing, if that may be."""
        session, self._quiet = self._session, None
        if session is not None and session.wants_quiet:
            self._quiet = look_for_quiet(session, self._context, self._request, self._replica_id)

    def _answer_to(
        self, part: ReadTarget[SessionPartition] | Refused
    ) -> m.FetchResponse.PartitionData | None:
        """What is told of a partition; None where the session has told it."""
        asked, result, session = part.request, part.result, self._session
        is_new = session is None or asked.must_answer(result)
        if (
            self._quiet is not None
            and isinstance(part, ReadTarget)
            and not result.size_bytes
            and session is not None
            and self._quiet is session.quiet
        ):
            session.found_nothing(self._context.parts.replicas, part)
        if size_bytes := result.size_bytes:
            traffic = part.partition.traffic
            if self._replica_id < 0:
                traffic.bytes_out += size_bytes
            else:
                traffic.replication_bytes_out += size_bytes
        if session is not None and self._request.session_epoch not in FULL_EPOCHS:
            if not is_new:
                return None
            if size_bytes:
                session.rotate((asked.topic, asked.index))
        answer = answer_of(asked.index, result)
        if result.error_code:
            version = self._context.api_version
            if version >= LEADER_HINTS_FROM:
                self._hint(asked, answer)
            elif version < STORAGE_ERRORS_FROM:
                downgrade(answer)
        return answer

    def _complete(self, response: m.FetchResponse) -> None:
        """Fill in what is told beside the partitions."""
        session = self._session
        if session is not None:
            response.session_id = session.session_id
        if self._hints is not None and self._replica_id < 0:
            response.node_endpoints = self._hints.endpoints(m.FetchResponse.NodeEndpoint)

    def _hint(
        self,
        asked: SessionPartition,
        answer: m.FetchResponse.PartitionData,
    ) -> None:
        """KIP-951: who leads a partition that we do not."""
        if answer.error_code not in HINTED_ERRORS or asked.name is None:
            return
        hints = self._hints
        if hints is None:
            image = self._context.parts.metadata.image
            self._hints = hints = LeaderHints(image, self._context.listener_name)
        leader_id, epoch = hints.leader_of(asked.name, asked.index)
        answer.current_leader = m.FetchResponse.LeaderIdAndEpoch(
            leader_id=leader_id, leader_epoch=epoch
        )


plain_road = partial(PlainFetches, _Fetch)
