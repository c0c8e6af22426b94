"""A node with very many partitions, written to while it is killed, loses its power or stops.

    python -m tests.sim.many_partitions SEED [PARTITIONS]

An idempotent producer writes a batch to each partition, many in a request, in several rounds; what
is not acknowledged goes out again. In each round but the last one the node ends at some moment:
killed, or without power (every batch is synced before it is acknowledged then), or in order; now
and then it is killed again while it starts. The checkers of whole clusters watch: what is committed
stays, in each partition, once and in order, whoever leads has it, and metadata is never lost.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable
from typing import Any

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.testing.simulation import Simulation
from kwire.testing.simulation.client import SimulatedClient, batch_of
from kwire.testing.simulation.nodes import BROKER_PORT, SimulatedNodes
from tests.sim.checkers import Checkers
from tests.sim.driving import end_all, run_until

NODE = 1
ROUNDS = 3
TOPIC_PARTITIONS = 500
REQUEST_PARTITIONS = 150
"""More than are appended in one turn of the loop."""
PRODUCER_ID = 7
START_STEPS_MAX = 400
LIMIT_S = 120.0
PAUSE_S = 0.1
RETRIABLE = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT,
)
KINDS = ("killed", "without power", "stopped")

Place = tuple[str, int]


class ManyPartitions:
    """One seed's history."""

    def __init__(self, seed: int, partitions: int) -> None:
        self.simulation = Simulation(seed)
        self.checkers = Checkers()
        self.draw = self.simulation.random.below
        self.kind = KINDS[seed % len(KINDS)]
        self.ends = 0
        self.ends_in_a_start = 0
        is_synced = {"log.flush.interval.messages": "1"} if self.kind == "without power" else {}
        # Records are of 1970.
        settings = {"broker.session.timeout.ms": "3000", "log.retention.ms": "-1", **is_synced}
        self.nodes = SimulatedNodes(self.simulation, (NODE,), settings, self.checkers.attach)
        self.checkers.life_of = lambda node_id: self.nodes.lives[node_id]
        self.checkers.now = lambda: self.simulation.now
        self.checkers.running_node = self.nodes.nodes.get
        self.checkers.honest_node = self.nodes.nodes.get
        self.places: list[Place] = [
            (f"many-{number // TOPIC_PARTITIONS}", number % TOPIC_PARTITIONS)
            for number in range(partitions)
        ]
        self.host = self.simulation.host("client")
        self.acknowledged: dict[Place, int] = dict.fromkeys(self.places, 0)  # how many batches

    def run(self) -> None:
        """Raises Violation for a broken promise."""
        try:
            with self.checkers.watch():
                self._run()
        finally:
            end_all(self.nodes)

    def _run(self) -> None:
        nodes = self.nodes
        nodes.format()
        nodes.start(NODE)
        self._until(nodes.is_in_sync, "the node does not start")
        self.simulation.run(self.host, self._create(), limit_s=LIMIT_S)
        for number in range(ROUNDS):
            writing = self.host.loop.create_task(self._write(number))
            if number < ROUNDS - 1:
                self._end(writing)
            self._until(writing.done, "not everything is acknowledged")
            writing.result()
        self._until(nodes.is_in_sync, "not everything is led at the end")
        self.checkers.finish(nodes.nodes)

    def _until(self, condition: Callable[[], bool], otherwise: str) -> None:
        run_until(
            self.simulation, condition, LIMIT_S, lambda: otherwise, lambda: self.checkers.first
        )

    # -- the node

    def _end(self, writing: asyncio.Task[None]) -> None:
        """End the node while it is written to, and start it again."""
        part = 1 + self.draw(len(self.places))
        before = sum(self.acknowledged.values())
        self._until(
            lambda: writing.done() or sum(self.acknowledged.values()) - before >= part,
            "nothing is acknowledged",
        )
        for _ in range(self.draw(50)):
            self.simulation.step()
        if self.kind == "stopped":
            self.simulation.run(self.simulation.host("world"), self.nodes.stop(NODE), LIMIT_S)
        else:
            self._kill()
        self.simulation.run_for(0.5)
        self.nodes.start(NODE)
        if self.draw(2):
            for _ in range(self.draw(START_STEPS_MAX)):
                self.simulation.step()
            self.ends_in_a_start += 1
            self._kill()
            self.simulation.run_for(0.5)
            self.nodes.start(NODE)

    def _kill(self) -> None:
        self.ends += 1
        self.nodes.kill(NODE, power_loss=self.kind == "without power")

    # -- its client

    async def _create(self) -> None:
        shape = m.CreateTopicsRequest
        counts: dict[str, int] = {}
        for name, _ in self.places:
            counts[name] = counts.get(name, 0) + 1
        for name, count in counts.items():
            topic = shape.CreatableTopic(name=name, num_partitions=count, replication_factor=1)
            answer = await self._ask(shape(topics=[topic], timeout_ms=60_000), 5)
            assert answer is not None
            assert answer.topics[0].error_code == 0, answer

    async def _ask(self, request: Any, version: int) -> Any:
        """The answer, None when none comes."""
        client = None
        try:
            async with asyncio.timeout(10):
                client = await SimulatedClient.connect(f"n{NODE}", BROKER_PORT)
                return await client.ask(request, version)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            return None
        finally:
            if client is not None:
                client.close()

    async def _write(self, number: int) -> None:
        """One batch more in each partition, until all are acknowledged."""
        at = self.draw(len(self.places))
        order = self.places[at:] + self.places[:at]
        for first in range(0, len(order), REQUEST_PARTITIONS):
            left = order[first : first + REQUEST_PARTITIONS]
            while left:
                answer = await self._ask(self._request(left, number), 9)
                if answer is not None:
                    left = self._left(answer, number)
                if left:
                    await asyncio.sleep(PAUSE_S)

    def _request(self, places: list[Place], number: int) -> m.ProduceRequest:
        shape = m.ProduceRequest
        by_topic: dict[str, list[Any]] = {}
        for topic, index in places:
            records = batch_of(
                [self._value(topic, index, number)],
                producer_id=PRODUCER_ID,
                producer_epoch=0,
                base_sequence=number,
            )
            data = shape.PartitionProduceData(index=index, records=records)
            by_topic.setdefault(topic, []).append(data)
        topics = [
            shape.TopicProduceData(name=name, partition_data=data)
            for name, data in by_topic.items()
        ]
        return shape(acks=-1, timeout_ms=30_000, topic_data=topics)

    def _value(self, topic: str, index: int, number: int) -> bytes:
        return f"{topic}-{index}:{number}:".encode()

    def _left(self, answer: Any, number: int) -> list[Place]:
        """What is to be sent again."""
        left: list[Place] = []
        for topic in answer.responses:
            for found in topic.partition_responses:
                place = topic.name, found.index
                if found.error_code == 0:
                    self._acknowledged(place, found.base_offset, number)
                elif found.error_code in RETRIABLE:
                    left.append(place)
                else:
                    code = ErrorCode(found.error_code).name
                    self.checkers.fail(f"{topic.name}-{found.index} refuses a batch with {code}")
        return left

    def _acknowledged(self, place: Place, offset: int, number: int) -> None:
        self.acknowledged[place] += 1
        log = self.checkers.by_name.get(place)
        found = None if log is None else log.values.get(offset)
        value = self._value(*place, number)
        if found != value:
            self.checkers.fail(
                f"{value!r} was acknowledged at {offset} of {place[0]}-{place[1]}, committed there "
                f"is {found!r}"
            )


def main() -> None:
    logging.disable(logging.CRITICAL)
    history = ManyPartitions(int(sys.argv[1]), int((sys.argv[2:] or ["10000"])[0]))
    history.run()
    simulation = history.simulation
    print(
        f"{simulation.fingerprint()} {history.kind}, {history.ends} ends, "
        f"{history.ends_in_a_start} of them in a start, {history.checkers.checks} checks, "
        f"{simulation.events} events, {time.process_time():.1f} s"
    )


if __name__ == "__main__":
    main()
