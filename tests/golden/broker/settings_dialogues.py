"""Requests whose answers hang on settings, policies or kinds of groups, and what Kafka answers.

`run(bootstrap)` returns (part, label -> answer); `tests/golden/data/settings_answers.json.gz` holds
what Apache Kafka 4.4 gave, made by `python -m tests.golden.broker.settings_dialogues HOST:PORT OUT`
against a single node with `PROPERTIES`.
"""

from __future__ import annotations

import functools
import gzip
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from kwire.config.definitions import BROKER, CLIENT_METRICS, GROUP, TOPIC, ConfigTable
from kwire.protocol import messages as m
from kwire.protocol.records import Record, build_batch
from tests.golden.broker.dialogues import BASE_MS, Dialogue
from tests.support.wire import WireClient, produce_request

PROPERTIES = {
    "offsets.topic.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.compression.codec": "1",
    "group.consumer.regex.refresh.interval.ms": "10000",
}
WAIT_S = 30.0
POLICIES = {"delete": "delete", "compact": "compact", "both": "compact,delete", "none": ""}
APPEND, SUBTRACT = 2, 3
RESOURCE_TOPIC, RESOURCE_BROKER, RESOURCE_METRICS, RESOURCE_GROUP = 2, 4, 16, 32
READ = "settings-read"
PATTERNS = (
    "__consumer_offsets",
    "__consumer.*",
    "settings-re.d",
    "(settings-read|__consumer_.*)",
)
LOADING = (14, 15, 16)  # a coordinator that has just been made


def _until(ask: Callable[[], Any]) -> Any:
    """What `ask` gives as soon as it gives anything true; otherwise its last answer."""
    deadline = time.monotonic() + WAIT_S
    while not (answer := ask()) and time.monotonic() < deadline:
        pass
    return answer


def _is_taken(client: WireClient, request: Any) -> bool:
    answer = client.call(request, 9).responses[0].partition_responses[0]
    return bool(answer.error_code == 0)


def _alter(
    client: WireClient, kind: int, name: str, config: str, operation: int, value: str
) -> Any:
    """One validated change: (code, text)."""
    shape = m.IncrementalAlterConfigsRequest
    change = shape.AlterableConfig(name=config, config_operation=operation, value=value)
    resource = shape.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])
    answer = client.call(shape(resources=[resource], validate_only=True), 1).responses[0]
    return answer.error_code, answer.error_message or ""


def deletes_by_policy(d: Dialogue) -> None:
    """DeleteRecords: only a topic that is compacted and nothing else refuses."""
    shape = m.DeleteRecordsRequest
    for label, policy in POLICIES.items():
        name = f"settings-{label}"
        d.client.create_topic(name, configs={"cleanup.policy": policy})
        records = [Record(i, BASE_MS, b"k%d" % i, b"v", []) for i in range(5)]
        request = produce_request(name, {0: bytes(build_batch(records))})
        _until(functools.partial(_is_taken, d.client, request))
        for offset in (2, -1, 1):
            partitions = [shape.DeleteRecordsPartition(partition_index=0, offset=offset)]
            topics = [shape.DeleteRecordsTopic(name=name, partitions=partitions)]
            d.ask(f"{label} to {offset}", shape(timeout_ms=5000, topics=topics), 2)


def share_state_topic(d: Dialogue) -> None:
    """FindCoordinator of share groups makes the topic of their states."""
    request = m.FindCoordinatorRequest(key_type=2, coordinator_keys=["g:AAAAAAAAAAAAAAAAAAAAAQ:0"])

    def found() -> bool:
        return d.client.call(request, 6).coordinators[0].error_code == 0

    _until(found)
    d.ask("find", request, 6)
    shape = m.DescribeConfigsRequest
    resource = shape.DescribeConfigsResource(
        resource_type=RESOURCE_TOPIC, resource_name="__share_group_state", configuration_keys=None
    )
    described = d.client.call(shape(resources=[resource]), 4).results[0]
    d.answers["configs"] = sorted(
        (config.name, config.value) for config in described.configs if config.config_source == 1
    )


def share_offsets(d: Dialogue) -> None:
    """DescribeShareGroupOffsets of groups that are none, and of topics that do not exist."""
    shape = m.DescribeShareGroupOffsetsRequest
    d.client.create_topic(READ, partitions=2)
    d.names[d.client.topic_id(READ)] = READ
    commit = m.OffsetCommitRequest
    partitions = [commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    topics = [commit.OffsetCommitRequestTopic(name=READ, partitions=partitions)]
    classic = commit(group_id="classic", generation_id_or_member_epoch=-1, topics=topics)
    _until(lambda: d.client.call(classic, 8).topics[0].partitions[0].error_code == 0)

    def named(*topics: tuple[str, list[int]]) -> Any:
        return [
            shape.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=partitions)
            for name, partitions in topics
        ]

    for version in (0, 1):
        for group in ("unknown", "classic", ""):
            for label, asked in (
                ("all", None),
                ("none", []),
                ("missing", named(("settings-missing", [0, 1]))),
                *([] if group == "" else [("known", named((READ, [0, 1])))]),
                *([] if group == "" else [("both", named(("settings-missing", [0]), (READ, [1])))]),
            ):
                group_asked = shape.DescribeShareGroupOffsetsRequestGroup(
                    group_id=group, topics=asked
                )
                request = shape(groups=[group_asked])
                _until(functools.partial(_is_described, d.client, request, version))
                d.ask(f"{label} of {group or 'no name'}", request, version)


def _is_described(client: WireClient, request: Any, version: int) -> bool:
    """Whether the coordinators of the states, just made, have loaded."""
    return client.call(request, version).groups[0].error_code not in LOADING


NOT_KAFKAS = ("confluent.", "kwire.")
"""How the names of settings begin that Apache Kafka does not have."""


def appended(d: Dialogue) -> None:
    """APPEND and SUBTRACT on what is no list, or is unknown."""
    d.client.create_topic("settings-append")
    tables: list[tuple[int, tuple[str, ...], ConfigTable]] = [
        (RESOURCE_TOPIC, ("settings-append", "settings-missing"), TOPIC),
        (RESOURCE_BROKER, ("1", ""), BROKER),
        (RESOURCE_GROUP, ("g", ""), GROUP),
        (RESOURCE_METRICS, ("s", ""), CLIENT_METRICS),
    ]
    for kind, resources, table in tables:
        known = {n: it for n, it in table.items() if not n.startswith(NOT_KAFKAS)}
        names = [name for name, definition in known.items() if definition.type != "list"]
        names += ["no.such.config", "listener.name.a.ssl.cipher.suites"]
        if kind in (RESOURCE_GROUP, RESOURCE_METRICS):
            names = list(known)
        for resource in resources:
            for name in names if resource == resources[0] else names[-3:]:
                for operation in (APPEND, SUBTRACT):
                    label = f"{kind} {resource!r} {name} {operation}"
                    d.answers[label] = _alter(d.client, kind, resource, name, operation, "a")


class PatternMember:
    """A member of a consumer group that subscribes by a pattern and takes what it is given."""

    def __init__(self, client: WireClient, number: int, pattern: str) -> None:
        self.client = client
        self.pattern = pattern
        self.epoch = 0
        self.group = f"settings-pattern-{number}"
        self.member_id = f"6a8bc7b6-1111-4111-8111-{number:012}"
        self.owned: list[Any] = []

    def beat(self) -> bool:
        """One heartbeat; whether the member owns anything."""
        first = {"subscribed_topic_regex": self.pattern, "topic_partitions": []}
        request = m.ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=30_000,
            **({} if self.epoch else first),
        )
        answer = self.client.call(request, 1)
        if answer.error_code in LOADING:
            return False
        assert not answer.error_code, (self.pattern, answer.error_message)
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = answer.assignment.topic_partitions
        return bool(self.owned)


def patterns(d: Dialogue) -> None:
    """What a member gets that subscribes by a pattern: internal topics too (KIP-848)."""
    topics = d.client.call(m.MetadataRequest(topics=None), 12).topics
    names = {bytes(topic.topic_id): topic.name for topic in topics}
    for number, pattern in enumerate(PATTERNS):
        member = PatternMember(d.client, number, pattern)
        _until(member.beat)
        owned = {names[bytes(x.topic_id)]: sorted(x.partitions) for x in member.owned}
        d.answers[pattern] = sorted(owned.items())


PARTS: list[Callable[[Dialogue], None]] = [
    deletes_by_policy,
    share_state_topic,
    share_offsets,
    appended,
    patterns,
]


def run(bootstrap: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(part, label -> answer) of every part, against a broker without these topics and groups."""
    d = Dialogue(bootstrap)
    _until(lambda: d.client.call(m.FindCoordinatorRequest(key="g"), 3).error_code == 0)
    for part in PARTS:
        d.answers = {}
        part(d)
        yield part.__name__, json.loads(json.dumps(d.answers))
    d.client.close()


def main() -> None:
    answers = dict(run(sys.argv[1]))
    with open(sys.argv[2], "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(json.dumps(answers, sort_keys=True, separators=(",", ":")).encode())


if __name__ == "__main__":
    main()
