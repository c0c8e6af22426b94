"""What brokers ask a share coordinator, and what Apache Kafka 4.4 answers and writes.

`run(bootstrap)` returns (part, label -> answer), with every text, and under "records" what the part
left in `__share_group_state`; `tests/golden/data/share_state_answers.json.gz` holds what Apache
Kafka 4.4 gave, made by
`python -m tests.golden.coordinator.share_state_dialogues HOST:PORT OUT` against a single node with
`PROPERTIES` where none of these groups and topics are.
"""

from __future__ import annotations

import functools
import gzip
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kwire.coordinator.partitioner import partition_for
from kwire.protocol import messages as m
from kwire.protocol.coordinator_records import decode_key, decode_value
from kwire.protocol.records import read_records
from kwire.share import messages as shapes
from kwire.share.keys import coordinator_key
from kwire.share.persister import (
    InitializePartition,
    PartitionEpoch,
    PartitionId,
    StateBatch,
    WritePartition,
)
from kwire.testing.cluster import wait_for
from tests.golden.broker.dialogues import UNKNOWN_ID, Dialogue
from tests.support.wire import fetch_request

PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.snapshot.update.records.per.snapshot": "4",
}
PARTITIONS = 3
STATE_TOPIC = "__share_group_state"
MODULE = "share-coordinator"
TOPIC = "share-state"
NOT_READY = (3, 14, 15, 16)  # a topic or a coordinator that has just been made
AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = 0, 2, 3, 4
LAST_OFFSET = (1 << 63) - 1
NO_TIMES = ("create_timestamp", "write_timestamp")


class ShareDialogue(Dialogue):
    """A dialogue whose texts count, but those of faults that Kafka has no words for."""

    topic_id = b""

    def plain(self, value: Any) -> Any:
        plain = super().plain(value)
        if isinstance(plain, dict) and plain.get("error_code") == -1:
            plain["error_message"] = "<text>"
        if isinstance(plain, list):
            plain.sort(key=lambda item: str(item.get("topic_id")))
        return plain

    def _field(self, name: str, value: Any) -> Any:
        if name == "error_message":
            return value
        if name == "state_batches":
            listed = [[x.first_offset, x.last_offset, x.delivery_state, x.delivery_count]
                      for x in value]  # fmt: skip
            return listed if len(listed) < 100 else [len(listed), listed[0], listed[-1]]
        return super()._field(name, value)

    # --- the five requests, about partitions of one topic

    def initialize(
        self, group: str, partition: int, state_epoch: int, start_offset: int, **labels: Any
    ) -> None:
        label = f"{group}-{partition} initialize {state_epoch} from {start_offset}"
        asked = InitializePartition(self._id(labels), partition, state_epoch, start_offset)
        self.ask(self._new(label, labels), shapes.initialize_request(group, [asked]), 0)

    def read(self, group: str, partition: int, leader_epoch: int, **labels: Any) -> None:
        label = f"{group}-{partition} read {leader_epoch}"
        asked = PartitionEpoch(self._id(labels), partition, leader_epoch)
        self.ask(self._new(label, labels), shapes.read_request(group, [asked]), 0)

    def write(
        self,
        group: str,
        partition: int,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        batches: Sequence[tuple[int, int, int, int]] = (),
        complete: int = -1,
        version: int = 1,
        **labels: Any,
    ) -> None:
        shown = [list(batch) for batch in batches[:4]]
        label = (
            f"{group}-{partition} write {state_epoch}/{leader_epoch} from {start_offset} "
            f"complete {complete} {len(batches)} {shown}"
        )
        asked = WritePartition(
            self._id(labels),
            partition,
            state_epoch,
            leader_epoch,
            start_offset,
            complete,
            [StateBatch(*batch) for batch in batches],
        )
        self.ask(self._new(label, labels), shapes.write_request(group, [asked]), version)

    def delete(self, group: str, partition: int, **labels: Any) -> None:
        label = f"{group}-{partition} delete"
        asked = PartitionId(self._id(labels), partition)
        self.ask(self._new(label, labels), shapes.delete_request(group, [asked]), 0)

    def summary(
        self, group: str, partition: int, leader_epoch: int = -1, version: int = 1, **labels: Any
    ) -> None:
        label = f"{group}-{partition} summary {leader_epoch}"
        asked = PartitionEpoch(self._id(labels), partition, leader_epoch)
        self.ask(self._new(label, labels), shapes.summary_request(group, [asked]), version)

    def _id(self, labels: dict[str, Any]) -> bytes:
        return bytes(labels.get("topic_id", self.topic_id))

    def _new(self, label: str, labels: dict[str, Any]) -> str:
        """A label that no answer has yet; a topic that is none is named."""
        topic_id = labels.get("topic_id")
        if topic_id is not None:
            label += f" of {self.names[topic_id]}"
        count = 1 + sum(known.startswith(f"{label} #") for known in self.answers)
        return f"{label} #{count}"

    # --- what is in the topic

    def records(self, groups: Sequence[str]) -> list[Any]:
        """The records of these groups, in their order in each partition; where a record is not in
        the partition that its key says, that."""
        found: list[Any] = []
        for index in range(PARTITIONS):
            offset, end = 0, 1
            while offset < end:
                answer = self.client.call(fetch_request(STATE_TOPIC, {index: offset}), 12)
                partition = answer.responses[0].partitions[0]
                end = partition.high_watermark
                for record in read_records(bytes(partition.records or b"")):
                    if record.offset >= offset:
                        offset = record.offset + 1
                        found += self._shown(index, record, groups)
        return sorted(found, key=lambda record: record["key"])

    def _shown(self, index: int, record: Any, groups: Sequence[str]) -> Iterator[Any]:
        key = decode_key(MODULE, record.key)
        if key.group_id not in groups:
            return
        name = coordinator_key(key.group_id, bytes(key.topic_id), key.partition)
        value = None
        if record.value is not None:
            kind = int.from_bytes(record.key[:2], "big")
            decoded = decode_value(MODULE, kind, record.value)
            value = {
                field: shown
                for field, shown in self.plain(decoded).items()
                if field not in NO_TIMES
            }
            if hasattr(decoded, "create_timestamp"):
                value["same time"] = decoded.create_timestamp == decoded.write_timestamp
        yield {
            "key": [key.group_id, self.names.get(bytes(key.topic_id), "?"), key.partition],
            "kind": type(key).__name__,
            "size": [len(record.key), -1 if record.value is None else len(record.value)],
            "value": value,
            "found": index == partition_for(name, PARTITIONS),
        }


def _ready(d: ShareDialogue) -> None:
    """A topic, and a coordinator that has loaded each partition of the state's topic."""
    d.client.create_topic(TOPIC, partitions=8)
    d.topic_id = d.client.topic_id(TOPIC)
    d.names[d.topic_id] = TOPIC
    key = coordinator_key("any", d.topic_id, 0)
    request = m.FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
    wait_for(lambda: d.client.call(request, 6).coordinators[0].error_code == 0, "a coordinator")
    for number in range(30):
        asked = shapes.summary_request(f"ready-{number}", [PartitionEpoch(d.topic_id, 0, -1)])
        wait_for(functools.partial(_is_loaded, d, asked), "state that is loaded")


def _is_loaded(d: ShareDialogue, request: Any) -> bool:
    answer = d.client.call(request, 1).results[0].partitions[0]
    return answer.error_code not in NOT_READY


def not_initialized(d: ShareDialogue) -> None:
    """Share partitions that nobody initialized."""
    d.read("none", 0, 0)
    d.write("none", 0, 0, 0, 0, [(0, 9, ACKNOWLEDGED, 1)])
    d.delete("none", 0)
    for version in (0, 1):
        d.summary("none", 0, 5, version)


def initializes(d: ShareDialogue) -> None:
    """State epochs rise; numbers have bounds; topics exist."""
    for start_offset in (-1, 0, 7, -5, LAST_OFFSET):
        d.initialize("i", 0, 0, start_offset)
        d.summary("i", 0)
    for epoch in (3, 3, 2, 2147483647, 5):
        d.initialize("i", 1, epoch, 4)
        d.read("i", 1, 0)
    for epoch in (-1, -2147483648):
        d.initialize("i", 2, epoch, 0)
    for partition in (-1, 8, 2147483647):
        d.initialize("i", partition, 0, 0)
    for topic_id in (UNKNOWN_ID, bytes(16)):
        d.initialize("i", 0, 0, 0, topic_id=topic_id)
        d.initialize("i", -1, 0, 0, topic_id=topic_id)


def reads(d: ShareDialogue) -> None:
    """Leader epochs fence, and are written down when they change."""
    d.initialize("r", 0, 2, 10)
    d.write("r", 0, 2, 0, 10, [(10, 19, ACKNOWLEDGED, 1), (20, 29, AVAILABLE, 2)], 10)
    for epoch in (0, 5, 5, 4, 6, -1, 2147483647, 7):
        d.read("r", 0, epoch)
        d.summary("r", 0, epoch)
    d.write("r", 0, 2, 6, 12)
    d.initialize("r", 0, 3, -1)
    d.read("r", 0, 6)
    d.summary("r", 0)
    for partition in (-1, 1, 8):
        d.read("r", partition, 0)
        d.summary("r", partition)
    for topic_id in (UNKNOWN_ID, bytes(16)):
        d.read("r", 0, 0, topic_id=topic_id)
        d.summary("r", 0, topic_id=topic_id)


def fenced_writes(d: ShareDialogue) -> None:
    """Stale and forged epochs."""
    d.initialize("f", 0, 4, 0)
    d.read("f", 0, 3)
    one = [(0, 9, ACKNOWLEDGED, 1)]
    for state_epoch, leader_epoch in (
        *((4, 2), (3, 3), (3, 2), (5, 3), (4, 4), (2147483647, 2147483647)),
        *((-1, 3), (4, -1), (-1, -1), (4, 3)),
    ):
        d.write("f", 0, state_epoch, leader_epoch, 0, one)
        d.summary("f", 0)
    d.read("f", 0, 3)
    for partition in (-1, 5, 8):
        d.write("f", partition, 4, 3, 0, one)
    d.write("f", 0, 4, 3, 0, one, topic_id=UNKNOWN_ID)
    d.write("f", 0, 4, 3, 5, one, version=0)
    d.read("f", 0, 3)


def start_offsets(d: ShareDialogue) -> None:
    """A start offset never goes back, and the count of deliveries belongs to it."""
    d.initialize("s", 0, 0, -1)
    for start_offset, complete in (
        *((-1, -1), (-1, 3), (10, 4), (10, 2), (10, 6), (5, 100), (-1, 100), (20, 0)),
        *((-9, 1), (20, -7), (LAST_OFFSET, 5)),
    ):
        d.write("s", 0, 0, 0, start_offset, [(12, 24, ACKNOWLEDGED, 1)], complete)
        d.summary("s", 0)
        d.read("s", 0, 0)


def overlapping(d: ShareDialogue) -> None:
    """Batches over batches: counts decide, then states."""
    d.initialize("o", 0, 0, 0)
    for batches in (
        [(0, 99, AVAILABLE, 1)],
        [(10, 19, ACKNOWLEDGED, 1), (20, 29, ARCHIVED, 1)],
        [(15, 24, AVAILABLE, 2)],
        [(0, 99, AVAILABLE, 1)],
        [(50, 59, ARCHIVING, 3), (50, 59, ARCHIVED, 3), (55, 64, ACKNOWLEDGED, 3)],
        [(70, 79, 9, 1), (80, 84, -1, 2), (85, 89, 127, -3), (90, 94, -128, 32767)],
        [(100, 100, AVAILABLE, 1), (101, 101, AVAILABLE, 1), (103, 103, AVAILABLE, 1)],
        [(0, 200, AVAILABLE, 0)],
        [(-20, -11, AVAILABLE, 1), (-5, 4, ARCHIVED, 9)],
    ):
        d.write("o", 0, 0, 0, 0, batches)
        d.read("o", 0, 0)
    d.write("o", 0, 0, 0, 57)
    d.read("o", 0, 0)
    d.initialize("o", 1, 0, -1)
    d.write("o", 1, 0, 0, -1, [(-20, -11, AVAILABLE, 1), (-15, -5, ACKNOWLEDGED, 2)])
    d.read("o", 1, 0)


def backward(d: ShareDialogue) -> None:
    """Batches that end before they begin, and where no offset follows."""
    d.initialize("b", 0, 0, 0)
    d.write("b", 0, 0, 0, 0, [(9, 5, AVAILABLE, 1)])
    d.read("b", 0, 0)
    d.write("b", 0, 0, 0, 0, [(20, 29, AVAILABLE, 1)])
    d.read("b", 0, 0)
    d.write("b", 0, 0, 0, 10, [(20, 29, AVAILABLE, 1)])
    d.read("b", 0, 0)
    for batches in (
        [(9, 5, AVAILABLE, 1)],
        [(40, 35, AVAILABLE, 1)],
        [(30, 39, AVAILABLE, 1), (50, 45, AVAILABLE, 1)],
        [(50, 49, AVAILABLE, 1), (60, 69, AVAILABLE, 1)],
        [(60, LAST_OFFSET, AVAILABLE, 1)],
        [(LAST_OFFSET, LAST_OFFSET, AVAILABLE, 1), (60, 69, AVAILABLE, 1)],
        [(60, LAST_OFFSET - 1, AVAILABLE, 1)],
    ):
        d.write("b", 0, 0, 0, 0, batches)
    d.read("b", 0, 0)
    d.initialize("b", 1, 0, 0)
    d.write("b", 1, 0, 0, 0, [(60, LAST_OFFSET, AVAILABLE, 1)])
    d.read("b", 1, 0)


def snapshots(d: ShareDialogue) -> None:
    """After so many updates comes a snapshot; initializing does not start the count anew."""
    d.initialize("n", 0, 0, 0)
    for number in range(14):
        d.write("n", 0, 0, 0, number // 3, [(number * 2, number * 2, ACKNOWLEDGED, 1)], number)
    d.read("n", 0, 1)
    d.write("n", 0, 0, 1, 5)
    d.initialize("n", 0, 1, 100)
    for number in range(5):
        d.write("n", 0, 1, 1, 100, [(100 + number, 100 + number, AVAILABLE, 1)])
    d.read("n", 0, 1)


def deletions(d: ShareDialogue) -> None:
    """What is deleted can begin anew, from low epochs."""
    d.initialize("d", 0, 9, 5)
    d.read("d", 0, 8)
    d.write("d", 0, 9, 8, 6, [(6, 7, ACKNOWLEDGED, 1)])
    d.delete("d", 0)
    d.delete("d", 0)
    d.read("d", 0, 8)
    d.summary("d", 0)
    d.initialize("d", 0, 0, 1)
    d.read("d", 0, 0)
    for partition in (-1, 8):
        d.delete("d", partition)
    d.delete("d", 0, topic_id=UNKNOWN_ID)


def large_lists(d: ShareDialogue) -> None:
    """Lists that a record has room for, and one that it has not."""
    d.initialize("l", 0, 0, 0)
    for count in (3000, 60_000):
        batches = [(2 * number, 2 * number, AVAILABLE, 1) for number in range(count)]
        d.write("l", 0, 0, 0, 0, batches)
        d.read("l", 0, 0)
    same = [(number % 1000, number % 1000, AVAILABLE, 1) for number in range(20_000)]
    d.initialize("l", 1, 0, 0)
    d.write("l", 1, 0, 0, 0, same)
    d.read("l", 1, 0)


def several(d: ShareDialogue) -> None:
    """Many partitions at once, topics and partitions that are named twice, and none."""
    epochs = [InitializePartition(d.topic_id, index, index, index) for index in (0, 1, 1, 2, -1, 9)]
    request = shapes.initialize_request("m", epochs)
    d.ask("initialize", request, 0)
    request.topics = request.topics * 2
    d.ask("initialize, topics twice", request, 0)
    asked = [PartitionEpoch(d.topic_id, index, 1) for index in (0, 1, 3, -1, 9)]
    asked += [PartitionEpoch(UNKNOWN_ID, index, 1) for index in (0, -1)]
    d.ask("read", shapes.read_request("m", asked), 0)
    d.ask("summary", shapes.summary_request("m", asked), 1)
    writes = [
        WritePartition(d.topic_id, index, 2, 1, 5, 0, [StateBatch(5, 5, AVAILABLE, index)])
        for index in (0, 1, 2, 3)
    ]
    d.ask("write", shapes.write_request("m", writes), 1)
    d.ask("delete", shapes.delete_request("m", [PartitionId(d.topic_id, x) for x in (0, 3)]), 0)
    for name, made, version in (
        ("initialize", shapes.initialize_request("m", epochs), 0),
        ("read", shapes.read_request("m", asked), 0),
        ("write", shapes.write_request("m", writes), 1),
        ("summary", shapes.summary_request("m", asked), 1),
        ("delete", shapes.delete_request("m", [PartitionId(d.topic_id, 0)]), 0),
    ):
        topics: Any = made.topics
        made.group_id = ""
        d.ask(f"{name} of no group", made, version)
        made.group_id = " "
        d.ask(f"{name} of a blank group", made, version)
        made.group_id = "m"
        made.topics = []
        d.ask(f"{name} of no topics", made, version)
        made.topics = topics
        topics[0].partitions = []
        d.ask(f"{name} of no partitions", made, version)


def found(d: ShareDialogue) -> None:
    """FindCoordinator: keys that are none."""
    name = coordinator_key("g", d.topic_id, 0).split(":")[1]
    for key in (
        *("g:TOPIC:0", "a:b:TOPIC:1", ":TOPIC:0", " :TOPIC:0", "g:TOPIC:-1", "g:TOPIC:+1"),
        *("g:TOPIC:007", "g:TOPIC:2147483648", "g:TOPIC:", "g:TOPIC", "g:TOPIC:0:", "g:TOPIC:x"),
        *("g::0", "g:TOPIC :0", "", "::", "g:AAAA:0", "g:TOPIC:0::", "g:TOPICxx:0"),
    ):
        asked = key.replace("TOPIC", name)
        request = m.FindCoordinatorRequest(key_type=2, coordinator_keys=[asked])
        answer = d.client.call(request, 6).coordinators[0]
        d.answers[key] = [answer.error_code, answer.node_id >= 0, answer.key == asked]


def deleted_topics(d: ShareDialogue) -> None:
    """A topic takes with it what share groups had of it."""
    d.client.create_topic("share-gone", partitions=2)
    topic_id = d.client.topic_id("share-gone")
    d.names[topic_id] = "share-gone"
    asked = shapes.summary_request("ready", [PartitionEpoch(topic_id, 0, -1)])
    wait_for(lambda: _is_loaded(d, asked), "a topic that the coordinator knows")
    for partition in (0, 1):
        d.initialize("g", partition, 0, 0, topic_id=topic_id)
    d.initialize("g", 0, 0, 0)
    topic = m.DeleteTopicsRequest.DeleteTopicState(name="share-gone")
    d.client.call(m.DeleteTopicsRequest(topics=[topic], timeout_ms=10_000), 6)
    wait_for(lambda: sum(record["value"] is None for record in d.records(["g"])) == 2, "tombstones")
    d.summary("g", 0, topic_id=topic_id)
    d.delete("g", 0, topic_id=topic_id)


PARTS: list[tuple[Callable[[ShareDialogue], None], str]] = [
    (not_initialized, "none"),
    (initializes, "i"),
    (reads, "r"),
    (fenced_writes, "f"),
    (start_offsets, "s"),
    (overlapping, "o"),
    (backward, "b"),
    (snapshots, "n"),
    (deletions, "d"),
    (large_lists, "l"),
    (several, "m"),
    (found, "g"),
    (deleted_topics, "g"),
]


def run(bootstrap: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(part, label -> answer) of every part."""
    d = ShareDialogue(bootstrap)
    _ready(d)
    for part, group in PARTS:
        d.answers = {}
        part(d)
        d.answers["records"] = d.records([group])
        yield part.__name__, json.loads(json.dumps(d.answers))
    d.client.close()


def main() -> None:
    answers = dict(run(sys.argv[1]))
    with open(sys.argv[2], "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(json.dumps(answers, sort_keys=True, separators=(",", ":")).encode())


if __name__ == "__main__":
    main()
