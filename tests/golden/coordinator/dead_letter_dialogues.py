"""What share groups reject, and what Apache Kafka 4.4 writes to their dead letter topics.

`run(bootstrap)` returns case -> what is in the topic, its own configs, and whether the records were
archived; `tests/golden/data/dead_letter_answers.json.gz` holds what Apache Kafka 4.4 gave, made by
`python -m tests.golden.coordinator.dead_letter_dialogues HOST:PORT OUT` against a single node with
`PROPERTIES` where none of these groups and topics are.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from typing import Any

from kwire.protocol import messages as m
from kwire.protocol.records import Record, build_batch, read_records
from kwire.share.messages import read_request, read_results
from kwire.share.persister import PartitionEpoch
from kwire.testing.cluster import wait_for
from tests.support.share.member import REJECT, RELEASE, Member, set_group_config
from tests.support.wire import TRANSIENT, WireClient, fetch_request, produce_request

PROPERTIES = {
    "group.share.assignment.interval.ms": "0",  # no member waits for its partitions
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "errors.deadletterqueue.topic.name.prefix": "dlq.",
}
SOURCE, INDEX, COUNT = "dead-source", 1, 3
ARCHIVED = 4
ENABLED = {"errors.deadletterqueue.group.enable": "true"}
# group -> (dead letter topic, configs it is created with before (None: it is missing), configs of
# the group beside its name).
CASES: dict[str, tuple[str, dict[str, str] | None, dict[str, str]]] = {
    "headers": ("dlq.headers", ENABLED, {}),
    "copied": ("dlq.copied", ENABLED, {"errors_deadletterqueue_copy_record_enable": "true"}),
    "missing": ("dlq.missing", None, {}),
    "not-enabled": ("dlq.plain", {}, {}),
    "too-small": ("dlq.small", {**ENABLED, "max.message.bytes": "60"}, {}),
    "compacted": ("dlq.compacted", {**ENABLED, "cleanup.policy": "compact"}, {}),
    "unwritable": ("dlq.unwritable", {**ENABLED, "min.insync.replicas": "2"}, {}),
    "other-prefix": ("letters", ENABLED, {}),
    "exhausted": ("dlq.exhausted", ENABLED, {"share_delivery_count_limit": "2"}),
}
CREATED = ("created", "dlq.created", {"errors_deadletterqueue_copy_record_enable": "true"})


class Dialogue:
    """One connection for everything but members."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.client = WireClient(bootstrap)
        self.client.create_topic(SOURCE, partitions=3, configs={"retention.ms": "-1"})
        self.topic_id = self.client.topic_id(SOURCE)
        records = [
            Record(i, 1_700_000_000_000, b"key%d" % i, b"value%d" % i, [("h", b"x")])
            for i in range(COUNT)
        ]
        request = produce_request(SOURCE, {INDEX: bytes(build_batch(records))})

        def is_taken() -> bool:
            code = self.client.call(request, 9).responses[0].partition_responses[0].error_code
            assert code == 0 or code in TRANSIENT, code
            return code == 0

        wait_for(is_taken, "records")

    def case(self, group: str, topic: str, configs: dict[str, str]) -> dict[str, Any]:
        """Reject everything, and look at what became of it."""
        set_group_config(
            self.client,
            group,
            share_auto_offset_reset="earliest",
            errors_deadletterqueue_topic_name=topic,
            **configs,
        )
        key = (self.topic_id, INDEX)
        member = Member(self.bootstrap, group, [SOURCE])
        member.join(3)
        for kind in [REJECT] if group != "exhausted" else [RELEASE, RELEASE]:
            answer = member.acquire([key])
            assert answer.error_code == 0, answer
            member.acknowledge({key: [(0, COUNT - 1, [kind])]})
        wait_for(lambda: self.archived(group) >= COUNT, f"{group}: records that are archived")
        member.leave()
        member.close()
        return {"topic": topic, "records": self.records(topic), "configs": self._configs(topic)}

    def archived(self, group: str) -> int:
        """How many of the records are archived, or behind the start."""
        asked = read_request(group, [PartitionEpoch(self.topic_id, INDEX, 0)])
        state = read_results(self.client.call(asked, 0))[0]
        if state.error_code:
            return 0
        archived = sum(
            batch.last_offset - batch.first_offset + 1
            for batch in state.state_batches
            if batch.delivery_state == ARCHIVED
        )
        return int(state.start_offset + archived)

    def records(self, topic: str) -> list[Any] | None:
        """[partition, offset, key, value, headers] of each; None where the topic is not there."""
        if topic not in self.client.topics():
            return None
        found = []
        for index in range(self.client.partition_count(topic)):
            answer = self.client.call(fetch_request(topic, {index: 0}), 12)
            data = bytes(answer.responses[0].partitions[0].records or b"")
            found += [
                [index, record.offset, _text(record.key), _text(record.value),
                 [[str(name), _text(value)] for name, value in record.headers]]
                for record in read_records(data)
            ]  # fmt: skip
        return found

    def _configs(self, topic: str) -> list[Any]:
        if topic not in self.client.topics():
            return []
        shape = m.DescribeConfigsRequest
        resource = shape.DescribeConfigsResource(
            resource_type=2, resource_name=topic, configuration_keys=None
        )
        described = self.client.call(shape(resources=[resource]), 4).results[0]
        return sorted([x.name, x.value] for x in described.configs if x.config_source == 1)


def _text(value: bytes | None) -> str | None:
    return None if value is None else bytes(value).decode()


def run(bootstrap: str) -> Iterator[tuple[str, Any]]:
    """(case, what became of it), in this order: the last one lets topics be created."""
    d = Dialogue(bootstrap)
    for topic, configs, _ in CASES.values():
        if configs is not None:
            d.client.create_topic(topic, partitions=2, configs=configs)
    for group, (topic, _, configs) in CASES.items():
        yield group, json.loads(json.dumps(d.case(group, topic, configs)))
    shape = m.IncrementalAlterConfigsRequest
    change = shape.AlterableConfig(
        name="errors.deadletterqueue.auto.create.topics.enable", config_operation=0, value="true"
    )
    resource = shape.AlterConfigsResource(resource_type=4, resource_name="", configs=[change])
    assert not d.client.call(shape(resources=[resource]), 1).responses[0].error_code
    group, topic, configs = CREATED
    yield group, json.loads(json.dumps(d.case(group, topic, configs)))
    d.client.close()


def main() -> None:
    answers = dict(run(sys.argv[1]))
    with open(sys.argv[2], "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(json.dumps(answers, sort_keys=True, separators=(",", ":")).encode())


if __name__ == "__main__":
    main()
