"""ShareFetch, versions 1-2: acquire records of a share group, and acknowledge others (KIP-932).

A request of the member's share session: epoch 0 opens one with the partitions that are named, each
next one names what is added or forgotten, -1 is the last and fetches nothing. Acknowledgements come
first and are answered with the records, each with its own error; none may come with epoch 0.
Partitions are looked at in turn, beginning with another one each time; those that gave records go
behind the others. Waits up to max_wait_ms for min_bytes of records that can be acquired. Records
are whole batches; `acquired_records` says which of their offsets the member has, and how often each
was delivered. A renewal (version 2) renews and fetches nothing: its limits must be 0. Version 2 has
the acquire mode (KIP-1206). A consumer's quota holds back what is over it, and nothing stays
acquired. Source: KIP-932, KIP-1206, KIP-1222;
measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from kwire.api.shared.share_acknowledging import (
    READ_GROUP,
    READ_TOPIC,
    Acknowledged,
    Asked,
    acknowledge,
    asked,
    refused,
)
from kwire.api.shared.share_order import in_answer_order
from kwire.pending import Answer, Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.server.context import RequestContext
from kwire.server.leader_hints import HINTED_ERRORS, LeaderHints
from kwire.share.acquisition import Ask
from kwire.share.changes import AcquireMode
from kwire.share.delayed_fetch import DelayedShareFetch, Limits, ShareTarget
from kwire.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, PartitionKey, ShareSession

VERSIONS = (1, 2)
AUTHORIZATION = (READ_GROUP, READ_TOPIC)
ANSWER_BYTES, PARTITION_BYTES = 32, 64
"""About what an answer and a partition take without records, for quotas."""


def handle(context: RequestContext, request: m.ShareFetchRequest) -> Answer[m.ShareFetchResponse]:
    """See the module."""
    return _ShareFetch(context, request).start()


def error_response(context: RequestContext, error: KafkaError) -> m.ShareFetchResponse:
    """An error of the whole request."""
    return m.ShareFetchResponse(error_code=int(error.code))


class _ShareFetch:
    """One request: acknowledgements, the fetch, the answer when both are there."""

    __slots__ = (
        "_acknowledged",
        "_context",
        "_is_fetched",
        "_pending",
        "_refused",
        "_request",
        "_response",
        "_session",
        "_targets",
    )

    def __init__(self, context: RequestContext, request: m.ShareFetchRequest) -> None:
        self._context = context
        self._request = request
        self._session: ShareSession | None = None
        self._acknowledged: list[Acknowledged] | None = None
        self._targets: list[ShareTarget] = []
        self._refused: list[tuple[PartitionKey, KafkaError]] = []
        self._is_fetched = False
        self._response: m.ShareFetchResponse | None = None
        self._pending: Pending[m.ShareFetchResponse] | None = None

    def start(self) -> Answer[m.ShareFetchResponse]:
        context, request = self._context, self._request
        code = refused(context, request.group_id, request.member_id)
        if not code and request.is_renew_ack and _asks_for_records(request):
            code = ErrorCode.INVALID_REQUEST
        if code:
            return m.ShareFetchResponse(error_code=int(code))
        asked_of = self._acknowledgements()
        try:
            self._session = self._resume(bool(asked_of))
        except KafkaError as error:
            return error_response(context, error)
        if request.share_acquire_mode not in tuple(AcquireMode):
            # As Apache Kafka 4.4 answers it; the session has moved on.
            return error_response(context, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
        group_id, member_id = self._session.key
        taken = acknowledge(context, group_id, member_id, asked_of, request.is_renew_ack)
        if isinstance(taken, Pending):
            taken.add_done_callback(self._written)
        else:
            self._acknowledged = taken
        fetch = self._fetch()
        if fetch is not None:
            fetch.start()
        if self._response is not None:
            return self._response
        self._pending = Pending(partial(self._cancelled, fetch))
        return self._pending

    def _cancelled(self, fetch: DelayedShareFetch | None) -> None:
        """The connection is gone."""
        if fetch is not None:
            fetch.cancel()
        self._tidy()

    def _tidy(self) -> None:
        """The session may have ended while its fetch waited."""
        session = self._session
        assert session is not None
        self._context.parts.shares.partitions.tidy(session.group_id)

    # -- the session

    def _resume(self, has_acknowledgements: bool) -> ShareSession:
        request, manager = self._request, self._context.parts.shares.partitions
        assert request.group_id is not None
        assert request.member_id is not None
        group_id, member_id = request.group_id, request.member_id
        if request.share_session_epoch == INITIAL_EPOCH:
            if has_acknowledgements:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            known = manager.sessions.get(group_id, member_id)
            if known is not None:
                manager.close_session(known)
            session = manager.open_session(group_id, member_id, self._context.connection)
        else:
            epoch = request.share_session_epoch
            session = manager.sessions.resume(group_id, member_id, epoch)
        if request.share_session_epoch != FINAL_EPOCH:
            try:
                manager.sessions.update(session, *_named(request))
            except KafkaError:
                manager.release(session)
                raise
        return session

    # -- acknowledgements

    def _acknowledgements(self) -> list[Asked]:
        return [
            asked((topic.topic_id, partition.partition_index), partition.acknowledgement_batches)
            for topic in self._request.topics
            for partition in topic.partitions
            if partition.acknowledgement_batches
        ]

    def _written(self, done: Pending[list[Acknowledged]]) -> None:
        self._acknowledged = done.result()
        self._complete()

    # -- fetching

    def _fetch(self) -> DelayedShareFetch | None:
        """The fetch to start; None where there is nothing to fetch."""
        request, parts, session = self._request, self._context.parts, self._session
        assert session is not None
        if request.share_session_epoch == FINAL_EPOCH or request.is_renew_ack:
            self._fetched()
            return None
        for key in session.partitions:
            try:
                self._targets.append(self._target(key, session))
            except KafkaError as error:
                self._refused.append((key, error))
        for traffic in {target.led.partition.traffic: None for target in self._targets}:
            traffic.share_fetch_requests += 1
        if self._targets:
            first = request.share_session_epoch % len(self._targets)
            self._targets = self._targets[first:] + self._targets[:first]
        bytes_max = self._bytes_max()
        connection = self._context.connection
        wait_ms = request.max_wait_ms
        if bytes_max < 0:
            negative = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Apache Kafka 4.4 answers it
            self._refused += [(_key_of(target), negative) for target in self._targets]
            self._targets = []
        if not self._targets and self._refused:
            wait_ms = 0
        return DelayedShareFetch(
            self._targets,
            Ask(
                session.member_id,
                AcquireMode(request.share_acquire_mode),
                max(1, request.batch_size),
                request.max_records,
            ),
            Limits(
                wait_ms,
                min(request.min_bytes, bytes_max),
                bytes_max,
                connection is not None and connection.sends_files,
            ),
            parts.shares.partitions.deadlines,
            parts.shares.partitions.now_ms,
            parts.shares.partitions.counts,
            self._fetched,
        )

    def _target(self, key: PartitionKey, session: ShareSession) -> ShareTarget:
        """What is fetched of a partition; why it cannot be."""
        parts = self._context.parts
        topic_id, index = key
        topics = parts.metadata.image.topics
        topic = topics.by_id.get(topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if not self._context.allows(READ_TOPIC, topic.name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if topics.partition(topic.name, index) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        partition = parts.replicas.partition_by_id(topic_id, index)
        if partition is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        led = parts.shares.partitions.open(session.group_id, partition)
        return ShareTarget(led, session.member_id)

    def _bytes_max(self) -> int:
        connection = self._context.connection
        bytes_max = min(self._request.max_bytes, self._context.parts.fetch_bytes_max)
        rates = None if connection is None else connection.rates
        if connection is not None and rates is not None:
            connection.is_read(self._context)
            if rates.consumer is not None:
                bytes_max = min(bytes_max, rates.consumer.window_bytes_max)
        return bytes_max

    def _fetched(self) -> None:
        self._is_fetched = True
        if self._acknowledged is None:
            for target in self._targets:
                target.keep()
        self._complete()

    # -- the answer

    def _complete(self) -> None:
        """Answer, when everything is there."""
        if not self._is_fetched or self._acknowledged is None:
            return
        session = self._session
        assert session is not None
        throttle_ms = self._throttled()
        self._response = response = self._answer(session, self._acknowledged)
        response.throttle_time_ms = throttle_ms
        if self._request.share_session_epoch == FINAL_EPOCH:
            self._context.parts.shares.partitions.release(session)
        else:
            self._tidy()
        if self._pending is not None:
            self._pending.complete(response)

    def _throttled(self) -> int:
        """How long a client over its quota has to wait: what was acquired for it is given back."""
        connection = self._context.connection
        if connection is None or connection.rates is None:
            return 0
        size_bytes = ANSWER_BYTES + sum(
            PARTITION_BYTES + target.size_bytes for target in self._targets if target.acquired
        )
        wait_ms = connection.charge_read(self._context, size_bytes)
        if wait_ms > 0:
            for target in self._targets:
                target.give_back()
        return wait_ms

    def _answer(
        self, session: ShareSession, acknowledged: list[Acknowledged]
    ) -> m.ShareFetchResponse:
        shape = m.ShareFetchResponse
        answers: dict[PartitionKey, m.ShareFetchResponse.PartitionData] = {}
        failed = {target.led.partition.traffic: None for target in self._targets if target.error}
        for traffic in failed:
            traffic.failed_share_fetch_requests += 1
        for target in self._targets:
            if target.error is not None:
                answers[_key_of(target)] = _failed(_key_of(target), target.error)
                session.owed.add(_key_of(target))
            elif target.acquired:
                session.owed.discard(_key_of(target))
                target.led.partition.traffic.bytes_out += target.size_bytes
                answers[_key_of(target)] = _of_records(target)
            elif _key_of(target) in session.owed and target.is_looked_at:
                session.owed.discard(_key_of(target))
                answers[_key_of(target)] = _empty(target.led.partition.index)
        for key, error in self._refused:
            session.owed.add(key)
            answers[key] = _failed(key, error)
        ordered = list(answers)
        if len(ordered) > 1:
            ordered = [key for key in self._in_order() if key in answers]
        for key, acknowledge_error in acknowledged:
            said = answers.get(key)
            if said is None:
                said = answers[key] = _empty(key[1])
            if acknowledge_error is not None:
                said.acknowledge_error_code = int(acknowledge_error.code)
                said.acknowledge_error_message = acknowledge_error.message or None
        topics: dict[bytes, list[m.ShareFetchResponse.PartitionData]] = {}
        for key in dict.fromkeys([*ordered, *answers]):
            topics.setdefault(key[0], []).append(answers[key])
        if self._request.share_session_epoch != INITIAL_EPOCH:
            session.gave(key for key in ordered if answers[key].records)
        response = shape(
            responses=[
                shape.ShareFetchableTopicResponse(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in topics.items()
            ]
        )
        manager = self._context.parts.shares.partitions
        response.acquisition_lock_timeout_ms = manager.settings(session.group_id).lock_duration_ms
        self._add_leaders(response)
        return response

    def _in_order(self) -> list[PartitionKey]:
        """The partitions that were looked at, as the answer names those it has of them."""
        keys = [_key_of(x) for x in self._targets if x.is_looked_at or x.error is not None]
        keys += [key for key, _ in self._refused]
        known = self._context.parts.metadata.image.topics.by_id
        topics = {topic_id: known.get(topic_id) for topic_id, _ in keys}
        return in_answer_order(keys, {x: topic.name for x, topic in topics.items() if topic})

    def _add_leaders(self, response: m.ShareFetchResponse) -> None:
        """Who leads partitions that we do not."""
        hints: LeaderHints | None = None
        image = self._context.parts.metadata.image
        for topic in response.responses:
            for said in topic.partitions:
                codes = said.error_code, said.acknowledge_error_code
                known = image.topics.by_id.get(topic.topic_id)
                if known is None or not any(code in HINTED_ERRORS for code in codes):
                    continue
                hints = hints or LeaderHints(image, self._context.listener_name)
                leader_id, epoch = hints.leader_of(known.name, said.partition_index)
                said.current_leader = m.ShareFetchResponse.LeaderIdAndEpoch(
                    leader_id=leader_id, leader_epoch=epoch
                )
        if hints is not None:
            response.node_endpoints = hints.endpoints(m.ShareFetchResponse.NodeEndpoint)


def _named(
    request: m.ShareFetchRequest,
) -> tuple[Iterator[PartitionKey], Iterator[PartitionKey]]:
    """The partitions that a request adds to its session, and those that it drops."""
    return (
        (
            (topic.topic_id, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
        ),
        (
            (topic.topic_id, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        ),
    )


def _asks_for_records(request: m.ShareFetchRequest) -> bool:
    limits = request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records
    return any(limits)


def _key_of(target: ShareTarget) -> PartitionKey:
    return target.led.partition.topic_id, target.led.partition.index


def _empty(index: int) -> m.ShareFetchResponse.PartitionData:
    return m.ShareFetchResponse.PartitionData(partition_index=index, records=b"")


def _failed(key: PartitionKey, error: KafkaError) -> m.ShareFetchResponse.PartitionData:
    said = _empty(key[1])
    said.error_code = int(error.code)
    return said


def _of_records(target: ShareTarget) -> m.ShareFetchResponse.PartitionData:
    acquired = m.ShareFetchResponse.AcquiredRecords
    return m.ShareFetchResponse.PartitionData(
        partition_index=target.led.partition.index,
        records=target.buffers,
        acquired_records=[
            acquired(first_offset=first, last_offset=last, delivery_count=count)
            for first, last, count in target.acquired
        ],
    )
