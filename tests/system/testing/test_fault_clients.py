"""What unmodified clients do about each fault: what they raise, and what the topic holds then.

A row is a fault, and by client the error that its user sees (none: `-`) with the records that one
send of `a` leaves behind, or the values that a consumer reads.
"""

from __future__ import annotations

import asyncio
import itertools
import warnings
from collections.abc import Callable, Iterator

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer

from kwire.faults.kinds import Given
from kwire.testing import Broker, Topic, wait_until

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas so
    from kafka import KafkaConsumer, KafkaProducer

pytestmark = [
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:open_text is deprecated:DeprecationWarning"),
]
TIMEOUT_S = 20.0
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as started:
        yield started


# -- one send, one error or none


def kafka_python_sends(bootstrap: str, topic: str, idempotent: bool) -> str:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        enable_idempotence=idempotent,
        retry_backoff_ms=20,
        request_timeout_ms=2000,
        delivery_timeout_ms=15_000,
    )
    try:
        producer.send(topic, b"a").get(TIMEOUT_S)
    except Exception as error:
        return type(error).__name__
    finally:
        producer.close(timeout=1)
    return "-"


def confluent_sends(bootstrap: str, topic: str, idempotent: bool) -> str:
    told: list[str] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": idempotent,
            "retry.backoff.ms": 20,
            "socket.timeout.ms": 2000,
            "log_level": 0,
        }
    )
    producer.produce(
        topic, b"a", on_delivery=lambda error, _: told.append(error.name() if error else "-")
    )
    producer.flush(TIMEOUT_S)
    return told[0]


def aiokafka_sends(bootstrap: str, topic: str, idempotent: bool) -> str:
    async def send() -> str:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            enable_idempotence=idempotent,
            retry_backoff_ms=20,
            request_timeout_ms=2000,
        )
        await producer.start()
        try:
            await asyncio.wait_for(producer.send_and_wait(topic, b"a"), TIMEOUT_S)
        except Exception as error:
            return type(error).__name__
        finally:
            await producer.stop()
        return "-"

    return asyncio.run(send())


SENDERS: dict[str, Callable[[str, str, bool], str]] = {
    "kafka-python": kafka_python_sends,
    "confluent-kafka": confluent_sends,
    "aiokafka": aiokafka_sends,
}

PRODUCE: dict[str, Given] = {"api": "Produce", "times": 1}
SENDING: list[tuple[str, dict[str, Given], bool, str, str, str]] = [
    # fault, options, idempotent, kafka-python, confluent-kafka, aiokafka
    ("error", {"code": "NOT_ENOUGH_REPLICAS"}, True, "- 1", "- 1", "- 1"),
    (
        "error",
        {"code": "MESSAGE_TOO_LARGE"},
        False,
        "MessageSizeTooLargeError 0",
        "MSG_SIZE_TOO_LARGE 0",
        "MessageSizeTooLargeError 0",
    ),
    (
        "error",
        {"code": "TOPIC_AUTHORIZATION_FAILED"},
        False,
        "TopicAuthorizationFailedError 0",
        "TOPIC_AUTHORIZATION_FAILED 0",
        "TopicAuthorizationFailedError 0",
    ),
    ("error", {"code": "REQUEST_TIMED_OUT", "after": True}, False, "- 2", "- 2", "- 2"),
    ("error", {"code": "REQUEST_TIMED_OUT", "after": True}, True, "- 1", "- 1", "- 1"),
    ("leader-moved", {}, True, "- 1", "- 1", "- 1"),
    ("delay", {"ms": 50}, True, "- 1", "- 1", "- 1"),
    ("delay", {"ms": 50, "after": True}, True, "- 1", "- 1", "- 1"),
    ("drop-request", {}, True, "- 1", "- 1", "- 1"),
    ("drop-request", {"how": "silence"}, True, "- 1", "- 1", "- 1"),
    ("drop-reply", {}, False, "- 2", "- 2", "- 2"),
    ("drop-reply", {}, True, "- 1", "- 1", "- 1"),
    ("cut-reply", {}, False, "- 2", "- 2", "- 2"),
    ("cut-reply", {}, True, "- 1", "- 1", "- 1"),
    ("cut-reply", {"at": 2}, True, "- 1", "- 1", "- 1"),
    ("throttle", {"ms": 50}, True, "- 1", "- 1", "- 1"),
]
SENDS = [
    (kind, options, idempotent, client, row[at])
    for kind, options, idempotent, *row in SENDING
    for at, client in enumerate(SENDERS)
]


@pytest.mark.parametrize(("kind", "options", "idempotent", "client", "outcome"), SENDS)
def test_a_send(
    broker: Broker,
    kind: str,
    options: dict[str, Given],
    idempotent: bool,
    client: str,
    outcome: str,
) -> None:
    topic = broker.topic(f"sends-{next(_numbers)}").create()
    with broker.faults.add(kind, topic=topic.name, **PRODUCE, **options) as fault:  # type: ignore[arg-type]
        error = SENDERS[client](broker.bootstrap, topic.name, idempotent)
        assert fault.hits == 1
    assert f"{error} {len(topic.records())}" == outcome


# -- one consumer that reads to the end


def kafka_python_reads(bootstrap: str, topic: str) -> list[bytes]:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=f"{topic}-group",
        auto_offset_reset="earliest",
        heartbeat_interval_ms=100,
        retry_backoff_ms=20,
        session_timeout_ms=6000,
    )

    def polled() -> list[bytes]:
        try:
            return [one.value for some in consumer.poll(100).values() for one in some]
        except Exception as error:
            return [type(error).__name__.encode()]

    try:
        return wait_until(polled, timeout_s=TIMEOUT_S)
    finally:
        consumer.close(autocommit=False)


def confluent_reads(bootstrap: str, topic: str) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{topic}-group",
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 100,
            "retry.backoff.ms": 20,
            "socket.timeout.ms": 2000,
            "check.crcs": True,
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])

    def polled() -> list[bytes]:
        return [
            one.value() if one.error() is None else one.error().name().encode()
            for one in consumer.consume(10, 0.1)
            if one.error() is None or one.error().name() != "UNKNOWN_TOPIC_OR_PART"
        ]

    try:
        return wait_until(polled, timeout_s=TIMEOUT_S)
    except KafkaException as error:
        return [error.args[0].name().encode()]
    finally:
        consumer.close()


def aiokafka_reads(bootstrap: str, topic: str) -> list[bytes]:
    async def read() -> list[bytes]:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=f"{topic}-group",
            auto_offset_reset="earliest",
            heartbeat_interval_ms=100,
            retry_backoff_ms=20,
            request_timeout_ms=2000,
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            return [(await asyncio.wait_for(consumer.getone(), TIMEOUT_S)).value]
        except Exception as error:
            return [type(error).__name__.encode()]
        finally:
            await consumer.stop()

    return asyncio.run(read())


READERS: dict[str, Callable[[str, str], list[bytes]]] = {
    "kafka-python": kafka_python_reads,
    "confluent-kafka": confluent_reads,
    "aiokafka": aiokafka_reads,
}
READING: list[tuple[str, dict[str, Given], str, str, str]] = [
    # fault, options, kafka-python, confluent-kafka, aiokafka
    ("error", {"api": "Fetch", "code": "NOT_LEADER_OR_FOLLOWER"}, "a", "a", "a"),
    ("error", {"api": "Fetch", "code": "FETCH_SESSION_ID_NOT_FOUND"}, "a", "a", "a"),
    ("error", {"api": "Metadata", "code": "LEADER_NOT_AVAILABLE"}, "a", "a", "a"),
    ("error", {"api": "FindCoordinator", "code": "COORDINATOR_NOT_AVAILABLE"}, "a", "a", "a"),
    ("error", {"api": "JoinGroup", "code": "COORDINATOR_LOAD_IN_PROGRESS"}, "a", "a", "a"),
    ("error", {"api": "SyncGroup", "code": "REBALANCE_IN_PROGRESS"}, "a", "a", "a"),
    ("coordinator-loading", {"api": "OffsetFetch"}, "a", "a", "a"),
    ("coordinator-moved", {"api": "OffsetFetch"}, "a", "NOT_COORDINATOR", "a"),
    ("corrupt-records", {}, "CorruptRecordError", "_BAD_MSG", "CorruptRecordException"),
    ("drop-reply", {"api": "Fetch"}, "a", "a", "a"),
    ("drop-request", {"api": "JoinGroup"}, "a", "a", "a"),
    ("cut-reply", {"api": "Fetch"}, "a", "a", "a"),
    ("throttle", {"api": "Fetch", "ms": 50}, "a", "a", "a"),
]
READS = [
    (kind, options, client, row[at])
    for kind, options, *row in READING
    for at, client in enumerate(READERS)
]


@pytest.mark.parametrize(("kind", "options", "client", "outcome"), READS)
def test_a_read(
    broker: Broker, kind: str, options: dict[str, Given], client: str, outcome: str
) -> None:
    topic: Topic = broker.topic(f"reads-{next(_numbers)}").create()
    topic.send("a")
    with broker.faults.add(kind, times=1, **options) as fault:  # type: ignore[arg-type]
        found = READERS[client](broker.bootstrap, topic.name)
        assert fault.hits == 1
    assert b" ".join(found).decode() == outcome
