"""Edges of Fetch and Produce: what Apache Kafka 4.4 answered, which kwire once answered otherwise.

A topic that goes, or is made anew, within a fetch session; negative limits over several partitions;
batches that are written anew with another codec; a verification that a later epoch takes over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Codec, Record, build_batch
from kwire.testing.cluster import Broker, wait_for
from tests.support.wire import WireClient, batch_of, produce_request, produce_values

OK = ErrorCode.NONE
GONE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
OTHER = ErrorCode.INCONSISTENT_TOPIC_ID
NO_ID = ErrorCode.UNKNOWN_TOPIC_ID
FAILED = ErrorCode.UNKNOWN_SERVER_ERROR
FENCED = ErrorCode.UNKNOWN_LEADER_EPOCH
OUT_OF_RANGE = ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap


@pytest.fixture
def client(bootstrap: str) -> Iterator[WireClient]:
    with WireClient(bootstrap) as client:
        yield client


# -- a topic that goes within a session


class Session:
    """A fetch session by topic ids; answers as [(letter of the topic, index, error, was read)]."""

    def __init__(self, client: WireClient) -> None:
        self.client = client
        self.letters: dict[bytes, str] = {}
        self.session_id, self.epoch = 0, 0

    def name(self, letter: str, topic: str) -> None:
        self.letters[self.client.topic_id(topic)] = letter

    def fetch(
        self, asked: dict[str, list[Any]] | None = None, forgotten: str = ""
    ) -> list[tuple[str, int, int, bool]]:
        ids = {letter: topic_id for topic_id, letter in self.letters.items()}
        shape = m.FetchRequest
        request = shape(
            max_wait_ms=0,
            min_bytes=1,
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=[
                shape.FetchTopic(topic_id=ids[letter], partitions=partitions)
                for letter, partitions in (asked or {}).items()
            ],
            forgotten_topics_data=[
                shape.ForgottenTopic(topic_id=ids[letter], partitions=[0, 1])
                for letter in forgotten
            ],
        )
        response = self.client.call(request, 13)
        assert response.error_code == 0
        self.session_id = response.session_id
        self.epoch += 1
        return [
            (self.letters[bytes(topic.topic_id)], p.partition_index, p.error_code,
             p.aborted_transactions is None)
            for topic in response.responses
            for p in topic.partitions
        ]  # fmt: skip


def partition(index: int, offset: int = 0, bytes_max: int = 10_000, epoch: int = -1) -> Any:
    return m.FetchRequest.FetchPartition(
        partition=index,
        fetch_offset=offset,
        partition_max_bytes=bytes_max,
        current_leader_epoch=epoch,
    )


def delete(client: WireClient, topic: str) -> None:
    answer = client.call(m.DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000), 5)
    assert answer.responses[0].error_code == 0
    while client.metadata([topic]).topics[0].error_code != GONE:
        pass


def test_a_topic_that_goes_within_a_session(client: WireClient) -> None:
    session = Session(client)
    for letter in "ade":
        client.create_topic(f"session-{letter}", 2)
        session.name(letter, f"session-{letter}")
        produce_values(client, f"session-{letter}", 0, [b"v"])
    session.letters[bytes([9] * 16)] = "none"
    asked = {
        "a": [partition(0, 1)],
        "d": [partition(0, 1), partition(1)],
        "e": [partition(0, 1, epoch=0), partition(1, epoch=7)],
        "none": [partition(0)],
    }
    first = session.fetch(asked)
    assert first[-2:] == [("e", 1, FENCED, True), ("none", 0, NO_ID, False)]
    delete(client, "session-d")
    delete(client, "session-e")
    gone = [("d", 0, GONE, False), ("d", 1, GONE, False)]
    assert session.fetch() == [
        ("none", 0, NO_ID, False), *gone, ("e", 0, GONE, False), ("e", 1, GONE, False)
    ]  # fmt: skip
    client.create_topic("session-e", 1)
    session.name("e2", "session-e")
    again = [
        ("e", 0, OTHER, True), ("none", 0, NO_ID, False), *gone, ("e", 1, GONE, False)
    ]  # fmt: skip
    assert session.fetch() == again
    assert session.fetch({"e": [partition(0)]}) == again
    found = session.fetch({"e2": [partition(0)]})
    assert found == [("e", 0, OTHER, True), ("e2", 0, OK, True), *again[1:]]
    assert session.fetch(forgotten="de") == [("none", 0, NO_ID, False)]


def test_a_session_that_begins_with_an_id_that_is_gone(client: WireClient) -> None:
    """What it was called nobody knows."""
    session = Session(client)
    client.create_topic("before")
    session.name("old", "before")
    delete(client, "before")
    client.create_topic("before")
    for _ in range(2):
        asked = None if session.epoch else {"old": [partition(0)]}
        assert session.fetch(asked) == [("old", 0, NO_ID, False)]


def test_an_inconsistent_topic_ends_the_wait(client: WireClient) -> None:
    session = Session(client)
    for letter in "xy":
        client.create_topic(f"wait-{letter}")
        session.name(letter, f"wait-{letter}")
    session.fetch({"x": [partition(0)], "y": [partition(0)]})
    delete(client, "wait-y")
    client.create_topic("wait-y")
    request = m.FetchRequest(
        max_wait_ms=60_000, min_bytes=1, session_id=session.session_id, session_epoch=session.epoch
    )
    (topic,) = client.call(request, 13).responses  # within the client's 20 s
    assert topic.partitions[0].error_code == OTHER


# -- negative limits

LIMITS: list[tuple[int, list[tuple[int, int, int]], list[tuple[int, bool]]]] = [
    # max_bytes, (index, offset, partition_max_bytes) -> (error, whether there are records)
    (-1, [(0, 0, 9999), (1, 0, 9999), (2, 0, 9999)], [(FAILED, False), (OK, True), (OK, False)]),
    (-5, [(0, 0, 0), (1, 0, 0), (2, 0, 0)], [(FAILED, False), (OK, True), (OK, False)]),
    (-1, [(0, 1, 9999), (1, 0, 9999), (2, 0, 9999)], [(OK, False), (OK, True), (OK, False)]),
    (-1, [(0, 0, 9999), (1, 0, -1), (2, 0, 9999)], [(FAILED, False), (FAILED, False), (OK, True)]),
    (-1, [(0, 77, 9999), (1, 0, 9999)], [(OUT_OF_RANGE, False), (OK, True)]),
    (-1, [(0, 0, -1), (1, 0, -1)], [(FAILED, False), (FAILED, False)]),
    (0, [(0, 0, 9999), (1, 0, -1), (2, 0, 9999)], [(OK, True), (FAILED, False), (OK, False)]),
    (1, [(0, 0, 9999), (1, 0, 9999)], [(OK, True), (OK, False)]),
]


@pytest.mark.parametrize("version", [4, 12])
def test_a_negative_limit_is_one_of_the_first_partition(client: WireClient, version: int) -> None:
    topic = f"limits-{version}"
    client.create_topic(topic, 3)
    for index in range(3):
        produce_values(client, topic, index, [b"v" * 50])
    for bytes_max, asked, expected in LIMITS:
        partitions = [partition(*one) for one in asked]
        request = m.FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=bytes_max,
            topics=[m.FetchRequest.FetchTopic(topic=topic, partitions=partitions)],
        )
        (found,) = client.call(request, version).responses
        answers = [(p.error_code, bool(p.records)) for p in found.partitions]
        assert answers == expected, (bytes_max, asked)


# -- batches that are written anew

WRITTEN_ANEW = [
    # producer id, epoch, sequence, transactional, whether Kafka can write that
    (5, -1, 0, False, False),
    (5, -1, 3, False, False),
    (5, 0, 3, False, True),
    (-2, -1, -1, False, False),
    (-2, 0, -1, False, False),
    (-2, -1, 0, False, False),
    (-2, 0, 0, False, True),
    (-2, 0, 0, True, True),
    (-1, -5, -5, False, True),
    (-1, 5, 5, False, True),
    (-1, -1, -1, True, False),
    (-1, 5, 5, True, False),
]
CODECS = [("gzip", Codec.NONE), ("gzip", Codec.ZSTD), ("uncompressed", Codec.GZIP)]


@pytest.mark.parametrize("row", WRITTEN_ANEW, ids=str)
def test_a_batch_that_cannot_be_written_anew(client: WireClient, row: Any) -> None:
    """Kafka fails with UNKNOWN_SERVER_ERROR, a batch that keeps its codec passes."""
    producer_id, epoch, sequence, transactional, can_be = row
    name = "-".join(str(x) for x in row).lower()
    cases = [*CODECS, ("producer", Codec.NONE), ("gzip", Codec.GZIP)]
    for number, (compression, codec) in enumerate(cases):
        client.create_topic(f"anew{name}-{number}", 1, {"compression.type": compression})
        batch = build_batch(
            [Record(0, 1_700_000_000_000, None, b"v", [])],
            codec=codec,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        request = produce_request(f"anew{name}-{number}", {0: bytes(batch)})
        request.transactional_id = "any" if transactional else None
        answer = client.call(request, 9).responses[0].partition_responses[0]
        kept = number >= len(CODECS)
        assert answer.error_code == (OK if can_be or kept else ErrorCode.INVALID_RECORD), number


# -- verification


def produced(client: WireClient, owner: tuple[str, int, int], sequence: int, version: int) -> int:
    transactional_id, producer_id, epoch = owner
    batch = batch_of(
        [b"v"],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=True,
    )
    request = produce_request(f"{transactional_id}-a", {0: batch})
    request.transactional_id = transactional_id

    def answered() -> list[int]:
        answer = client.call(request, version).responses[0].partition_responses[0]
        passing = (ErrorCode.NOT_ENOUGH_REPLICAS, 51, 15, 16)
        return [] if answer.error_code in passing else [int(answer.error_code)]

    return wait_for(answered, "an answer that lasts")[0]


@pytest.mark.parametrize(("first_version", "refusal"), [(9, 48), (11, 120)])
@pytest.mark.parametrize("sequences", [(0, 1), (2, 3)])
def test_a_later_epoch_takes_a_verification_over(
    client: WireClient, first_version: int, refusal: int, sequences: tuple[int, int]
) -> None:
    """It was asked for by an older client and refused: the partition was not in the transaction."""
    transactional_id = f"verified-{first_version}-{sequences[0]}"
    client.create_topic(f"{transactional_id}-a")
    client.create_topic(f"{transactional_id}-b")
    client.call(m.FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id]), 4)
    init = m.InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=60_000,
        producer_id=-1, producer_epoch=-1,
    )  # fmt: skip

    def initialised() -> Any:
        answer = client.call(init, 4)
        return answer if answer.error_code == 0 else None

    made = wait_for(initialised, "a producer id")
    owner = (transactional_id, made.producer_id, made.producer_epoch)
    add = m.AddPartitionsToTxnRequest
    named = add.AddPartitionsToTxnTopic(name=f"{transactional_id}-b", partitions=[0])
    request = add(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=made.producer_id,
        v3_and_below_producer_epoch=made.producer_epoch,
        v3_and_below_topics=[named],
    )
    client.call(request, 3)
    assert produced(client, owner, -1, first_version) == refusal
    ended = client.call(
        m.EndTxnRequest(
            transactional_id=transactional_id, producer_id=made.producer_id,
            producer_epoch=made.producer_epoch, committed=True,
        ),
        5,
    )  # fmt: skip
    assert ended.error_code == 0
    assert ended.producer_epoch == made.producer_epoch + 1
    later = (transactional_id, ended.producer_id, ended.producer_epoch)
    assert [produced(client, later, sequence, 12) for sequence in sequences] == [0, 0]
