"""Workers of a share group in a cluster of three, one node of which is killed: it may have been the
group's coordinator, the share coordinator or the leader of partitions, and was some of each."""

from __future__ import annotations

import asyncio

from kwire.client.cluster import Cluster as Client
from kwire.client.errors import ClientError
from kwire.client.settings import ConnectionSettings
from kwire.client.share_consumer import ShareConsumer
from kwire.protocol import messages as m
from kwire.testing.cluster import Cluster
from tests.support.share.member import set_group_config
from tests.support.wire import WireClient, produce_values

TOPIC, GROUP = "jobs", "workers"
PARTITIONS, RECORDS, KILL_AFTER = 4, 200, 40
LIMIT_S = 150
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": 4,
    "group.share.min.heartbeat.interval.ms": 500,
    "group.share.heartbeat.interval.ms": 500,
    "group.share.min.session.timeout.ms": 3000,
    "group.share.session.timeout.ms": 3000,
}


class Jobs:
    """What the workers know: `given` came to them, `done` was accepted and answered. Of `unsure`
    the answer was lost with the node: it may have been kept, and then it does not come again."""

    def __init__(self) -> None:
        self.given: set[bytes] = set()
        self.done: set[bytes] = set()
        self.unsure: set[bytes] = set()
        self.are_over = False


async def _work(bootstrap: str, jobs: Jobs) -> None:
    """A worker that accepts what it gets."""
    async with Client(ConnectionSettings(bootstrap=bootstrap)) as cluster:
        while not jobs.are_over:
            try:
                async with ShareConsumer(
                    cluster, GROUP, [TOPIC], explicit=True, wait_ms=200, records_max=10
                ) as queue:
                    while not jobs.are_over:
                        found = await queue.poll()
                        values = {bytes(x.record.value or b""): x.partition for x in found}
                        jobs.given.update(values)
                        queue.accept(*found)
                        failed = {x.partition for x in await queue.commit()}
                        for value, partition in values.items():
                            (jobs.unsure if partition in failed else jobs.done).add(value)
            except ClientError:
                await asyncio.sleep(0.1)


def _lags(client: WireClient) -> list[int]:
    shape = m.DescribeShareGroupOffsetsRequest
    asked = shape.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=None)
    find = m.FindCoordinatorRequest(coordinator_keys=[GROUP])
    found = client.call(find, 4).coordinators[0]
    if found.error_code:
        return []
    with WireClient(f"{found.host}:{found.port}") as coordinator:
        group = coordinator.call(shape(groups=[asked]), 1).groups[0]
    return [x.lag for topic in group.topics for x in topic.partitions if not x.error_code]


def test_every_record_is_worked_on_though_a_node_dies() -> None:
    with Cluster(settings=SETTINGS) as cluster:
        cluster.start()
        with WireClient(cluster[2].bootstrap) as client:
            client.create_topic(TOPIC, PARTITIONS)
            set_group_config(
                client,
                GROUP,
                share_auto_offset_reset="earliest",
                share_record_lock_duration_ms="15000",
            )
        everything = {b"%d" % number for number in range(RECORDS)}
        for partition in range(PARTITIONS):
            values = [x for x in sorted(everything) if int(x) % PARTITIONS == partition]
            _produce(cluster, partition, values)
        jobs = Jobs()

        async def scenario() -> None:
            bootstrap = ",".join(cluster[x].bootstrap for x in (2, 3))
            async with asyncio.timeout(LIMIT_S):
                workers = [asyncio.create_task(_work(bootstrap, jobs)) for _ in range(2)]
                while len(jobs.done) < KILL_AFTER:
                    await asyncio.sleep(0.05)
                cluster[1].kill()
                while not jobs.done | jobs.unsure >= everything or not await _is_over(cluster):
                    await asyncio.sleep(0.1)
                jobs.are_over = True
                await asyncio.gather(*workers)

        try:
            asyncio.run(scenario())
        except TimeoutError:
            left = sorted(everything - jobs.done - jobs.unsure)
            raise AssertionError(f"{left} of {len(jobs.given)} not done, {jobs.unsure}") from None
        assert jobs.given == everything
        assert jobs.done | jobs.unsure == everything


async def _is_over(cluster: Cluster) -> bool:
    """Whether the group has nothing left to do."""

    def ask() -> bool:
        try:
            with WireClient(cluster[2].bootstrap) as client:
                return _lags(client) == [0] * PARTITIONS
        except OSError:
            return False  # the coordinator is the node that died

    return await asyncio.to_thread(ask)


def _produce(cluster: Cluster, partition: int, values: list[bytes]) -> None:
    with WireClient(cluster[2].bootstrap) as client:
        leader = client.metadata([TOPIC]).topics[0].partitions[partition].leader_id
    with WireClient(cluster[leader].bootstrap) as client:
        produce_values(client, TOPIC, partition, values)
