"""A Fetch of many partitions is answered in slices, and as one that is answered at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kwire.api import fetch
from kwire.api.shared.fetched_topics import FetchedTopics, answer_of
from kwire.log.partition import lookups
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.replica import bounded_read, delayed_read
from kwire.replica.reading import ReadResult
from kwire.server import sliced_response
from kwire.server.sliced_response import SlicedResponse
from kwire.testing.cluster import NodeInThread
from tests.support.wire import WireClient, produce_values

TOPICS = [f"t{number}" for number in range(5)]
PARTITIONS = 7
MISSING = "missing"
NONE_LEFT = 0x7FFFFFFF


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WireClient]:
    directory = tmp_path_factory.mktemp("fetches") / "data"
    with NodeInThread(directory) as thread, WireClient(thread.bootstrap) as client:
        for number, name in enumerate(TOPICS):
            client.create_topic(name, PARTITIONS)
            for partition in range(number):
                produce_values(client, name, partition, [b"x" * 50] * (number + partition))
        yield client


@pytest.fixture(params=[1, 3, 10])
def slice_partitions(request: pytest.FixtureRequest) -> int:
    return int(request.param)


class Slicing:
    """Whether requests are answered in slices, and how many were."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, slice_partitions: int) -> None:
        self._monkeypatch, self._partitions = monkeypatch, slice_partitions
        self.answered = 0
        encode = SlicedResponse.encode_parts

        def counted(response: SlicedResponse, version: int) -> Any:
            self.answered += 1
            return encode(response, version)

        monkeypatch.setattr(SlicedResponse, "encode_parts", counted)

    def set(self, is_on: bool) -> None:
        partitions = self._partitions if is_on else NONE_LEFT
        for module in (bounded_read, delayed_read):
            self._monkeypatch.setattr(module, "SLICE_PARTITIONS", partitions)
        self._monkeypatch.setattr(fetch, "SLICE_PARTITIONS", partitions)
        for module in (bounded_read, fetch):
            self._monkeypatch.setattr(module, "SLICE_BYTES", 500 if is_on else NONE_LEFT)
        self._monkeypatch.setattr(sliced_response, "PIECE_BYTES_MIN", 200)
        self._monkeypatch.setattr(sliced_response, "JOINED_BYTES_MAX", 100 if is_on else 1 << 20)


@pytest.fixture
def slicing(monkeypatch: pytest.MonkeyPatch, slice_partitions: int) -> Slicing:
    return Slicing(monkeypatch, slice_partitions)


def _asked(ids: dict[str, bytes] | None, offset: int = 0) -> list[Any]:
    shape = m.FetchRequest
    asked = [
        shape.FetchTopic(
            topic=name if ids is None else "",
            topic_id=bytes(16) if ids is None else ids.get(name, b"\x01" * 16),
            partitions=[
                shape.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=300)
                for index in range(PARTITIONS + 1)
            ],
        )
        for name in [*TOPICS[:3], MISSING, *TOPICS[3:]]
    ]
    # Once more, behind others: only neighbours share an entry.
    again = shape.FetchPartition(partition=PARTITIONS + 1, fetch_offset=0, partition_max_bytes=300)
    return [*asked, asked[0].copy(partitions=[again])]


def _request(topics: list[Any], session: tuple[int, int] = (0, -1), **fields: Any) -> Any:
    return m.FetchRequest(
        max_wait_ms=fields.pop("wait_ms", 0),
        min_bytes=1,
        session_id=session[0],
        session_epoch=session[1],
        topics=topics,
        **{"max_bytes": 1 << 20, **fields},
    )


@pytest.mark.parametrize("version", [4, 5, 6, 7, 11, 12, 13, 15, 18])
@pytest.mark.parametrize("bytes_max", [1, 2000, 1 << 20])
def test_the_answer_is_the_one_that_is_made_at_once(
    client: WireClient, slicing: Slicing, version: int, bytes_max: int
) -> None:
    ids = {name: client.topic(name).topic_id for name in TOPICS} if version >= 13 else None
    for isolation in (0, 1):
        request = _request(_asked(ids), max_bytes=bytes_max, isolation_level=isolation)
        slicing.set(False)
        whole = client.call_frame(request, version)
        assert not slicing.answered
        slicing.set(True)
        sliced = client.call_frame(request, version)
        assert slicing.answered == 1
        assert sliced[4:] == whole[4:]
        slicing.answered = 0


@pytest.mark.parametrize("version", [12, 18])
def test_a_session_is_told_what_is_new(client: WireClient, slicing: Slicing, version: int) -> None:
    ids = {name: client.topic(name).topic_id for name in TOPICS} if version >= 13 else None
    topics = _asked(ids)[:2]
    told = []
    for is_on in (False, True):
        slicing.set(is_on)
        opened = client.call(_request(topics, (0, 0), max_bytes=1000), version)
        assert opened.session_id
        answers = [opened.responses]
        for epoch in (1, 2, 3):
            request = _request([], (opened.session_id, epoch), max_bytes=1000)
            answers.append(client.call(request, version).responses)
        told.append(answers)
        refused = client.call(_request([], (opened.session_id, 9)), version)
        assert refused.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert told[0] == told[1]
    assert slicing.answered >= 2, "what has come to rest is not looked at by the later ones"


def test_a_wait_in_slices_ends_with_the_first_record(
    client: WireClient, slicing: Slicing, slice_partitions: int
) -> None:
    slicing.set(True)
    name = f"waits-{slice_partitions}"
    client.create_topic(name, PARTITIONS)
    topic = m.FetchRequest.FetchTopic(
        topic=name,
        partitions=[
            m.FetchRequest.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=100)
            for index in range(PARTITIONS)
        ],
    )
    client.send(_request([topic], wait_ms=60_000), 12)
    host, port = client.socket.getpeername()
    with WireClient(f"{host}:{port}") as other:
        produce_values(other, name, 3, [b"late"])
    (answered,) = client.receive().responses
    found = [each.partition_index for each in answered.partitions if each.records]
    assert found == [3]


def test_an_unknown_isolation_level_is_refused(client: WireClient, slicing: Slicing) -> None:
    answers = []
    for is_on in (False, True):
        slicing.set(is_on)
        answers.append(client.call(_request(_asked(None), isolation_level=7), 12))
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("fault", "code", "partition_codes"),
    [
        (OSError(5, "the disk"), ErrorCode.NONE, {0, int(ErrorCode.KAFKA_STORAGE_ERROR)}),
        (RuntimeError("a fault"), ErrorCode.UNKNOWN_SERVER_ERROR, set()),
    ],
)
@pytest.mark.parametrize("is_on", [False, True])
def test_a_read_that_raises_is_answered(
    client: WireClient,
    slicing: Slicing,
    monkeypatch: pytest.MonkeyPatch,
    fault: Exception,
    code: ErrorCode,
    partition_codes: set[int],
    is_on: bool,
) -> None:
    def failing(*asked: object) -> object:
        raise fault

    slicing.set(is_on)
    request = _request(_asked(None)[:3], isolation_level=1)
    with monkeypatch.context() as patched:
        patched.setattr(lookups, "aborted_transactions", failing)
        answered = client.call(request, 12)
    codes = {part.error_code for topic in answered.responses for part in topic.partitions}
    assert answered.error_code == code
    assert codes - {int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)} == partition_codes
    assert client.call(request, 12).error_code == ErrorCode.NONE, "the connection goes on"


@pytest.mark.parametrize("slices", [1, 3])
def test_records_of_an_answer_are_not_copied(slices: int) -> None:
    """Those of a topic that goes on in the next slice neither."""
    response = m.FetchResponse()
    sliced = SlicedResponse(response, "responses", 12)
    topics = FetchedTopics(sliced)
    large = [bytes([at]) * sliced_response.JOINED_BYTES_MAX for at in range(6)]
    for at, records in enumerate(large):
        result = ReadResult(1, 1, 0, None, [records], len(records))
        topics.add("t", answer_of(at, result))
        if at % 2 and slices > 1:
            topics.end_slice()
    topics.end()
    parts = sliced.encode_parts(12)
    assert [any(part is records for part in parts) for records in large] == [True] * 6
    (topic,) = sliced.decoded().responses
    assert [bytes(each.records) for each in topic.partitions] == large


def test_a_slice_of_the_answer_ends_with_its_bytes_too(
    client: WireClient, slicing: Slicing, monkeypatch: pytest.MonkeyPatch
) -> None:
    slicing.set(True)
    counts = []
    end_slice = FetchedTopics.end_slice

    def counted(topics: FetchedTopics) -> None:
        counts.append(1)
        end_slice(topics)

    monkeypatch.setattr(FetchedTopics, "end_slice", counted)
    monkeypatch.setattr(fetch, "SLICE_PARTITIONS", 20)
    request = _request(_asked(None))
    client.call(request, 12)
    by_bytes = len(counts)
    counts.clear()
    monkeypatch.setattr(fetch, "SLICE_BYTES", NONE_LEFT)
    client.call(request, 12)
    assert 0 < len(counts) < by_bytes
