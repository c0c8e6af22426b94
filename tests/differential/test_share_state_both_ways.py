"""The state of share partitions goes over: Apache Kafka goes on with a directory of kwire's, and
kwire with what Kafka made of it; Kafka's dump tool reads what kwire wrote (needs a JVM).
"""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
from functools import partial
from typing import Any

from kwire.protocol import messages as m
from kwire.share import messages as shapes
from kwire.share.persister import (
    InitializePartition,
    PartitionEpoch,
    PartitionId,
    StateBatch,
    WritePartition,
)
from kwire.testing.cluster import Broker, wait_for
from tests.support.kafka import kafka_libs, running_kafka
from tests.support.wire import WireClient

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
}
TOPIC, PARTITIONS = "both-ways", 4
GROUPS = ("one", "two:with:colons", "three")
NOT_READY = (3, 14, 15, 16)


class Asking:
    """Asks one broker, at the leader epoch that is next."""

    def __init__(self, bootstrap: str) -> None:
        self.client = WireClient(bootstrap)

    def topic(self) -> bytes:
        if TOPIC not in self.client.topics():
            self.client.create_topic(TOPIC, partitions=PARTITIONS)
        topic_id = self.client.topic_id(TOPIC)
        request = m.FindCoordinatorRequest(
            key_type=2, coordinator_keys=["g:AAAAAAAAAAAAAAAAAAAAAQ:0"]
        )
        wait_for(lambda: not self.client.call(request, 6).coordinators[0].error_code, "the topic")
        for group in (*GROUPS, *(f"ready-{number}" for number in range(20))):
            wait_for(partial(self._is_ready, group, topic_id), "state that is loaded")
        return topic_id

    def _is_ready(self, group: str, topic_id: bytes) -> bool:
        asked = [PartitionEpoch(topic_id, index, -1) for index in range(PARTITIONS)]
        found = shapes.summary_results(self.client.call(shapes.summary_request(group, asked), 1))
        return all(x.error_code not in NOT_READY for x in found)

    def begin(self, topic_id: bytes) -> None:
        for group in GROUPS:
            asked = [InitializePartition(topic_id, x, 1, 10 * x - 1) for x in range(PARTITIONS)]
            found = self.client.call(shapes.initialize_request(group, asked), 0)
            assert not any(x.error_code for x in shapes.initialize_results(found))

    def go_on(self, topic_id: bytes, leader_epoch: int) -> None:
        """Writes that lie over those of before; partition 3 of the last group begins anew."""
        for group in GROUPS:
            epochs = [PartitionEpoch(topic_id, x, leader_epoch) for x in range(PARTITIONS)]
            read = shapes.read_results(self.client.call(shapes.read_request(group, epochs), 0))
            assert not any(x.error_code for x in read)
            for number in range(5):
                changes = [
                    WritePartition(
                        topic_id, state.partition, state.state_epoch, leader_epoch,
                        max(state.start_offset, 0) + number * state.partition, number,
                        [StateBatch(20 + number, 40 + 2 * number, (0, 2, 3, 4)[number % 4],
                                    leader_epoch + number)],
                    )
                    for state in read
                ]  # fmt: skip
                found = self.client.call(shapes.write_request(group, changes), 1)
                assert not any(x.error_code for x in shapes.write_results(found))
        gone = [PartitionId(topic_id, PARTITIONS - 1)]
        found = self.client.call(shapes.delete_request(GROUPS[-1], gone), 0)
        assert not any(x.error_code for x in shapes.delete_results(found))
        anew = [InitializePartition(topic_id, PARTITIONS - 1, 0, leader_epoch)]
        self.client.call(shapes.initialize_request(GROUPS[-1], anew), 0)
        leads = [PartitionEpoch(topic_id, PARTITIONS - 1, leader_epoch)]
        self.client.call(shapes.read_request(GROUPS[-1], leads), 0)

    def look(self, topic_id: bytes, leader_epoch: int) -> list[Any]:
        """Everything; a lower leader epoch is fenced."""
        shown: list[Any] = []
        for group in GROUPS:
            asked = [PartitionEpoch(topic_id, x, -1) for x in range(PARTITIONS)]
            found = self.client.call(shapes.summary_request(group, asked), 1)
            shown.append(sorted(shapes.summary_results(found)))
        for group in GROUPS:
            for epoch in (leader_epoch - 1, leader_epoch):
                asked = [PartitionEpoch(topic_id, x, epoch) for x in range(PARTITIONS)]
                found = self.client.call(shapes.read_request(group, asked), 0)
                shown.append(
                    sorted(x._replace(error_message=None) for x in shapes.read_results(found))
                )
        return shown


def test_state_goes_to_kafka_and_back(tmp_path: pathlib.Path) -> None:
    libs = kafka_libs()
    data = tmp_path / "kwire"
    with Broker(data_dir=data, options=SETTINGS) as broker:
        asking = Asking(broker.bootstrap)
        topic_id = asking.topic()
        asking.begin(topic_id)
        asking.go_on(topic_id, 3)
        shown = asking.look(topic_id, 3)
        asking.client.close()
        broker.kill()
    dumped_by_kafka(libs, data)
    copy = tmp_path / "kafka" / "node-1" / "data"
    shutil.copytree(data, copy)
    (copy / ".lock").unlink(missing_ok=True)
    with running_kafka(tmp_path / "kafka", SETTINGS) as address:
        asking = Asking(address)
        assert asking.topic() == topic_id
        assert asking.look(topic_id, 3) == shown
        asking.go_on(topic_id, 5)
        shown = asking.look(topic_id, 5)
        asking.client.close()
    with Broker(data_dir=copy, options=SETTINGS) as broker:
        asking = Asking(broker.bootstrap)
        assert asking.topic() == topic_id
        assert asking.look(topic_id, 5) == shown
        asking.client.close()


def dumped_by_kafka(libs: pathlib.Path, data: pathlib.Path) -> None:
    """Kafka's own tool decodes every record of the topic."""
    segments = sorted(data.glob("__share_group_state-*/*.log"))
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{libs}/*"]
    command += ["org.apache.kafka.tools.DumpLogSegments", "--share-group-state-decoder"]
    command += ["--deep-iteration", "--files", ",".join(map(str, segments))]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    records = re.findall(r"key: (\{.*?\}) payload: (\{.*\}|<DELETE>)", found)
    assert len(records) == len(re.findall(r"\| offset: ", found)), found
    for kind in ("snapshotEpoch", "deliveryCompleteCount", "stateBatches", "startOffset"):
        assert any(kind in value for _, value in records), found
