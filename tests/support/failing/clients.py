"""kafka-python, confluent-kafka and aiokafka as users see them: what they raise and call back.

An outcome is text: `-` for no error, the class of an error (its name in librdkafka), and what
happened in between, word by word.
"""

from __future__ import annotations

import asyncio
import importlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from kwire.testing.waiting import wait_until

LIMIT_S = 40.0
REQUEST_TIMEOUT_MS = 1500
HEARTBEAT_MS = 300
ASSIGNED, REVOKED, LOST = "assigned", "revoked", "lost"
Step = Callable[[], object]


def _nothing() -> None:
    return None


class Sending(NamedTuple):
    """`delivery_ms`: how long a record may take, retries and all; `between` happens behind the
    first record."""

    idempotent: bool = False
    client_id: str = "client"
    delivery_ms: int = 30_000
    between: Step = _nothing


class Client(Protocol):
    """One library; everything blocks."""

    name: str

    def send(self, bootstrap: str, topic: str, values: Sequence[bytes], how: Sending) -> str:
        """The error of the last record that failed."""

    def transaction(self, bootstrap: str, transactional_id: str, topic: str, between: Step) -> str:
        """One record, `between`, and the commit: its error."""

    def read(self, bootstrap: str, topic: str) -> str:
        """The first value of partition 0, without a group, or the error."""

    def member(self, bootstrap: str, topic: str, group: str, between: Step, commits: bool) -> str:
        """A record, `between`, a commit if asked for, and records until `b` has come."""


def _name(error: BaseException) -> str:
    return type(error).__name__


class Told:
    """What a member is told, in order; a rebalance that is told twice in a row counts once."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def say(self, word: str) -> None:
        self.words.append(word)
        for length in (1, 2):
            last = self.words[-length:]
            if last == self.words[-2 * length : -length] and set(last) <= {
                ASSIGNED,
                REVOKED,
                LOST,
            }:
                del self.words[-length:]

    def __str__(self) -> str:
        return " ".join(self.words)


def _kafka() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of how it reads its own files
        return importlib.import_module("kafka")


class KafkaPython:
    name = "kafka-python"

    def send(self, bootstrap: str, topic: str, values: Sequence[bytes], how: Sending) -> str:
        producer = _kafka().KafkaProducer(
            bootstrap_servers=bootstrap,
            client_id=how.client_id,
            enable_idempotence=how.idempotent,
            acks="all",
            retry_backoff_ms=100,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            delivery_timeout_ms=how.delivery_ms,
        )
        try:
            for at, value in enumerate(values):
                if at == 1:
                    how.between()
                producer.send(topic, value, partition=0).get(LIMIT_S)
        except Exception as error:
            return _name(error)
        finally:
            producer.close(timeout=1)
        return "-"

    def transaction(self, bootstrap: str, transactional_id: str, topic: str, between: Step) -> str:
        producer = _kafka().KafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=transactional_id
        )
        try:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(topic, b"a", partition=0).get(LIMIT_S)
            between()
            producer.commit_transaction()
        except Exception as error:
            return _name(error)
        finally:
            producer.close(timeout=1)
        return "-"

    def read(self, bootstrap: str, topic: str) -> str:
        kafka = _kafka()
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="earliest"
        )
        consumer.assign([kafka.TopicPartition(topic, 0)])
        try:
            return self._values(consumer, LIMIT_S)[0].decode()
        except Exception as error:
            return _name(error)
        finally:
            consumer.close()

    def _values(self, consumer: Any, limit_s: float) -> list[bytes]:
        return wait_until(
            lambda: [one.value for some in consumer.poll(100).values() for one in some],
            timeout_s=limit_s,
        )

    def member(self, bootstrap: str, topic: str, group: str, between: Step, commits: bool) -> str:
        kafka = _kafka()
        told = Told()

        class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc, name-defined]
            def on_partitions_assigned(self, assigned: Any) -> None:
                if assigned:
                    told.say(ASSIGNED)

            def on_partitions_revoked(self, revoked: Any) -> None:
                if revoked:
                    told.say(REVOKED)

            def on_partitions_lost(self, lost: Any) -> None:
                if lost:
                    told.say(LOST)

        consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=HEARTBEAT_MS,
            session_timeout_ms=10_000,
        )
        consumer.subscribe([topic], listener=Listener())
        try:
            for value in self._values(consumer, LIMIT_S):
                told.say(value.decode())
            between()
            if commits:
                try:
                    consumer.commit()
                    told.say("committed")
                except Exception as error:
                    told.say(_name(error))
            while told.words[-1] != "b":
                for value in self._values(consumer, LIMIT_S):
                    told.say(value.decode())
        except Exception as error:
            told.say(_name(error))
        finally:
            before = str(told)
            consumer.close()
        return before


class ConfluentKafka:
    name = "confluent-kafka"

    def send(self, bootstrap: str, topic: str, values: Sequence[bytes], how: Sending) -> str:
        import confluent_kafka

        failed: list[str] = []
        throttled: list[float] = []
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": how.client_id,
                "enable.idempotence": how.idempotent,
                "acks": "all",
                "linger.ms": 0,
                "retry.backoff.ms": 100,
                "socket.timeout.ms": REQUEST_TIMEOUT_MS,
                "request.timeout.ms": REQUEST_TIMEOUT_MS,
                "message.timeout.ms": how.delivery_ms,
                "throttle_cb": lambda event: throttled.append(event.throttle_time),
                "log_level": 0,
            }
        )
        for at, value in enumerate(values):
            if at == 1:
                how.between()
            producer.produce(
                topic,
                value,
                partition=0,
                on_delivery=lambda error, _: failed.append(error.name()) if error else None,
            )
            producer.flush(LIMIT_S)
        told = [failed[-1] if failed else "-", *(["throttled"] if any(throttled) else [])]
        return " ".join(told)

    def transaction(self, bootstrap: str, transactional_id: str, topic: str, between: Step) -> str:
        import confluent_kafka

        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "log_level": 0,
            }
        )
        try:
            producer.init_transactions(LIMIT_S)
            producer.begin_transaction()
            producer.produce(topic, b"a", partition=0)
            producer.flush(LIMIT_S)
            between()
            producer.commit_transaction(LIMIT_S)
        except confluent_kafka.KafkaException as error:
            told = error.args[0]
            return f"{told.name()}{' fatal' if told.fatal() else ''}"
        return "-"

    def _consumer(self, bootstrap: str, group: str) -> Any:
        import confluent_kafka

        return confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "session.timeout.ms": 10_000,
                "check.crcs": True,
                "log_level": 0,
            }
        )

    def read(self, bootstrap: str, topic: str) -> str:
        import confluent_kafka

        consumer = self._consumer(bootstrap, "reader")
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        try:
            return self._values(consumer, LIMIT_S)[0]
        finally:
            consumer.close()

    def _values(self, consumer: Any, limit_s: float) -> list[str]:
        return wait_until(
            lambda: [
                one.value().decode() if one.error() is None else one.error().name()
                for one in consumer.consume(10, 0.1)
            ],
            timeout_s=limit_s,
        )

    def member(self, bootstrap: str, topic: str, group: str, between: Step, commits: bool) -> str:
        import confluent_kafka

        told = Told()
        consumer = self._consumer(bootstrap, group)

        def say(word: str) -> Callable[[Any, list[Any]], None]:
            return lambda _, partitions: told.say(word) if partitions else None

        consumer.subscribe(
            [topic], on_assign=say(ASSIGNED), on_revoke=say(REVOKED), on_lost=say(LOST)
        )
        try:
            for value in self._values(consumer, LIMIT_S):
                told.say(value)
            between()
            if commits:
                try:
                    consumer.commit(asynchronous=False)
                    told.say("committed")
                except confluent_kafka.KafkaException as error:
                    told.say(error.args[0].name())
            while told.words[-1] != "b":
                for value in self._values(consumer, LIMIT_S):
                    told.say(value)
        finally:
            before = str(told)
            consumer.close()
        return before


class AioKafka:
    name = "aiokafka"

    def send(self, bootstrap: str, topic: str, values: Sequence[bytes], how: Sending) -> str:
        aiokafka = importlib.import_module("aiokafka")

        async def send() -> str:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                client_id=how.client_id,
                enable_idempotence=how.idempotent,
                acks="all",
                retry_backoff_ms=100,
                request_timeout_ms=REQUEST_TIMEOUT_MS,
            )
            await producer.start()
            try:
                async with asyncio.timeout(how.delivery_ms / 1000):
                    for at, value in enumerate(values):
                        if at == 1:
                            await asyncio.to_thread(how.between)
                        await producer.send_and_wait(topic, value, partition=0)
            except Exception as error:
                return _name(error)
            finally:
                stopping = asyncio.ensure_future(producer.stop())
                await asyncio.wait([stopping], timeout=3)
                stopping.cancel()
                await asyncio.wait([stopping])
            return "-"

        return asyncio.run(send())

    def transaction(self, bootstrap: str, transactional_id: str, topic: str, between: Step) -> str:
        aiokafka = importlib.import_module("aiokafka")

        async def run() -> str:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap, transactional_id=transactional_id
            )
            await producer.start()
            try:
                await producer.begin_transaction()
                await producer.send_and_wait(topic, b"a", partition=0)
                await asyncio.to_thread(between)
                await producer.commit_transaction()
            except Exception as error:
                return _name(error)
            finally:
                await producer.stop()
            return "-"

        return asyncio.run(run())

    def read(self, bootstrap: str, topic: str) -> str:
        aiokafka = importlib.import_module("aiokafka")

        async def read() -> str:
            consumer = aiokafka.AIOKafkaConsumer(
                bootstrap_servers=bootstrap, auto_offset_reset="earliest"
            )
            await consumer.start()
            try:
                consumer.assign([aiokafka.TopicPartition(topic, 0)])
                value: bytes = (await asyncio.wait_for(consumer.getone(), LIMIT_S)).value
                return value.decode()
            except Exception as error:
                return _name(error)
            finally:
                await consumer.stop()

        return asyncio.run(read())

    def member(self, bootstrap: str, topic: str, group: str, between: Step, commits: bool) -> str:
        aiokafka = importlib.import_module("aiokafka")
        told = Told()

        class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc, name-defined]
            async def on_partitions_assigned(self, assigned: Any) -> None:
                if assigned:
                    told.say(ASSIGNED)

            async def on_partitions_revoked(self, revoked: Any) -> None:
                if revoked:
                    told.say(REVOKED)

        async def run() -> str:
            consumer = aiokafka.AIOKafkaConsumer(
                bootstrap_servers=bootstrap,
                group_id=group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                heartbeat_interval_ms=HEARTBEAT_MS,
                session_timeout_ms=10_000,
            )
            consumer.subscribe([topic], listener=Listener())
            await consumer.start()
            try:
                told.say((await asyncio.wait_for(consumer.getone(), LIMIT_S)).value.decode())
                await asyncio.to_thread(between)
                if commits:
                    try:
                        await consumer.commit()
                        told.say("committed")
                    except Exception as error:
                        told.say(_name(error))
                while told.words[-1] != "b":
                    value = (await asyncio.wait_for(consumer.getone(), LIMIT_S)).value
                    told.say(value.decode())
            except Exception as error:
                told.say(_name(error))
            finally:
                before = str(told)
                await consumer.stop()
            return before

        return asyncio.run(run())


CLIENTS: tuple[Client, ...] = (KafkaPython(), ConfluentKafka(), AioKafka())
