"""Formatted checkpoints, byte for byte as Apache Kafka 4.4's storage tool writes them.

Vectors in format/checkpoints.jsonl: the tool's arguments, the directory id it chose, and the file.
The clock of each case tells what Kafka's clock told it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kwire.clock import SeededRandom
from kwire.kraft.formatting.log_directories import FormatOptions, format_directories
from kwire.kraft.raft.types import Endpoint
from kwire.kraft.snapshots.content import parse_snapshot
from kwire.protocol import records, uuids

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parent / "format" / "checkpoints.jsonl").read_text().splitlines()
]
FLAGS = {"--standalone": "standalone", "--no-initial-controllers": "no_initial_controllers"}
VALUES = {"--initial-controllers": "initial_controllers", "--release-version": "release_version"}
LISTS = {"--feature": "features", "--add-scram": "scram"}


class ToldClock:
    """Tells the given times one after another, then the last one for ever."""

    def __init__(self, times: list[int]) -> None:
        self._times = times

    def wall_ms(self) -> int:
        return self._times.pop(0) if len(self._times) > 1 else self._times[0]


class ToldRandom(SeededRandom):
    """Draws the directory id that Kafka drew."""

    def __init__(self, first: bytes) -> None:
        super().__init__(1)
        self.first = first

    def random_bytes(self, size_bytes: int) -> bytes:
        return self.first if size_bytes == 16 else super().random_bytes(size_bytes)


def options_of(vector: dict[str, Any], directory: str) -> FormatOptions:
    values: dict[str, Any] = {"features": [], "scram": []}
    arguments = list(vector["arguments"])
    while arguments:
        name = arguments.pop(0)
        if name in FLAGS:
            values[FLAGS[name]] = True
        elif name in VALUES:
            values[VALUES[name]] = arguments.pop(0)
        else:
            values[LISTS[name]].append(arguments.pop(0))
    return FormatOptions(
        cluster_id="a3dpcmUtcGVlci1rYWZrYQ",
        node_id=1,
        directories=[directory],
        metadata_directory=directory,
        has_static_voters=vector["quorum"] == "static",
        endpoint=Endpoint("CONTROLLER", "127.0.0.1", 29931),
        **values,
    )


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["case"] for vector in VECTORS])
def test_checkpoint_is_kafkas(vector: dict[str, Any], tmp_path: Path) -> None:
    expected = bytes.fromhex(vector["checkpoint"])
    times = [header.base_timestamp for _, header in records.iterate_headers(expected)]
    clock = ToldClock([parse_snapshot(expected).last_timestamp_ms, *times])
    random = ToldRandom(uuids.from_text(vector["directory_id"]))
    directory = tmp_path / "data"
    lines = format_directories(options_of(vector, str(directory)), clock=clock, random=random)
    name = "00000000000000000000-0000000000.checkpoint"
    written = (directory / "__cluster_metadata-0" / name).read_bytes()
    assert written == expected
    properties = (directory / "meta.properties").read_text()
    assert f"directory.id={vector['directory_id']}" in properties.splitlines()
    assert "cluster.id=a3dpcmUtcGVlci1rYWZrYQ" in properties.splitlines()
    assert len(lines) == 1
