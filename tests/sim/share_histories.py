"""What histories of share groups and of redrives have in common: which failures there are, how
leaders are moved, how a topic is read at the end, how mutations are found, how a history is run by
its seed."""

from __future__ import annotations

import gc
import logging
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from kwire.client.admin import Admin
from kwire.client.cluster import Cluster as Client
from kwire.client.fetching import Fetcher
from kwire.client.offsets import EARLIEST, LATEST
from kwire.protocol import messages as m
from kwire.protocol.records import Record
from tests.sim.client import RoutingClient
from tests.sim.model import Violation
from tests.sim.mutations import applied

KINDS = (
    "kill",
    "power loss",
    "one-way partition",
    "partition",
    "isolation",
    "resets",
    "slow network",
    "slow disk",
    "frozen process",
    "stop in order",
    "changing leaders",
)
SEEDS_FROM_PIN = 8
P = TypeVar("P")
Mutations = Mapping[str, Callable[[Callable[[Any, str, Any], None]], None]]


class History(Protocol):
    """One seed's history; `run` raises Violation for a broken promise."""

    def run(self) -> None: ...

    def told(self) -> str:
        """What happened, in a line."""
        ...


async def lead_by(client: RoutingClient, topic: str, index: int, replicas: list[int]) -> None:
    """Put a partition's replicas in an order, and have the first one lead. Retry, ClientError."""
    shape = m.AlterPartitionReassignmentsRequest
    partition = shape.ReassignablePartition(partition_index=index, replicas=replicas)
    request = shape(topics=[shape.ReassignableTopic(name=topic, partitions=[partition])])
    await client.ask(client.any_broker(), request, 0)
    elects = m.ElectLeadersRequest
    chosen = elects.TopicPartitions(topic=topic, partitions=[index])
    election = elects(topic_partitions=[chosen], timeout_ms=2000)
    await client.ask(client.any_broker(), election, 2)


async def read_topic(
    client: Client, topic: str, *, committed_only: bool
) -> dict[int, list[Record]]:
    """All that is visible of a topic, by partition. ClientError."""
    offsets = Admin(client).offsets
    starts = await offsets.of_topic(topic, EARLIEST)
    ends = await offsets.of_topic(topic, LATEST)
    fetcher = Fetcher(client, committed_only=committed_only, wait_ms=50)
    found: dict[int, list[Record]] = {}
    for index, offset in starts.items():
        records = found[index] = []
        while offset < ends[index]:
            answer = (await fetcher.fetch({(topic, index): offset})).get((topic, index))
            if answer is not None:
                records += answer.records
                offset = answer.next_offset
    return found


def is_found(begin: Callable[[int], History], name: str, mutations: Mutations, pin: int) -> bool:
    """Whether a mutation is found by its pinned seed, or one of the next: any change of the code
    changes every history."""
    for seed in range(pin, pin + SEEDS_FROM_PIN):
        with applied(name, mutations):
            try:
                begin(seed).run()
            except Violation:
                return True
            finally:
                gc.collect()
    return False


def run_by_command(
    begin: Callable[[int, P | None], History], mutations: Mutations, aimed: Mapping[str, P]
) -> int:
    """`SEED [RUNS] [--mutation NAME]`: a line for each seed; 1 if one failed."""
    arguments = sys.argv[1:]
    mutation = None
    if "--mutation" in arguments:
        at = arguments.index("--mutation")
        mutation = arguments[at + 1]
        del arguments[at : at + 2]
    first = int(arguments[0]) if arguments else 1
    runs = int(arguments[1]) if len(arguments) > 1 else 1
    logging.disable(logging.CRITICAL)
    failed = 0
    for seed in range(first, first + runs):
        begin_s = time.process_time()
        with applied(mutation, mutations):
            history = begin(seed, aimed.get(mutation or ""))
            try:
                history.run()
                outcome = "ok"
            except (Violation, AssertionError) as error:
                outcome = f"FAILED: {error}"
                failed += 1
        cpu_s = time.process_time() - begin_s
        print(f"seed {seed}: {cpu_s:.1f} s of CPU, {history.told()}: {outcome}", flush=True)
        gc.collect()
    print(f"{failed} of {runs} failed")
    return 1 if failed else 0
