"""`kwire log`: dump, verify and stats of Kafka's directories and of damaged ones."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from kwire.cli.main import main
from kwire.clock import SystemClock
from kwire.log.partition.config import LogConfig
from kwire.log.recovery.opening import open_log
from kwire.log.tools.verification import kind_of
from kwire.protocol.records import Record, build_batch
from tests.support import data_directories as golden


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        name: golden.unpack(name, tmp_path_factory.mktemp(name)) for name in ("clean", "killed")
    }


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """A partition that kwire wrote, of two segments with several index entries each."""
    path = tmp_path / "topic-0"
    config = LogConfig(segment_bytes=6000, index_interval_bytes=500)
    clock = SystemClock()
    log = open_log(str(path), "topic", 0, bytes(16), config, clock)
    for at in range(40):
        records = [Record(0, clock.wall_ms() + at, b"key-%d" % at, bytes([at]) * 200)]
        log.append_as_leader(memoryview(build_batch(records)), leader_epoch=at // 20)
    log.close(sync=True)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    status = main(["log", *arguments])
    return status, capsys.readouterr().out.splitlines()


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    status, lines = run(capsys, *arguments, "--json")
    assert status == 0
    return [json.loads(line) for line in lines]


def test_kafkas_clean_directory_has_no_fault(
    directories: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines = run(capsys, "verify", "--deep", str(directories["clean"]))
    assert status == 0, lines
    assert "0 faults" in lines[-1]


def test_faults_of_the_killed_directory_are_named(
    directories: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = directories["killed"]
    status, lines = run(capsys, "verify", str(path))
    assert status == 1
    log = "00000000000000000000.log"
    junk = re.fullmatch(f"{path}/junk-0/{log}: .+ at byte ([0-9]+)", lines[0])
    torn = re.fullmatch(
        f"{path}/torn-0/{log}: a batch of ([0-9]+) bytes of which ([0-9]+) are there"
        " at byte ([0-9]+)",
        lines[1],
    )
    assert junk is not None, lines
    assert torn is not None, lines
    size_bytes, there_bytes, position = map(int, torn.groups())
    assert position + there_bytes == (path / "torn-0" / log).stat().st_size < position + size_bytes
    for line in lines[2:-1]:  # whether an index entry is behind it hangs on the batches' sizes
        assert line.startswith(f"{path}/torn-0/00000000000000000000.timeindex: an entry behind")
    _, lines = run(capsys, "verify", "--json", str(path))
    assert json.loads(lines[0])["position"] == int(junk[1])


def test_records_are_dumped_with_what_they_mean(
    directories: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    found = rows(capsys, "dump", "--records", str(directories["clean"]))
    assert not [row for row in found if "error" in row]
    expected = golden.expected("clean")["topics"]["rich"]["partitions"]["0"]["records"]
    file = f"{directories['clean']}/rich-0/00000000000000000000.log"
    records = [row for row in found if row["file"] == file and "offset" in row]
    assert [row["offset"] for row in records] == [row[0] for row in expected]
    kinds = {row.get("type") for row in found}
    assert {"TopicRecord", "OffsetCommitKey", "TransactionLogKey", "ShareSnapshotKey"} <= kinds
    assert {row["control"] for row in found if isinstance(row.get("control"), str)} >= {
        "commit",
        "abort",
        "leader_change",
    }
    assert {row["kind"] for row in found} >= {
        "segment",
        "offset index",
        "time index",
        "transaction index",
        "producer snapshot",
        "metadata snapshot",
        "offsets",
        "epochs",
        "partition metadata",
        "properties",
    }


def test_stats_sum_up_each_partition(partition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = rows(capsys, "stats", str(partition))
    assert row["segments"] == len(list(partition.glob("*.log")))
    assert (row["records"], row["first_offset"], row["next_offset"]) == (40, 0, 40)
    assert row["codecs"] == {"none": 40}
    assert row["problems"] == 0


@pytest.mark.parametrize(
    ("file", "damage", "reason"),
    [
        ("0.log", lambda d: d[:70] + b"\xff" + d[71:], "the checksum of the batch at offset 0"),
        ("0.log", lambda d: d[:-10], "bytes of which"),
        ("0.log", lambda d: d + bytes(100), "100 zeros behind the last batch"),
        ("0.log", lambda d: d + b"garbage" * 20, "byte"),
        ("0.log", lambda d: d + d, "is due"),
        ("0.index", lambda d: d[:4] + bytes([0, 0, 0, 9]) + d[8:], "is no batch"),
        ("0.index", lambda d: d + b"abc", "half an entry"),
        ("0.index", lambda d: d[8:] + d[:8], "does not ascend"),
        ("0.index", None, "is missing"),
        ("0.timeindex", lambda d: d[:7] + b"\x01" + d[8:], "is not the largest"),
        ("1.snapshot", lambda d: d[:-1] + b"\x01", "CRC"),
        ("leader-epoch-checkpoint", lambda d: b"0\n1\n", "announced"),
        ("leader-epoch-checkpoint", lambda d: d.replace(b"1 20", b"1 21"), "for offset 20, whose"),
        ("leader-epoch-checkpoint", lambda d: b"0\n1\n0 0\n", "has epoch 0 for offset 20"),
        ("leader-epoch-checkpoint", None, "is missing"),
    ],
)
def test_every_damage_is_named_with_its_place(
    partition: Path, capsys: pytest.CaptureFixture[str], file: str, damage: Any, reason: str
) -> None:
    assert run(capsys, "verify", str(partition))[0] == 0
    if file[0].isdigit():
        number, _, suffix = file.partition(".")
        path = sorted(partition.glob(f"*.{suffix}"))[0 if number == "0" else -1]
    else:
        path = partition / file
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage(path.read_bytes()))
    status, lines = run(capsys, "verify", str(partition))
    assert status == 1
    assert any(line.startswith(str(path)) and reason in line for line in lines), lines


@pytest.mark.parametrize(
    ("suffix", "damage", "reason"),
    [
        (".index", lambda d: d + b"abc", "half an entry"),
        (".index", lambda d: d[8:] + d[:8], "does not ascend"),
        (".timeindex", lambda d: d[12:] + d[:12], "does not ascend"),
        (".timeindex", lambda d: d[:-1], "half an entry"),
    ],
)
def test_an_index_alone_is_looked_at_too(
    partition: Path, capsys: pytest.CaptureFixture[str], suffix: str, damage: Any, reason: str
) -> None:
    path = min(partition.glob(f"*{suffix}"))
    assert run(capsys, "verify", str(path))[0] == 0
    path.write_bytes(damage(path.read_bytes()))
    status, lines = run(capsys, "verify", str(path))
    assert status == 1
    assert lines[0].startswith(str(path))
    assert reason in lines[0]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (None, "would be shown"),
        (lambda d: d[:-34], "would be shown"),
        (lambda d: d[:9] + b"\x63" + d[10:], "is no abort of producer 99"),
        (lambda d: d[:25] + bytes([d[25] + 1]) + d[26:], "is no abort of producer"),
        (lambda d: d + d[-34:-16] + b"\0\0\0\0\0\0\x0f\xff" + d[-8:], "behind the last batch"),
        (lambda d: d + b"x", "no entry in order"),
    ],
)
def test_transaction_indexes_are_compared_with_the_markers(
    directories: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    damage: Any,
    reason: str,
) -> None:
    """A missing one would show aborted records."""
    partition = tmp_path / "tx-0"
    shutil.copytree(directories["clean"] / "tx-0", partition)
    assert run(capsys, "verify", str(partition))[0] == 0
    path = min(partition.glob("*.txnindex"))
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage(path.read_bytes()))
    status, lines = run(capsys, "verify", str(partition))
    assert status == 1
    assert any(line.startswith(str(path)) and reason in line for line in lines), lines


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("meta.properties", b"version=1\nnode.id=1\n"),
        ("meta.properties", b"version=1\nnode.id=x\ncluster.id=a\n"),
        ("meta.properties", b"version=1\nnode.id=1\ncluster.id=a\ndirectory.id=short\n"),
        (".kafka_cleanshutdown", b"{}"),
        (".kafka_cleanshutdown", b"[1"),
        ("__cluster_metadata-0/quorum-state", b'{"leaderId":1}'),
        ("__cluster_metadata-0/quorum-state", b"0"),
        ("recovery-point-offset-checkpoint", b"0\n1\nt 0\n"),
        ("log-start-offset-checkpoint", b"1\n0\n"),
        ("replication-offset-checkpoint", b"0\n2\nt 0 5\n"),
        ("cleaner-offset-checkpoint", b"\xff"),
        ("plain-0/partition.metadata", b"version: 0\n"),
        ("plain-0/leader-epoch-checkpoint", b"0\n2\n5 3\n4 9\n"),
    ],
)
def test_small_files_that_make_no_sense_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, content: bytes
) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    status, lines = run(capsys, "verify", str(tmp_path))
    assert status == 1, lines
    assert lines[0].startswith(str(path))


def test_every_kind_of_file_is_dumped(
    directories: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each file of Kafka's directories by itself: verified, and its dump says something."""
    kinds: dict[str, int] = {}
    told: dict[str, None] = {}
    for path in sorted(directories["clean"].rglob("*")):
        kind = kind_of(str(path)).name
        if not path.is_file() or kind == "other" or kinds.setdefault(kind, 0) >= 8:
            continue
        kinds[kind] += 1
        assert run(capsys, "verify", str(path))[0] == 0
        status, lines = run(capsys, "dump", str(path))
        assert status == 0
        if lines:
            told[kind] = None
        assert run(capsys, "dump", "--json", str(path))[0] == 0
    assert (
        sorted(told)
        == sorted(kinds)
        == [
            "clean shutdown",
            "epochs",
            "metadata snapshot",
            "offset index",
            "offsets",
            "partition metadata",
            "producer snapshot",
            "properties",
            "quorum state",
            "segment",
            "time index",
            "transaction index",
        ]
    )


@pytest.mark.parametrize("seed", range(30))
def test_no_garbage_makes_it_fall(
    directories: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    draw = random.Random(seed)
    partitions = [p for p in sorted(directories["clean"].iterdir()) if p.is_dir()]
    copy = tmp_path / draw.choice(partitions).name
    shutil.copytree(directories["clean"] / copy.name, copy)
    for file in sorted(copy.iterdir()):
        file.chmod(0o644)
        data = bytearray(file.read_bytes()[:100_000])
        for _ in range(draw.randint(0, 3)):
            if data:
                data[draw.randrange(len(data))] = draw.randrange(256)
        file.write_bytes(data[: draw.randint(0, len(data))] if draw.random() < 0.3 else data)
    for arguments in (["verify", "--deep"], ["dump", "--records"], ["stats"]):
        assert main(["log", *arguments, str(copy)]) in (0, 1)
    assert "Traceback" not in capsys.readouterr().err


def test_wrong_arguments_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for arguments in (["walk"], ["dump"], ["dump", "--deep", "x"], ["verify", str(tmp_path / "x")]):
        assert main(["log", *arguments]) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("action", ["dump", "verify", "stats"])
def test_a_place_without_kafkas_files_is_a_wrong_argument(
    action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistyped directory must not look like one without faults."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "notes.txt").write_text("x")
    reasons = {
        tmp_path: "no file of a data directory there",
        tmp_path / "sub" / "notes.txt": "is no file of a log by its name "
        "(00000000000000000000.log, .index, ...)",
    }
    for path, reason in reasons.items():
        assert main(["log", action, str(path)]) == 2
        written = capsys.readouterr()
        assert written.out == ""
        assert written.err == f"kwire: {path}: {reason}\n"
