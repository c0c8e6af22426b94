"""A group of 1,000 members comes together: what the broker works for it, and its longest turns.

    bench/large_groups.py [classic|consumer ...] [--members N] [--partitions N] [--burst N]
                          [--profile] [--sockets] [-o NAME=VALUE]

A node runs in this process, without sockets. Each client hands over its next request as soon as it
has the answer to the one before, up to BURST of them in one turn of the loop. `classic` members
join (twice, KIP-394), the leader assigns, all sync; then one more member comes, and all join and
sync again; then one leaves. `consumer` members (KIP-848) send heartbeats until nobody has to move
any more, one more comes, one leaves. Told are CPU seconds of the broker, and the longest turns of
the loop in ms of processor time, with the garbage collector set as by `kwire serve`: whoever sends
a heartbeat meanwhile waits for such a turn. The client's part is not counted, waiting
(group.initial.rebalance.delay.ms, intervals) costs nothing; `--profile` shows the longest turns.

With `--sockets` the broker is a process, each member has a connection to it from this one, and a
third process sends heartbeats of another group, whose times are told.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import pathlib
import pstats
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from bench import group_sockets
from bench.groups import PASSING, encoded
from bench.one_record import _answer
from bench.one_request import Client
from kwire.config.broker_config import BrokerConfig
from kwire.network.loop import tune_malloc
from kwire.node.node import Node
from kwire.protocol import frame
from kwire.protocol import messages as m

TOPIC, GROUP = "bench-groups", "large"
VERSIONS: dict[Any, int] = {
    m.FindCoordinatorRequest: 4,
    m.JoinGroupRequest: 9,
    m.SyncGroupRequest: 5,
    m.HeartbeatRequest: 4,
    m.LeaveGroupRequest: 5,
    m.DescribeGroupsRequest: 6,
    m.CreateTopicsRequest: 7,
    m.ConsumerGroupHeartbeatRequest: 1,
    m.ConsumerGroupDescribeRequest: 1,
}
REBALANCING, MEMBER_ID_REQUIRED = 27, 79
PATIENCE_S = 120
BEAT_EVERY_S = 0.5
GC_THRESHOLD = 20_000, 20, 50  # as `kwire serve`


def version_of(request: Any) -> int:
    return VERSIONS[type(request)]


class Clients:
    """All connections, and what turns of the loop cost while they ask."""

    def __init__(self, node: Node, count: int, burst: int, profiles: bool) -> None:
        listener = next(iter(node.listeners.bound.values()))
        self.each = [Client(listener) for _ in range(count)]
        self.burst = burst
        self.profiles = profiles
        self.longest: cProfile.Profile | None = None
        self.turns_s: list[float] = []

    async def turn(self, feed: dict[int, bytes]) -> None:
        """One turn of the loop that begins with some of these bytes; the others are left."""
        profile = cProfile.Profile() if self.profiles else None
        if profile is not None:
            profile.enable()
        arrived = {i: feed.pop(i) for i in list(feed)[: self.burst]}
        asyncio.get_running_loop().call_soon(self._arrive, arrived)  # behind what the loop has
        started = time.thread_time()
        await asyncio.sleep(0)
        self.turns_s.append(time.thread_time() - started)
        if profile is not None:
            profile.disable()
            if self.turns_s[-1] >= max(self.turns_s):
                self.longest = profile

    def _arrive(self, arrived: dict[int, bytes]) -> None:
        for i, data in arrived.items():
            self.each[i].feed(data)

    async def ask(
        self, requests: dict[int, Any], then: Callable[[int, Any], Any] = lambda i, answer: None
    ) -> None:
        """Ask, and ask on with what `then` makes of an answer; until everybody has the last one."""
        waiting = dict(requests)
        feed = {i: encoded(x, version_of(x)) for i, x in requests.items()}
        give_up_at = time.monotonic() + PATIENCE_S
        while waiting:
            await self.turn(feed)
            is_idle = True
            for i, request in list(waiting.items()):
                for data in self.each[i].transport.take():
                    is_idle = False
                    version, view = version_of(request), memoryview(data)
                    answer = frame.decode_response(request.API_KEY, version, view)[1]
                    further = then(i, answer)
                    if further is None:
                        del waiting[i]
                    else:
                        waiting[i] = further
                        feed[i] = encoded(further, version_of(further))
            if time.monotonic() > give_up_at:
                raise SystemExit(f"bench: {len(waiting)} requests were not answered")
            if is_idle and not feed:
                await asyncio.sleep(0.001)

    def told(self, what: str) -> None:
        longest = sorted(self.turns_s, reverse=True)[:3]
        tops = ", ".join(f"{x * 1e3:.1f}" for x in longest)
        over = sum(x > 0.005 for x in self.turns_s)
        print(
            f"{what}: {sum(self.turns_s):.3f} s of CPU; longest turns {tops} ms, {over} over 5 ms",
            flush=True,
        )
        self.turns_s.clear()
        if self.longest is not None:
            pstats.Stats(self.longest).sort_stats("cumtime").print_stats(32)
            self.longest = None


class Classic:
    """Members of a classic group."""

    def __init__(self, clients: Clients, partitions: int) -> None:
        self.clients = clients
        self.partitions = partitions
        self.ids: dict[int, str] = {}
        self.generation = -1
        self.leader = -1
        self.members: list[Any] = []

    def join(self, i: int) -> Any:
        shape = m.JoinGroupRequest
        name = TOPIC.encode()
        metadata = (
            b"\0\1\0\0\0\1" + len(name).to_bytes(2, "big") + name + b"\xff\xff\xff\xff\0\0\0\0"
        )
        return shape(
            group_id=GROUP, session_timeout_ms=45_000, rebalance_timeout_ms=300_000,
            member_id=self.ids.get(i, ""), protocol_type="consumer",
            protocols=[shape.JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )  # fmt: skip

    def joined(self, i: int, answer: Any) -> Any:
        self.ids[i] = answer.member_id
        if answer.error_code == MEMBER_ID_REQUIRED:
            return self.join(i)
        if answer.error_code:
            raise SystemExit(f"bench: refused: {answer.error_code}")
        self.generation = answer.generation_id
        if answer.leader == answer.member_id:
            self.leader, self.members = i, answer.members
        return self.sync(i)

    def next(self, i: int, answer: Any) -> Any:
        """What a client sends behind an answer: join, sync."""
        if isinstance(answer, m.JoinGroupResponse):
            return self.joined(i, answer)
        if answer.error_code or not answer.assignment:
            raise SystemExit(f"bench: refused: {answer}")
        return None

    def assigned(self) -> list[Any]:
        """The leader's assignment: neighbours to each member."""
        shape = m.SyncGroupRequest.SyncGroupRequestAssignment
        name, count = TOPIC.encode(), len(self.members)
        found = []
        for n, member in enumerate(self.members):
            mine = range(n * self.partitions // count, (n + 1) * self.partitions // count)
            data = b"\0\1\0\0\0\1" + len(name).to_bytes(2, "big") + name
            data += len(mine).to_bytes(4, "big") + b"".join(x.to_bytes(4, "big") for x in mine)
            found.append(shape(member_id=member.member_id, assignment=data + b"\xff\xff\xff\xff"))
        return found

    def sync(self, i: int) -> Any:
        return m.SyncGroupRequest(
            group_id=GROUP, generation_id=self.generation, member_id=self.ids[i],
            protocol_type="consumer", protocol_name="range",
            assignments=self.assigned() if i == self.leader else [],
        )  # fmt: skip

    async def settle(self, who: list[int]) -> None:
        """Join and sync."""
        await self.clients.ask({i: self.join(i) for i in who}, self.next)

    async def heard(self, who: list[int]) -> None:
        """Heartbeats of all, which have to rebalance."""

        def check(i: int, answer: Any) -> None:
            if answer.error_code != REBALANCING:
                raise SystemExit(f"bench: no rebalance: {answer}")

        beats = {
            i: m.HeartbeatRequest(
                group_id=GROUP, generation_id=self.generation, member_id=self.ids[i]
            )
            for i in who
        }
        await self.clients.ask(beats, check)

    async def run(self) -> None:
        clients = self.clients
        *first, last = range(len(clients.each))
        await self.settle(first)
        clients.told("classic, all join")
        newcomer = asyncio.create_task(self.settle([last]))
        while last not in self.ids:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        clients.turns_s.clear()
        await self.heard(first)
        await asyncio.gather(self.settle(first), newcomer)
        clients.told("classic, one more member")
        shape = m.LeaveGroupRequest
        leave = shape(group_id=GROUP, members=[shape.MemberIdentity(member_id=self.ids[last])])
        await clients.ask({last: leave})
        await self.heard(first)
        await self.settle(first)
        clients.told("classic, one leaves")
        describe = m.DescribeGroupsRequest(groups=[GROUP])
        await clients.ask({0: describe})
        clients.told("classic, DescribeGroups")


class Consumers:
    """Members of a consumer group (KIP-848)."""

    def __init__(self, clients: Clients, partitions: int) -> None:
        self.clients = clients
        self.partitions = partitions
        self.epochs = dict.fromkeys(range(len(clients.each)), 0)
        self.owned: dict[int, list[Any]] = {}
        self.said: dict[int, list[Any]] = {}
        self.before = 0
        """The epoch at which the group was settled last."""

    def beat(self, i: int) -> Any:
        shape = m.ConsumerGroupHeartbeatRequest
        request = shape(
            group_id=GROUP, member_id=f"member-{i}", member_epoch=self.epochs[i],
            rebalance_timeout_ms=-1, topic_partitions=None,
        )  # fmt: skip
        if self.epochs[i] == 0:
            request.rebalance_timeout_ms = 300_000
            request.subscribed_topic_names = [TOPIC]
            request.topic_partitions = []
        elif i in self.said:
            request.topic_partitions = [
                shape.TopicPartitions(topic_id=x.topic_id, partitions=list(x.partitions))
                for x in self.said.pop(i)
            ]
        return request

    def heard(self, i: int, answer: Any) -> Any:
        if answer.error_code:
            raise SystemExit(f"bench: refused: {answer}")
        self.epochs[i] = answer.member_epoch
        if answer.assignment is not None:
            self.owned[i] = self.said[i] = answer.assignment.topic_partitions
            return self.beat(i)  # a client says at once what it has taken or given up
        return None

    def is_settled(self, who: list[int]) -> bool:
        counts = [sum(len(x.partitions) for x in self.owned.get(i, ())) for i in who]
        return (
            len({self.epochs[i] for i in who}) == 1
            and self.epochs[who[0]] > self.before
            and sum(counts) == self.partitions
            and max(counts) - min(counts) <= 1
            and not self.said
        )

    async def settle(self, who: list[int]) -> int:
        rounds = 0
        give_up_at = time.monotonic() + PATIENCE_S
        while not self.is_settled(who):
            if time.monotonic() > give_up_at:
                raise SystemExit("bench: the group does not settle")
            if rounds:
                await self.waited(BEAT_EVERY_S)
            await self.clients.ask({i: self.beat(i) for i in who}, self.heard)
            rounds += 1
        self.before = self.epochs[who[0]]
        return rounds

    async def waited(self, seconds: float) -> None:
        """What the broker does meanwhile counts."""
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            await self.clients.turn({})
            if self.clients.turns_s[-1] < 0.0002:
                self.clients.turns_s.pop()
                await asyncio.sleep(0.0005)

    async def run(self) -> None:
        clients = self.clients
        *first, last = range(len(clients.each))
        rounds = await self.settle(first)
        clients.told(f"consumer, all join ({rounds} heartbeats each)")
        everybody = [*first, last]
        rounds = await self.settle(everybody)
        clients.told(f"consumer, one more member ({rounds} heartbeats each)")
        self.epochs[last] = -1
        leave = self.beat(last)
        await clients.ask({last: leave})
        self.owned.pop(last, None)
        rounds = await self.settle(first)
        clients.told(f"consumer, one leaves ({rounds} heartbeats each)")
        describe = m.ConsumerGroupDescribeRequest(group_ids=[GROUP])
        await clients.ask({0: describe})
        clients.told("consumer, ConsumerGroupDescribe")


KINDS: dict[str, Any] = {"classic": Classic, "consumer": Consumers}


async def measure(kind: str, options: argparse.Namespace, directory: str) -> None:
    overrides = {
        "log.dirs": directory,
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "group.initial.rebalance.delay.ms": "3000",
        **dict(x.split("=", 1) for x in options.option or ()),
    }
    config = BrokerConfig.load(properties={}, environment={}, overrides=overrides, developer=True)
    node = Node(config, asyncio.get_running_loop())
    await node.start()
    topic = m.CreateTopicsRequest.CreatableTopic(
        name=TOPIC, num_partitions=options.partitions, replication_factor=1
    )
    request = m.CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    await _answer(node.controller_channel.forward(request, None))
    clients = Clients(node, options.members + 1, options.burst, options.profile)
    await _coordinated(clients)
    while len(list(node.parts.replicas)) < options.partitions:
        await asyncio.sleep(0.05)
    await asyncio.sleep(1)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)
    clients.turns_s.clear()
    await KINDS[kind](clients, options.partitions).run()
    for client in clients.each:
        client.connection.connection_lost(None)
    await node.stop()


async def measure_sockets(kind: str, options: argparse.Namespace) -> None:
    broker = group_sockets.broker("bench-large-groups.log")
    try:
        clients = await group_sockets.SocketClients.opened(broker, options.members + 1, version_of)
        topic = m.CreateTopicsRequest.CreatableTopic(
            name=TOPIC, num_partitions=options.partitions, replication_factor=1
        )
        request = m.CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
        await clients.ask({0: request})
        await _coordinated(clients)
        await clients.alone()
        await KINDS[kind](clients, options.partitions).run()
        clients.close()
    finally:
        await asyncio.to_thread(broker.stop)


async def _coordinated(clients: Any) -> None:
    """Until the group has its coordinator."""
    find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])

    def found(i: int, answer: Any) -> Any:
        return find if answer.coordinators[0].error_code else None

    beat = m.HeartbeatRequest(group_id=GROUP, generation_id=0, member_id="nobody")

    def coordinated(i: int, answer: Any) -> Any:
        return beat if answer.error_code in PASSING else None

    await clients.ask({0: find}, found)
    await clients.ask({0: beat}, coordinated)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", help=" ".join(KINDS))
    parser.add_argument("--members", type=int, default=1000)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--burst", type=int, default=100, help="requests that arrive in one turn")
    parser.add_argument("--sockets", action="store_true", help="a broker of its own process")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("-o", "--option", action="append", help="a broker config, name=value")
    options = parser.parse_args()
    tune_malloc()
    for kind in options.kinds or list(KINDS):
        if options.sockets:
            asyncio.run(measure_sockets(kind, options))
            continue
        with tempfile.TemporaryDirectory(prefix="bench-large-") as directory:
            asyncio.run(measure(kind, options, directory))
    return 0


if __name__ == "__main__":
    sys.exit(main())
