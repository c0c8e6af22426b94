"""Requests to a quorum of one, good and bad, as data: what Kafka answers is in raft_answers.jsonl.

`python tests/golden/kraft/raft_requests.py HOST:PORT DIRECTORY_ID CLUSTER_ID` asks a running node 1
(its controller listener) and prints the answers, one JSON object a line. The node must be the only
voter, in epoch 1.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from typing import Any

from kwire.protocol import frame, uuids
from kwire.protocol import messages as m

TOPIC = "__cluster_metadata"
TOPIC_ID = bytes(15) + b"\x01"
OTHER_DIRECTORY = bytes(range(100, 116))
MASKED = (
    "high_watermark",
    "log_start_offset",
    "log_end_offset",
    "last_fetch_timestamp",
    "last_caught_up_timestamp",
    "error_message",
)


def requests(directory_id: bytes, cluster_id: str) -> Iterator[tuple[str, int, Any]]:
    """(name, version, request) of each case."""
    yield from _votes(directory_id, cluster_id)
    yield from _epochs(directory_id, cluster_id)
    yield from _fetches(cluster_id)
    yield from _snapshots(cluster_id)
    yield from _changes(directory_id, cluster_id)


def _votes(directory_id: bytes, cluster_id: str) -> Iterator[tuple[str, int, Any]]:
    request = m.VoteRequest

    def vote(**changes: Any) -> Any:
        fields: dict[str, Any] = {
            "partition_index": 0,
            "replica_epoch": 1,
            "replica_id": 7,
            "replica_directory_id": OTHER_DIRECTORY,
            "voter_directory_id": directory_id,
            "last_offset_epoch": 0,
            "last_offset": 0,
        }
        top = {name: changes.pop(name) for name in ("cluster_id", "voter_id") if name in changes}
        topic = changes.pop("topic", TOPIC)
        fields.update(changes)
        partition = request.PartitionData(**fields)
        return request(
            **{"cluster_id": cluster_id, "voter_id": 1, **top},
            topics=[request.TopicData(topic_name=topic, partitions=[partition])],
        )

    yield "vote in the leader's epoch", 2, vote()
    yield "vote, version 0", 0, vote(replica_epoch=1)
    yield "pre-vote in the leader's epoch", 2, vote(pre_vote=True, last_offset=1 << 40)
    yield "vote in an old epoch", 2, vote(replica_epoch=0)
    yield "vote with a last epoch as high as its own", 2, vote(last_offset_epoch=1)
    yield "pre-vote with a last epoch above its own", 2, vote(pre_vote=True, last_offset_epoch=2)
    yield "vote of a negative replica", 2, vote(replica_id=-1)
    yield "vote with another cluster id", 2, vote(cluster_id="other")
    yield "vote without a cluster id", 2, vote(cluster_id=None)
    yield "vote for another partition", 2, vote(partition_index=1)
    yield "vote for another topic", 2, vote(topic="other")
    yield "vote for another voter", 2, vote(voter_id=5)
    yield "vote for another directory", 2, vote(voter_directory_id=OTHER_DIRECTORY)
    yield "vote without topics", 2, request(cluster_id=cluster_id)


def _epochs(directory_id: bytes, cluster_id: str) -> Iterator[tuple[str, int, Any]]:
    begin, end = m.BeginQuorumEpochRequest, m.EndQuorumEpochRequest

    def begun(epoch: int, leader: int, version: int = 1, **top: Any) -> Any:
        partition = begin.PartitionData(
            partition_index=0, voter_directory_id=directory_id, leader_id=leader, leader_epoch=epoch
        )
        return begin(
            **{"cluster_id": cluster_id, "voter_id": 1, **top},
            topics=[begin.TopicData(topic_name=TOPIC, partitions=[partition])],
            leader_endpoints=[begin.LeaderEndpoint(name="CONTROLLER", host="h", port=1)],
        )

    def ended(epoch: int, leader: int, **top: Any) -> Any:
        partition = end.PartitionData(partition_index=0, leader_id=leader, leader_epoch=epoch)
        return end(
            **{"cluster_id": cluster_id, **top},
            topics=[end.TopicData(topic_name=TOPIC, partitions=[partition])],
        )

    yield "begin of an old epoch", 1, begun(0, 7)
    yield "begin of an old epoch, version 0", 0, begun(0, 7)
    yield "begin by a negative leader", 1, begun(1, -1)
    yield "begin with another cluster id", 1, begun(1, 7, cluster_id="other")
    yield "begin without topics", 1, begin(cluster_id=cluster_id)
    yield "end of an old epoch", 1, ended(0, 7)
    yield "end of an old epoch, version 0", 0, ended(0, 7)
    yield "end by a negative leader", 1, ended(1, -1)
    yield "end with another cluster id", 1, ended(1, 7, cluster_id="other")
    yield "end without topics", 1, end(cluster_id=cluster_id)


def _fetches(cluster_id: str) -> Iterator[tuple[str, int, Any]]:
    request = m.FetchRequest

    def fetch(**changes: Any) -> Any:
        fields: dict[str, Any] = {
            "partition": 0,
            "current_leader_epoch": 1,
            "fetch_offset": 0,
            "last_fetched_epoch": 0,
            "partition_max_bytes": 1 << 20,
        }
        top = {n: changes.pop(n) for n in ("cluster_id", "max_wait_ms") if n in changes}
        topic_id = changes.pop("topic_id", TOPIC_ID)
        fields.update(changes)
        return request(
            **{"cluster_id": cluster_id, "max_wait_ms": 0, **top},
            replica_state=request.ReplicaState(replica_id=-1),
            topics=[
                request.FetchTopic(
                    topic=TOPIC, topic_id=topic_id, partitions=[request.FetchPartition(**fields)]
                )
            ],
        )

    yield "fetch from the beginning", 17, fetch()
    yield "fetch from the beginning, version 18", 18, fetch()
    yield "fetch from the beginning, version 12", 12, fetch()
    yield "fetch from the beginning, version 16", 16, fetch()
    yield "fetch in an old epoch", 17, fetch(current_leader_epoch=0)
    yield "fetch in a later epoch", 17, fetch(current_leader_epoch=2)
    yield "fetch behind the end", 17, fetch(fetch_offset=1 << 40, last_fetched_epoch=1)
    yield "fetch with an unknown epoch", 17, fetch(fetch_offset=2, last_fetched_epoch=9)
    yield "fetch of a negative offset", 17, fetch(fetch_offset=-1)
    yield "fetch of a negative last epoch", 17, fetch(last_fetched_epoch=-1)
    yield "fetch of a negative epoch", 17, fetch(current_leader_epoch=-1)
    yield "fetch with a negative wait", 17, fetch(max_wait_ms=-1)
    yield "fetch with another cluster id", 17, fetch(cluster_id="other")
    yield "fetch of another partition", 17, fetch(partition=1)
    yield "fetch of another topic", 17, fetch(topic_id=OTHER_DIRECTORY)


def _snapshots(cluster_id: str) -> Iterator[tuple[str, int, Any]]:
    request = m.FetchSnapshotRequest

    def snapshot(version_topic: str = TOPIC, **changes: Any) -> Any:
        fields: dict[str, Any] = {
            "partition": 0,
            "current_leader_epoch": 1,
            "snapshot_id": request.SnapshotId(end_offset=12345, epoch=1),
            "position": 0,
        }
        top = {name: changes.pop(name) for name in ("cluster_id",) if name in changes}
        fields.update(changes)
        return request(
            **{"cluster_id": cluster_id, "replica_id": 7, **top},
            topics=[
                request.TopicSnapshot(
                    name=version_topic, partitions=[request.PartitionSnapshot(**fields)]
                )
            ],
        )

    formatted = request.SnapshotId(end_offset=0, epoch=0)
    yield "snapshot that is not there", 1, snapshot()
    yield "snapshot that is not there, version 0", 0, snapshot()
    yield "the formatted snapshot", 1, snapshot(snapshot_id=formatted)
    yield "snapshot in an old epoch", 1, snapshot(current_leader_epoch=0)
    yield "snapshot in a later epoch", 1, snapshot(current_leader_epoch=2)
    yield "snapshot of another topic", 1, snapshot("other")
    yield "snapshot of another partition", 1, snapshot(partition=1)
    yield "snapshot with another cluster id", 1, snapshot(cluster_id="other")
    yield "snapshot without topics", 1, request(cluster_id=cluster_id)


def _changes(directory_id: bytes, cluster_id: str) -> Iterator[tuple[str, int, Any]]:
    describe = m.DescribeQuorumRequest

    def described(topic: str, partition: int = 0) -> Any:
        entry = describe.PartitionData(partition_index=partition)
        return describe(topics=[describe.TopicData(topic_name=topic, partitions=[entry])])

    for version in (0, 1, 2):
        yield f"describe, version {version}", version, described(TOPIC)
    yield "describe another topic", 2, described("other")
    yield "describe another partition", 2, described(TOPIC, 3)
    yield "describe nothing", 2, describe()
    add, remove, update = m.AddRaftVoterRequest, m.RemoveRaftVoterRequest, m.UpdateRaftVoterRequest

    def added(node_id: int, directory: bytes, name: str = "CONTROLLER", **top: Any) -> Any:
        listeners = [add.Listener(name=name, host="127.0.0.1", port=1)] if name else []
        return add(
            **{"cluster_id": cluster_id, "timeout_ms": 1000, **top},
            voter_id=node_id,
            voter_directory_id=directory,
            listeners=listeners,
        )

    yield "add a voter that is there", 1, added(1, directory_id)
    yield "add its id with another directory", 1, added(1, OTHER_DIRECTORY)
    yield "add without a directory", 1, added(5, bytes(16))
    yield "add a negative id", 1, added(-1, OTHER_DIRECTORY)
    yield "add without listeners", 1, added(5, OTHER_DIRECTORY, "")
    yield "add without the controller listener", 1, added(5, OTHER_DIRECTORY, "OTHER")
    yield "add with another cluster id", 1, added(5, OTHER_DIRECTORY, cluster_id="other")

    def removed(node_id: int, directory: bytes, cluster: str = cluster_id) -> Any:
        return remove(cluster_id=cluster, voter_id=node_id, voter_directory_id=directory)

    yield "remove the only voter", 0, removed(1, directory_id)
    yield "remove an unknown voter", 0, removed(5, OTHER_DIRECTORY)
    yield "remove with another directory", 0, removed(1, OTHER_DIRECTORY)
    yield "remove without a directory", 0, removed(5, bytes(16))
    yield "remove a negative id", 0, removed(-1, OTHER_DIRECTORY)
    yield "remove with another cluster id", 0, removed(5, OTHER_DIRECTORY, "other")

    def updated(node_id: int, directory: bytes, epoch: int = 1, high: int = 1, **top: Any) -> Any:
        return update(
            **{"cluster_id": cluster_id, **top},
            current_leader_epoch=epoch,
            voter_id=node_id,
            voter_directory_id=directory,
            listeners=[update.Listener(name="CONTROLLER", host="127.0.0.1", port=1)],
            kraft_version_feature=update.KRaftVersionFeature(
                min_supported_version=0, max_supported_version=high
            ),
        )

    yield "update an unknown voter", 0, updated(5, OTHER_DIRECTORY)
    yield "update in an old epoch", 0, updated(5, OTHER_DIRECTORY, 0)
    yield "update in a later epoch", 0, updated(5, OTHER_DIRECTORY, 2)
    yield "update without a directory", 0, updated(5, bytes(16))
    yield "update of a negative id", 0, updated(-1, OTHER_DIRECTORY)
    yield "update with another cluster id", 0, updated(5, OTHER_DIRECTORY, cluster_id="other")


def plain(value: Any, directory_id: bytes) -> Any:
    """A response as JSON values, without what differs from run to run."""
    if isinstance(value, list | tuple):
        return [plain(item, directory_id) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        return "DIRECTORY" if data == directory_id else data.hex()
    fields = getattr(type(value), "FIELDS", None)
    if fields is None:
        return value
    out: dict[str, Any] = {}
    for name in sorted(fields):
        if name == "records":
            out[name] = bool(value.records)
        elif name == "end_offset":
            out[name] = "END" if value.end_offset > 2 else value.end_offset
        elif name == "port":
            out[name] = "PORT" if value.port > 1 else value.port
        elif name not in MASKED:
            out[name] = plain(getattr(value, name), directory_id)
    return out


def ask(address: tuple[str, int], version: int, request: Any) -> Any:
    with socket.create_connection(address, timeout=30) as connection:
        parts = frame.encode_request(request.API_KEY, version, 1, "raft-requests", request)
        connection.sendall(b"".join(bytes(part) for part in parts))
        data = b""
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            piece = connection.recv(65536)
            if not piece:
                return None
            data += piece
    return frame.decode_response(request.API_KEY, version, memoryview(data)[4:])[1]


def main() -> None:
    host, _, port = sys.argv[1].rpartition(":")
    directory_id, cluster_id = uuids.from_text(sys.argv[2]), sys.argv[3]
    for name, version, request in requests(directory_id, cluster_id):
        response = ask((host, int(port)), version, request)
        answer = None if response is None else plain(response, directory_id)
        print(json.dumps({"case": name, "answer": answer}, sort_keys=True))


if __name__ == "__main__":
    main()
