"""Apache Kafka's dump tool reads what kwire wrote, after a stop or a kill, without complaint."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest

from kwire.clock import SystemClock
from kwire.log.partition.config import LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.recovery.opening import open_log
from kwire.log.types import Origin
from kwire.protocol.records import Codec, Record, build_batch
from kwire.protocol.records.control import end_transaction_marker
from tests.support.kafka import kafka_libs

TOOL = "org.apache.kafka.tools.DumpLogSegments"
CONFIG = LogConfig(segment_bytes=20_000, index_interval_bytes=1000)
# What the tool says of a damaged file. "-1 is followed by N" is its habit for segments above 0.
COMPLAINT = re.compile(
    r"Found timestamp mismatch|Index offset|Mismatches in|Non-consecutive|Non-secutive"
    r"|isvalid: false|Exception|CRC is no longer valid|out of order|invalid bytes at the end",
    re.IGNORECASE,
)


def _fill(log: PartitionLog, seed: int) -> None:
    """Plain, idempotent and transactional batches with all codecs over several segments."""
    draw = random.Random(seed)
    now_ms = log.clock.wall_ms()
    sequences = {3: 0, 4: 0}
    for at in range(150):
        count = draw.randint(1, 20)
        records = [
            Record(
                0, now_ms + at * 3 + i % 2, draw.randbytes(4), draw.randbytes(draw.randint(0, 99))
            )
            for i in range(count)
        ]
        producer_id = draw.choice([-1, 3, 4])
        options = {}
        if producer_id > 0:
            options = {
                "producer_id": producer_id,
                "producer_epoch": 0,
                "base_sequence": sequences[producer_id],
                "transactional": True,
            }
            sequences[producer_id] += count
        batch = build_batch(records, codec=draw.choice(list(Codec)), **options)  # type: ignore[arg-type]
        log.append_as_leader(memoryview(batch), leader_epoch=at // 50)
        if producer_id > 0 and draw.random() < 0.3:
            marker = end_transaction_marker(producer_id, 0, draw.random() < 0.5, 1, now_ms + at * 3)
            log.append_as_leader(marker, leader_epoch=at // 50, origin=Origin.COORDINATOR)


@pytest.mark.parametrize("ending", ["stopped", "killed", "killed and recovered"])
def test_dump_tool_has_no_complaint(tmp_path: Path, ending: str) -> None:
    libs = kafka_libs()
    directory = tmp_path / "topic-0"

    def start() -> PartitionLog:
        return open_log(
            str(directory), "topic", 0, bytes(16), CONFIG, SystemClock(), verify_transactions=False
        )

    log = start()
    _fill(log, 1)
    if ending == "stopped":
        log.close(sync=True)
    elif ending == "killed":
        log.abandon()
    else:
        log.abandon()
        active = Path(log.segments.active.log_path)
        active.write_bytes(active.read_bytes()[:-30])
        start().close()
    files = sorted(
        file
        for file in directory.iterdir()
        if file.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    )
    assert len(files) > 20
    result = subprocess.run(
        [
            "java",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            f"{libs}/*",
            TOOL,
            "--deep-iteration",
            "--files",
            ",".join(map(str, files)),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    complaints = [line for line in result.stdout.splitlines() if COMPLAINT.search(line)]
    assert not complaints
    assert not [line for line in result.stderr.splitlines() if "Exception" in line]
    count = sum(1 for line in result.stdout.splitlines() if line.startswith("| offset:"))
    assert count > 1000
    assert "producerId: 3" in result.stdout
    assert "endTxnMarker: ABORT" in result.stdout


def test_the_complaints_are_recognised(tmp_path: Path) -> None:
    """The same judgement finds a damaged file."""
    libs = kafka_libs()
    directory = tmp_path / "topic-0"
    log = open_log(
        str(directory), "topic", 0, bytes(16), CONFIG, SystemClock(), verify_transactions=False
    )
    _fill(log, 2)
    log.close()
    path = directory / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)
    result = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{libs}/*", TOOL, "--files", str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert COMPLAINT.search(result.stdout + result.stderr)
