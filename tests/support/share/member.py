"""A member of a share group, one request at a time: heartbeats, fetches, acknowledgements.

Answers are plain values (`said`), so that what one broker says can be compared with what another
said.
"""

from __future__ import annotations

import uuid
from typing import Any

from kwire.protocol import messages as m
from kwire.protocol.records import read_records
from kwire.testing.cluster import wait_for
from tests.support.wire import WireClient, produce_values

FETCH_VERSION = 2
BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)

Acknowledgement = tuple[int, int, list[int]]
"""(first offset, last offset, types)."""
Key = tuple[bytes, int]
"""(topic id, partition)."""


def set_group_config(client: WireClient, group: str, **values: str) -> None:
    """Group configs, with `_` for `.`; returns when the broker describes them."""
    shape = m.IncrementalAlterConfigsRequest
    configs = [
        shape.AlterableConfig(name=name.replace("_", "."), config_operation=0, value=value)
        for name, value in values.items()
    ]
    resource = shape.AlterConfigsResource(resource_type=32, resource_name=group, configs=configs)
    answer = client.call(shape(resources=[resource]), 1)
    assert answer.responses[0].error_code == 0, answer
    describe = m.DescribeConfigsRequest
    wanted = {name.replace("_", "."): value for name, value in values.items()}

    def is_set() -> bool:
        asked = describe.DescribeConfigsResource(
            resource_type=32, resource_name=group, configuration_keys=list(wanted)
        )
        found = client.call(describe(resources=[asked]), 4).results[0]
        return {config.name: config.value for config in found.configs} == wanted

    wait_for(is_set, "the group's configs are in force")


class Member:
    """A member with its share session. `epoch` is that of the next request."""

    def __init__(self, bootstrap: str, group: str, topics: list[str], name: int = 0) -> None:
        self.client = WireClient(bootstrap)
        self.group = group
        self.topics = topics
        self.member_id = str(uuid.UUID(int=(0xABCD << 64) + name))
        self.epoch = 0
        self.member_epoch = 0

    def close(self) -> None:
        self.client.close()

    # -- the group

    def heartbeat(self, member_epoch: int | None = None) -> Any:
        shape = m.ShareGroupHeartbeatRequest
        epoch = self.member_epoch if member_epoch is None else member_epoch
        answer = self.client.call(
            shape(
                group_id=self.group,
                member_id=self.member_id,
                member_epoch=epoch,
                subscribed_topic_names=self.topics if epoch == 0 else None,
            ),
            1,
        )
        if answer.error_code == 0:
            self.member_epoch = answer.member_epoch
        return answer

    def join(self, partitions: int) -> None:
        """Heartbeat until so many partitions are assigned."""
        assigned: dict[bytes, list[int]] = {}

        self.client.call(m.FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group]), 4)

        def is_assigned() -> bool:
            answer = self.heartbeat()
            if answer.assignment is not None:
                assigned.clear()
                for topic in answer.assignment.topic_partitions:
                    assigned[topic.topic_id] = topic.partitions
            return sum(map(len, assigned.values())) >= partitions

        wait_for(is_assigned, f"{partitions} partitions are assigned")

    def leave(self) -> None:
        self.heartbeat(-1)

    # -- fetching

    def fetch(
        self,
        keys: list[Key] | None = None,
        acknowledge: dict[Key, list[Acknowledgement]] | None = None,
        *,
        epoch: int | None = None,
        wait_ms: int = 0,
        bytes_min: int = 0,
        bytes_max: int = 1 << 20,
        records_max: int = 500,
        batch_size: int = 500,
        mode: int = BATCH_OPTIMIZED,
        is_renewal: bool = False,
        forgotten: list[Key] | None = None,
        version: int = FETCH_VERSION,
    ) -> m.ShareFetchResponse:
        """`keys` are added to the session."""
        shape = m.ShareFetchRequest
        acknowledged = acknowledge or {}
        topics: dict[bytes, list[Any]] = {}
        for topic_id, index in dict.fromkeys([*(keys or ()), *acknowledged]):
            batches = [
                shape.AcknowledgementBatch(
                    first_offset=first, last_offset=last, acknowledge_types=types
                )
                for first, last, types in acknowledged.get((topic_id, index), ())
            ]
            topics.setdefault(topic_id, []).append(
                shape.FetchPartition(partition_index=index, acknowledgement_batches=batches)
            )
        dropped: dict[bytes, list[int]] = {}
        for topic_id, index in forgotten or ():
            dropped.setdefault(topic_id, []).append(index)
        asked_epoch = self.epoch if epoch is None else epoch
        answer: m.ShareFetchResponse = self.client.call(
            shape(
                group_id=self.group,
                member_id=self.member_id,
                share_session_epoch=asked_epoch,
                max_wait_ms=wait_ms,
                min_bytes=bytes_min,
                max_bytes=bytes_max,
                max_records=records_max,
                batch_size=batch_size,
                share_acquire_mode=mode,
                is_renew_ack=is_renewal,
                topics=[
                    shape.FetchTopic(topic_id=topic_id, partitions=partitions)
                    for topic_id, partitions in topics.items()
                ],
                forgotten_topics_data=[
                    shape.ForgottenTopic(topic_id=topic_id, partitions=indexes)
                    for topic_id, indexes in dropped.items()
                ],
            ),
            version,
        )
        self._went(asked_epoch, answer.error_code)
        return answer

    def acknowledge(
        self,
        batches: dict[Key, list[Acknowledgement]],
        *,
        epoch: int | None = None,
        is_renewal: bool = False,
        version: int = FETCH_VERSION,
    ) -> m.ShareAcknowledgeResponse:
        shape = m.ShareAcknowledgeRequest
        topics: dict[bytes, list[Any]] = {}
        for (topic_id, index), said_of in batches.items():
            topics.setdefault(topic_id, []).append(
                shape.AcknowledgePartition(
                    partition_index=index,
                    acknowledgement_batches=[
                        shape.AcknowledgementBatch(
                            first_offset=first, last_offset=last, acknowledge_types=types
                        )
                        for first, last, types in said_of
                    ],
                )
            )
        asked_epoch = self.epoch if epoch is None else epoch
        answer: m.ShareAcknowledgeResponse = self.client.call(
            shape(
                group_id=self.group,
                member_id=self.member_id,
                share_session_epoch=asked_epoch,
                is_renew_ack=is_renewal,
                topics=[
                    shape.AcknowledgeTopic(topic_id=topic_id, partitions=partitions)
                    for topic_id, partitions in topics.items()
                ],
            ),
            version,
        )
        self._went(asked_epoch, answer.error_code)
        return answer

    def _went(self, epoch: int, code: int) -> None:
        if code == 0:
            self.epoch = 0 if epoch == -1 else epoch + 1

    def acquire(self, keys: list[Key], **options: Any) -> m.ShareFetchResponse:
        """Fetch until something is acquired: a share partition has to open first."""
        found: list[m.ShareFetchResponse] = []

        def got() -> bool:
            answer = self.fetch(keys, wait_ms=500, bytes_min=1, **options)
            found.append(answer)
            return answer.error_code != 0 or any(
                partition.acquired_records or partition.error_code
                for topic in answer.responses
                for partition in topic.partitions
            )

        wait_for(got, "records are acquired")
        return found[-1]


# -- what is compared


def said(answer: m.ShareFetchResponse | m.ShareAcknowledgeResponse) -> list[Any]:
    """An answer in plain values: codes, texts, and what was acquired and sent; topics by order."""
    if isinstance(answer, m.ShareAcknowledgeResponse):
        partitions = [
            [p.partition_index, p.error_code, p.error_message]
            for topic in answer.responses
            for p in topic.partitions
        ]
        return [answer.error_code, answer.error_message, sorted(partitions, key=_by_index)]
    found = []
    for topic in answer.responses:
        for p in topic.partitions:
            records = p.records if isinstance(p.records, (bytes, memoryview)) else b""
            found.append(
                [
                    p.partition_index,
                    [p.error_code, p.error_message],
                    [p.acknowledge_error_code, p.acknowledge_error_message],
                    [[a.first_offset, a.last_offset, a.delivery_count] for a in p.acquired_records],
                    [record.offset for record in read_records(records)] if records else [],
                ]
            )
    return [answer.error_code, answer.error_message, sorted(found, key=_by_index)]


def _by_index(partition: list[Any]) -> int:
    index: int = partition[0]
    return index


def produce(client: WireClient, topic: str, *batches: int, partition: int = 0) -> None:
    """Batches of so many records each."""
    for count in batches:
        produce_values(client, topic, partition, [b"%d" % at for at in range(count)])
