"""Python's Kafka clients log in, by each mechanism that they have, and go on when sessions end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire.testing.cluster import wait_for
from tests.support.wire import WireClient
from tests.system.test_sasl import PASSWORD, SCRAM, SaslBroker, add_scram_user

MECHANISMS = ("PLAIN", *SCRAM)
VALUES = [b"one", b"two", b"three"]
SESSION_MS = 2_000
LIMIT_S = 60.0


@pytest.fixture(scope="module")
def broker() -> Iterator[SaslBroker]:
    broker = SaslBroker()
    broker.options["connections.max.reauth.ms"] = SESSION_MS
    with broker as running:
        with WireClient(running.bootstrap) as client:
            add_scram_user(client, "alice", PASSWORD)
        yield running


def kafka_python(bootstrap: str, mechanism: str, topic: str) -> list[bytes]:
    kafka = pytest.importorskip("kafka")
    login = {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": PASSWORD,
    }
    producer = kafka.KafkaProducer(**login)
    for value in VALUES:
        producer.send(topic, value).get(LIMIT_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, auto_offset_reset="earliest", consumer_timeout_ms=int(LIMIT_S * 1000), **login
    )
    found = [next(consumer).value for _ in VALUES]
    consumer.close()
    return found


def with_aiokafka(bootstrap: str, mechanism: str, topic: str) -> list[bytes]:
    aiokafka = pytest.importorskip("aiokafka")
    login = {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": PASSWORD,
    }

    async def talk() -> list[bytes]:
        async with aiokafka.AIOKafkaProducer(**login) as producer:
            for value in VALUES:
                await producer.send_and_wait(topic, value)
        async with aiokafka.AIOKafkaConsumer(
            topic, auto_offset_reset="earliest", **login
        ) as consumer:
            return [(await consumer.getone()).value for _ in VALUES]

    return asyncio.run(asyncio.wait_for(talk(), LIMIT_S))


def confluent(bootstrap: str, mechanism: str, topic: str) -> list[bytes]:
    client = pytest.importorskip("confluent_kafka")
    login = confluent_login(bootstrap, mechanism)
    producer = client.Producer(login)
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(LIMIT_S) == 0
    settings = {**login, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = client.Consumer(settings)
    consumer.subscribe([topic])
    found: list[bytes] = []
    end_s = time.monotonic() + LIMIT_S
    while len(found) < len(VALUES) and time.monotonic() < end_s:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            found.append(message.value())
    consumer.close()
    return found


def confluent_login(bootstrap: str, mechanism: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", [kafka_python, with_aiokafka, confluent])
def test_records_go_in_and_come_out(
    broker: SaslBroker, client: Callable[[str, str, str], list[bytes]], mechanism: str
) -> None:
    topic = f"{client.__name__}-{mechanism}"
    assert client(broker.sasl_bootstrap, mechanism, topic) == VALUES


def test_a_client_that_logs_in_anew_goes_on(broker: SaslBroker) -> None:
    """librdkafka renews its session in time: no connection is lost through two of them."""
    client = pytest.importorskip("confluent_kafka")
    errors: list[str] = []
    settings = confluent_login(broker.sasl_bootstrap, SCRAM[0])
    producer = client.Producer({**settings, "error_cb": lambda error: errors.append(str(error))})

    def goes_on() -> bool:
        errors.clear()
        end_s = time.monotonic() + 2.5 * SESSION_MS / 1000
        while time.monotonic() < end_s:
            producer.produce("long", b"x")
            assert producer.flush(LIMIT_S) == 0
            time.sleep(0.02)
        return not errors

    # On a machine that stands still for a moment a session ends before it is renewed.
    wait_for(goes_on, "sessions are renewed in time", LIMIT_S)


def test_a_wrong_password_is_an_error_of_authentication(broker: SaslBroker) -> None:
    client = pytest.importorskip("confluent_kafka")
    for mechanism in MECHANISMS:
        errors: list[Any] = []
        settings = {**confluent_login(broker.sasl_bootstrap, mechanism), "sasl.password": "no"}
        producer = client.Producer({**settings, "error_cb": errors.append})

        def is_told(producer: Any = producer, errors: list[Any] = errors) -> bool:
            producer.poll(0.2)
            codes = [error.code() for error in errors]
            return client.KafkaError._AUTHENTICATION in codes

        wait_for(is_told, f"{mechanism} is refused")
