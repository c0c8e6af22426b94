"""Topics that are created, used and deleted again and again leave nothing behind: no file, no
object, no entry of any table. 5,000 topics under `make stress`."""

from __future__ import annotations

import gc
import time
from collections import Counter, deque
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path

from kwire.protocol import messages as m
from kwire.testing.cluster import NodeInThread
from tests.support.effort import effort
from tests.support.wire import (
    TIMEOUT_S,
    WireClient,
    batch_of,
    fetch_request,
    produce_request,
)

TOPICS = 25  # of a round
ROUNDS = 4 if effort() == 1 else 20 * effort()
ATTEMPTS = 3
"""What grows with topics does each time; what else the process comes to hold does not."""
PARTITIONS = 2
GROUP = "come-and-go"


class Held:
    """What the process holds: objects by their type, and how many entries are in all tables."""

    def __init__(self) -> None:
        gc.collect()
        objects = gc.get_objects()
        self.types = Counter(f"{type(each).__module__}.{type(each).__name__}" for each in objects)
        self.entries = sum(
            len(each)
            for each in objects
            if isinstance(each, dict | list | set | deque) and not isinstance(each, Counter)
        )

    def grown(self, since: Held, least: int) -> dict[str, int]:
        """Types of kwire of which there are at least so many more."""
        more = {name: count - since.types[name] for name, count in self.types.items()}
        return {
            name: count
            for name, count in more.items()
            if count >= least and name.startswith("kwire.")
        }


def wait_for(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        assert time.monotonic() < deadline, what


def commit(client: WireClient, name: str) -> None:
    shape = m.OffsetCommitRequest
    partition = shape.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    request = shape(
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        topics=[shape.OffsetCommitRequestTopic(name=name, partitions=[partition])],
    )

    def code() -> int:
        return int(client.call(request, 8).topics[0].partitions[0].error_code)

    wait_for(lambda: code() == 0, "the offset is not committed")


def one_round(client: WireClient, number: int) -> None:
    """Names are new in each round, but for one topic that is made anew."""
    names = [f"topic-{number}-{index}" for index in range(TOPICS - 1)] + ["again"]
    create, delete = m.CreateTopicsRequest, m.DeleteTopicsRequest
    config = create.CreatableTopicConfig(name="retention.ms", value=str(100_000 + number))
    made = [
        create.CreatableTopic(
            name=name, num_partitions=PARTITIONS, replication_factor=1, configs=[config]
        )
        for name in names
    ]
    created = client.call(create(topics=made, timeout_ms=60_000), 7)
    assert {topic.error_code for topic in created.topics} == {0}
    for name in names:
        request = produce_request(name, dict.fromkeys(range(PARTITIONS), batch_of([b"x"])))
        answer = client.call(request, 9)
        codes = {each.error_code for each in answer.responses[0].partition_responses}
        assert codes == {0}
        client.call(fetch_request(name, {0: 0}), 12)
        commit(client, name)
    client.metadata(None)
    gone = [delete.DeleteTopicState(name=name) for name in names]
    deleted = client.call(delete(topics=gone, timeout_ms=60_000), 6)
    assert {each.error_code for each in deleted.responses} == {0}


def test_topics_that_come_and_go_leave_nothing_behind(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    settings = {
        "log.segment.delete.delay.ms": 1,
        "offsets.topic.num.partitions": 2,
        "log.cleaner.enable": "false",
    }

    def partitions() -> list[str]:
        return sorted(
            path.name
            for path in directory.iterdir()
            if path.is_dir() and not path.name.startswith("__")
        )

    with NodeInThread(directory, settings=settings) as node, WireClient(node.bootstrap) as client:
        find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
        wait_for(lambda: client.call(find, 4).coordinators[0].error_code == 0, "no coordinator")
        for number in range(2):
            one_round(client, number)
        wait_for(lambda: partitions() == [], "directories of deleted topics are there still")
        files = len(list(directory.rglob("*")))
        topics, rounds = ROUNDS * TOPICS, count(2)
        for _ in range(ATTEMPTS):
            before = Held()
            for number in islice(rounds, ROUNDS):
                one_round(client, number)
            wait_for(lambda: partitions() == [], "directories of deleted topics are there still")
            after = Held()
            types = after.grown(before, topics // 4)
            entries = after.entries - before.entries
            if not types and entries < topics * 3 // 4:
                break
        assert types == {}
        assert entries < topics * 3 // 4, "some table grows with topics"
        assert len(list(directory.rglob("*"))) - files < 10
        assert [name for name in client.topics() if not name.startswith("__")] == []
