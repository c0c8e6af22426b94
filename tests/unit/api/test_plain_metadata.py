"""What a plain road remembers of Metadata, and what it leaves alone (ADR 55)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kwire.api.plain.metadata import PARTITIONS_MAX, PlainMetadata
from kwire.api.plain.remembered import ASKED_BYTES_MAX
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.protocol import messages as m
from kwire.protocol.frame import encode_request
from kwire.server.described_topics import DescribedTopics
from kwire.server.request_counts import RequestCounts
from tests.support.parts import made_parts

KEY, VERSION = m.MetadataRequest.API_KEY, 12
TOPIC_ID = b"t" * 16


class Road:
    """A road to one topic of so many partitions; `handled` is how often the general way was asked
    for its answer."""

    def __init__(self, partitions: int) -> None:
        image, described, delta = MetadataImage(), DescribedTopics(), MetadataDelta()
        records: list[Any] = [
            m.FeatureLevelRecord(name="metadata.version", feature_level=33),
            m.TopicRecord(name="t", topic_id=TOPIC_ID),
        ]
        records += [
            m.PartitionRecord(
                topic_id=TOPIC_ID, partition_id=index, replicas=[1], isr=[1], leader=1
            )
            for index in range(partitions)
        ]
        for record in records:
            image.replay(record, delta=delta)
        described.applied(delta)
        self.handled = 0
        parts = made_parts(image=image, cluster_id="c", described_topics=described)
        self._road = PlainMetadata(self._handle, parts, RequestCounts(KEY), VERSION)

    def _handle(self, context: Any, request: m.MetadataRequest) -> m.MetadataResponse:
        self.handled += 1
        topic = m.MetadataResponse.MetadataResponseTopic(name="t", partitions=[])
        return m.MetadataResponse(topics=[topic])

    def ask(self, name: str = "t", client_id: str = "test") -> bytes | None:
        connection: Any = SimpleNamespace(turn_s=1.0)
        topic = m.MetadataRequest.MetadataRequestTopic(name=name)
        request = m.MetadataRequest(topics=[topic])
        frame = b"".join(encode_request(KEY, VERSION, 7, client_id, request))
        return self._road(connection, memoryview(frame)[4:])


def test_an_answer_is_made_once() -> None:
    road = Road(PARTITIONS_MAX)
    assert road.ask() == road.ask() is not None
    assert road.handled == 1


@pytest.mark.parametrize(("partitions", "name"), [(PARTITIONS_MAX + 1, "t"), (1, "other")])
def test_what_is_not_remembered_is_not_made_either(partitions: int, name: str) -> None:
    """It is made by the general way then: a topic of many partitions was described twice."""
    road = Road(partitions)
    assert road.ask(name) is None
    assert road.handled == 0


def test_a_large_request_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    road = Road(1)
    decoded: list[str] = []
    monkeypatch.setattr(m.MetadataRequest, "decode_from", lambda *_: decoded.append("it"))
    assert road.ask(client_id="c" * ASKED_BYTES_MAX) is None
    assert decoded == []
