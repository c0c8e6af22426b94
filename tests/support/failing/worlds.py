"""Where things fail: at Apache Kafka for real, at kwire by faults on command."""

from __future__ import annotations

import contextlib
import os
import pathlib
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.testing import Broker, Topic
from kwire.testing.blocking import BlockingClient
from kwire.testing.cluster import free_adjacent_ports
from kwire.testing.waiting import wait_until
from tests.support.failing.clients import REQUEST_TIMEOUT_MS
from tests.support.failing.relay import HALF_A_REPLY, REPLY, REQUEST, Relay
from tests.support.kafka import running_kafka
from tests.support.wire import WireClient

PRODUCE = 0
LATE_MS = 2 * REQUEST_TIMEOUT_MS
THROTTLE_MS = 500
BYTES_PER_S = 200.0
"""With windows of eleven seconds a request of 2,200 bytes is over it by 200 ms or more."""
BIG = b"x" * 2500
CRC_AT = 17
FILLING = b"x" * 100_000
FILLED = 8
FULL_AT_BYTES = 600_000


class World(Protocol):
    """One broker. What is lost, late or full is so inside of the block."""

    bootstrap: str

    def topic(self, name: str) -> Topic: ...

    def over_quota(self, client_id: str) -> AbstractContextManager[object]: ...

    def lose(self, what: str, topic: str) -> AbstractContextManager[object]: ...

    def late(self, topic: str) -> AbstractContextManager[object]: ...

    def full(self, topic: str) -> AbstractContextManager[object]: ...

    def rebalance(self, group: str) -> None: ...

    def remove_members(self, group: str) -> None: ...

    def fence(self, transactional_id: str) -> None: ...

    def corrupt(self, topic: str) -> None: ...


def state_of(bootstrap: str, group: str) -> str:
    """Of a classic group."""
    with WireClient(bootstrap) as client:
        found = client.call(m.DescribeGroupsRequest(groups=[group]), 5).groups[0]
    return str(found.group_state)


class Commanded:
    """kwire, whose faults are asked for."""

    FAULTS = {REQUEST: "drop-request", REPLY: "drop-reply", HALF_A_REPLY: "cut-reply"}

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.bootstrap = broker.bootstrap

    def topic(self, name: str) -> Topic:
        return self._broker.topic(name)

    def over_quota(self, client_id: str) -> AbstractContextManager[object]:
        return self._broker.faults.add(
            "throttle", api="Produce", client_id=client_id, ms=THROTTLE_MS
        )

    def lose(self, what: str, topic: str) -> AbstractContextManager[object]:
        return self._broker.faults.add(self.FAULTS[what], api="Produce", topic=topic, times=1)

    def late(self, topic: str) -> AbstractContextManager[object]:
        return self._broker.faults.add(
            "delay", api="Produce", topic=topic, times=1, ms=LATE_MS, after=True
        )

    def full(self, topic: str) -> AbstractContextManager[object]:
        return self._broker.faults.add("disk-full")

    def rebalance(self, group: str) -> None:
        self._broker.faults.add("rebalance", group=group)

    def remove_members(self, group: str) -> None:
        self._broker.faults.add("fence-member", group=group)

    def fence(self, transactional_id: str) -> None:
        self._broker.faults.add("fence-producer", transactional_id=transactional_id)

    def corrupt(self, topic: str) -> None:
        self._broker.faults.add("corrupt-records", topic=topic)


class RealKafka:
    """Apache Kafka behind a relay, in `directory`; its disks are four."""

    def __init__(self, bootstrap: str, directory: pathlib.Path, relay: Relay) -> None:
        self.bootstrap = bootstrap
        self._node = directory / "node-1"
        self._relay = relay
        self._client = BlockingClient(lambda: bootstrap)

    @property
    def _pid(self) -> int:
        return int((self._node / "pid").read_text())

    def close(self) -> None:
        self._client.close()

    def topic(self, name: str) -> Topic:
        return Topic(name, self._client)

    @contextmanager
    def over_quota(self, client_id: str) -> Iterator[None]:
        """A quota that one record is beyond."""
        shape = m.AlterClientQuotasRequest
        entry = shape.EntryData(
            entity=[shape.EntityData(entity_type="client-id", entity_name=client_id)],
            ops=[shape.OpData(key="producer_byte_rate", value=BYTES_PER_S)],
        )
        with WireClient(self.bootstrap) as client:
            (answer,) = client.call(shape(entries=[entry]), 1).entries
            assert answer.error_code == 0, answer
        yield

    @contextmanager
    def lose(self, what: str, topic: str) -> Iterator[None]:
        self._relay.lose(what, PRODUCE)
        lost = self._relay.losses
        yield
        assert self._relay.losses == lost + 1

    @contextmanager
    def late(self, topic: str) -> Iterator[None]:
        """The whole broker stands still once it has a request (SIGSTOP)."""
        pid, timers = self._pid, []

        def stop() -> None:
            os.kill(pid, signal.SIGSTOP)
            timers.append(threading.Timer(LATE_MS / 1000, os.kill, (pid, signal.SIGCONT)))
            timers[0].start()

        self._relay.tell(PRODUCE, stop)
        try:
            yield
            assert timers, "the request came"
        finally:
            for timer in timers:
                timer.join()

    @contextmanager
    def full(self, topic: str) -> Iterator[None]:
        """No file may grow any more beyond what the topic's segment has (RLIMIT_FSIZE)."""
        self.topic(topic).send_all([FILLING.decode()] * FILLED)
        unlimited = resource.RLIM_INFINITY
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, (FULL_AT_BYTES, unlimited))
        try:
            yield
        finally:
            resource.prlimit(self._pid, resource.RLIMIT_FSIZE, (unlimited, unlimited))

    def rebalance(self, group: str) -> None:
        """Another member joins and leaves."""
        with WireClient(self.bootstrap) as client, WireClient(self.bootstrap) as other:
            found = client.call(m.DescribeGroupsRequest(groups=[group]), 5).groups[0]
            shape = m.JoinGroupRequest
            join = shape(
                group_id=group,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type=found.protocol_type,
                protocols=[shape.JoinGroupRequestProtocol(name=found.protocol_data)],
            )
            member_id = client.call(join, 5).member_id
            client.send(join.copy(member_id=member_id), 5)
            wait_until(lambda: state_of(self.bootstrap, group) == "PreparingRebalance")
            self._leave(other, group, [member_id])

    def _leave(self, client: WireClient, group: str, members: list[str]) -> None:
        shape = m.LeaveGroupRequest
        named = [shape.MemberIdentity(member_id=one) for one in members]
        assert client.call(shape(group_id=group, members=named), 4).error_code == 0

    def remove_members(self, group: str) -> None:
        """As an administrator does."""
        with WireClient(self.bootstrap) as client:
            found = client.call(m.DescribeGroupsRequest(groups=[group]), 5).groups[0]
            self._leave(client, group, [one.member_id for one in found.members])

    def fence(self, transactional_id: str) -> None:
        """Another producer of the same id."""
        request = m.InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=10_000,
            producer_id=-1,
            producer_epoch=-1,
        )
        with WireClient(self.bootstrap) as client:
            while code := client.call(request, 4).error_code:
                assert code == ErrorCode.CONCURRENT_TRANSACTIONS, code

    def corrupt(self, topic: str) -> None:
        """One bit of the CRC of the first batch, in the segment's file."""
        (segment,) = self._node.glob(f"data*/{topic}-0/*.log")
        with segment.open("r+b") as file:
            file.seek(CRC_AT)
            byte = file.read(1)[0]
            file.seek(CRC_AT)
            file.write(bytes([byte ^ 1]))


@contextmanager
def real_kafka(directory: pathlib.Path) -> Iterator[RealKafka]:
    """Started, and ended."""
    relay = Relay()
    with contextlib.closing(relay):
        relay.target = free_adjacent_ports()
        dirs = ",".join(f"@NODE@/data{at}" for at in ("", 2, 3, 4, 5))
        settings = {
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{relay.port},"
            f"CONTROLLER://127.0.0.1:{relay.target + 1}",
            "log.dirs": dirs,
            "metadata.log.dir": "@NODE@/metadata",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
        }
        with running_kafka(directory, settings, port=relay.target):
            world = RealKafka(f"127.0.0.1:{relay.port}", directory, relay)
            with contextlib.closing(world):
                yield world
