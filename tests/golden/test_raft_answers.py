"""A quorum of one answers good and bad requests as Apache Kafka 4.4 does.

The requests are in kraft/raft_requests.py, Kafka's answers in kraft/raft_answers.jsonl. Offsets,
times, and error texts are not compared. Kafka 4.4 fails (-1) where it means to answer a
FetchSnapshot with an error in the partition; kwire gives that error.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kwire.clock import SeededRandom
from kwire.kraft.formatting.log_directories import FormatOptions, format_directories
from kwire.kraft.metadata_log import MetadataLog, metadata_log_config
from kwire.kraft.raft import RaftConfig
from kwire.kraft.raft.types import Endpoint
from kwire.kraft.raft_driver import RaftDriver
from kwire.log.directories.identity_files import parse_properties
from kwire.log.scheduling import ImmediateScheduler
from kwire.pending import Pending
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode

GOLDEN = Path(__file__).parent / "kraft"
ANSWERS = {
    line["case"]: line["answer"]
    for line in map(json.loads, (GOLDEN / "raft_answers.jsonl").read_text().splitlines())
}
CLUSTER_ID = "a3dpcmUtcGVlci1rYWZrYQ"
ENDPOINT = Endpoint("CONTROLLER", "127.0.0.1", 31395)
KAFKA_FAILS = {
    "snapshot that is not there": ErrorCode.SNAPSHOT_NOT_FOUND,
    "snapshot that is not there, version 0": ErrorCode.SNAPSHOT_NOT_FOUND,
    "the formatted snapshot": ErrorCode.SNAPSHOT_NOT_FOUND,
    "snapshot in an old epoch": ErrorCode.FENCED_LEADER_EPOCH,
    "snapshot in a later epoch": ErrorCode.UNKNOWN_LEADER_EPOCH,
    "snapshot of another topic": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    "snapshot of another partition": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}


def _requests_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("raft_requests", GOLDEN / "raft_requests.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REQUESTS = _requests_module()


class StillClock:
    def wall_ms(self) -> int:
        return 1_800_000_000_000

    def time(self) -> float:
        return 1.0


class NoNetwork:
    def send(self, node: int, api_key: int, request: Any, **_: Any) -> Pending[Any]:
        return Pending()

    def disconnect(self, node_id: int) -> None:
        pass


class Answering:
    """A formatted node that leads epoch 1."""

    def __init__(self, root: Path) -> None:
        clock, scheduler = StillClock(), ImmediateScheduler()
        format_directories(
            FormatOptions(
                CLUSTER_ID, 1, [str(root)], str(root), standalone=True, endpoint=ENDPOINT
            ),
            clock=clock,
            random=SeededRandom(1),
        )
        properties = parse_properties((root / "meta.properties").read_bytes())
        self.directory_id = uuids.from_text(properties["directory.id"])
        self.driver = RaftDriver(
            RaftConfig(1, self.directory_id, CLUSTER_ID, endpoints=(ENDPOINT,)),
            MetadataLog.open(str(root), metadata_log_config(), clock, scheduler=scheduler),
            sender=NoNetwork(),
            loop=clock,
            scheduler=scheduler,
            clock=clock,
            random=SeededRandom(1),
        )
        self.driver.start()

    def ask(self, name: str) -> Any:
        cases = {case: (v, r) for case, v, r in REQUESTS.requests(self.directory_id, CLUSTER_ID)}
        version, request = cases[name]
        decoded = type(request).decode(request.encode(version), version)
        reply = self.driver.request(decoded, version, listener="CONTROLLER")
        if not reply.done:
            return None
        response = reply.result()
        back = type(response).decode(_joined(response, version), version)
        return REQUESTS.plain(back, self.directory_id)


def _joined(response: Any, version: int) -> bytes:
    return b"".join(bytes(part) for part in response.encode_parts(version))


@pytest.mark.parametrize("name", list(ANSWERS))
def test_answer_is_kafkas(name: str, tmp_path: Path) -> None:
    answer, expected = Answering(tmp_path / "data").ask(name), ANSWERS[name]
    if name in KAFKA_FAILS:
        assert expected["error_code"] == -1
        assert answer["topics"][0]["partitions"][0]["error_code"] == KAFKA_FAILS[name]
        return
    assert answer == expected


def test_every_case_has_an_answer() -> None:
    names = [name for name, _, _ in REQUESTS.requests(bytes(16), CLUSTER_ID)]
    assert sorted(names) == sorted(ANSWERS)
