"""Any file of a whole data directory may be garbage: the node starts and says what it repaired, or
refuses in one line that names the file. Never a traceback, never silence about what was lost.

The metadata log, its snapshots, `quorum-state`, `meta.properties`, the checkpoints and the internal
topics of Kafka's own directories are flipped, cut, extended, replaced and removed at random.
"""

from __future__ import annotations

import asyncio
import logging
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.config.broker_config import BrokerConfig
from kwire.network.loop import new_event_loop
from kwire.node.node import Node, StartError
from tests.support import data_directories as golden
from tests.support.effort import seeds

KEPT = ("__cluster_metadata-0", "__consumer_offsets-0", "__transaction_state-1", "tx-1", "plain-0")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        name: golden.unpack(name, tmp_path_factory.mktemp(name)) for name in ("clean", "killed")
    }


def _copy(source: Path, target: Path) -> None:
    """The directory's own files, its metadata and a few partitions."""
    target.mkdir()
    for entry in sorted(source.iterdir()):
        if entry.is_file():
            shutil.copy(entry, target / entry.name)
        elif entry.name in KEPT:
            shutil.copytree(entry, target / entry.name)
    for path in target.rglob("*"):
        if path.is_file():
            path.chmod(0o644)


def _damage(file: Path, draw: random.Random) -> str:
    data = bytearray(file.read_bytes())
    kind = draw.choice(["flip", "overwrite", "cut", "extend", "replace", "zero", "remove"])
    if kind == "flip" and data:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif kind == "overwrite" and data:
        at = draw.randrange(len(data))
        data[at : at + 20] = draw.randbytes(20)
    elif kind == "cut":
        del data[draw.randrange(len(data) + 1) :]
    elif kind == "extend":
        data += draw.randbytes(draw.randint(1, 200))
    elif kind == "replace":
        data[:] = draw.randbytes(draw.randint(0, 300))
    elif kind == "zero":
        data[:] = bytes(len(data))
    if kind == "remove":
        file.unlink()
    else:
        file.write_bytes(data)
    return f"{kind} {file.parent.name}/{file.name}"


def _start(path: Path, look: Callable[[Node], None] = lambda node: None) -> None:
    """Start a node on the directory, look at it and stop it; raises StartError."""
    config = BrokerConfig.load(
        overrides={"log.dirs": str(path), "listeners": "PLAINTEXT://127.0.0.1:0", "node.id": "1"},
        developer=True,
    )
    loop = new_event_loop()
    problems: list[str] = []
    loop.set_exception_handler(lambda _, context: problems.append(str(context)))
    node = Node(config, loop)
    node.on_fatal = problems.append

    async def life() -> None:
        try:
            await asyncio.wait_for(node.start(), 20)
            look(node)
        finally:
            await node.stop()

    try:
        loop.run_until_complete(life())
    finally:
        loop.close()
    assert problems == []


def _attempt(path: Path, done: list[str], caplog: pytest.LogCaptureFixture) -> bool:
    """Whether the node started."""
    caplog.clear()
    try:
        _start(path)
    except StartError as error:
        text = str(error)
        assert "\n" not in text, done
        assert str(path) in text, (done, text)
        return False
    for record in caplog.records:
        assert record.exc_info is None, (done, record.getMessage())
        assert "Traceback" not in record.getMessage(), done
    return True


@pytest.mark.parametrize("seed", seeds(40))
def test_a_node_on_damaged_files(
    seed: int, sources: dict[str, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    draw = random.Random(seed)
    path = tmp_path / "data"
    _copy(sources[draw.choice(["clean", "killed"])], path)
    own = [p for p in sorted(path.iterdir()) if p.is_file()]
    metadata = sorted((path / KEPT[0]).iterdir())
    others = sorted(p for p in path.rglob("*") if p.is_file() and p.parent.name in KEPT[1:])
    kinds = draw.choice([own, metadata, metadata, others])
    files = draw.sample(kinds, min(len(kinds), draw.randint(1, 2)))
    done = [_damage(file, draw) for file in files]
    caplog.set_level(logging.INFO)
    if _attempt(path, done, caplog):
        # What it made of the directory is whole.
        assert _attempt(path, [*done, "second start"], caplog)


def test_a_broker_alone_shows_the_end_that_was_durable(
    sources: dict[str, Path], tmp_path: Path
) -> None:
    """The last segment is lost: ListOffsets told an end below what consumers had seen, until the
    next record came."""
    path = tmp_path / "data"
    _copy(sources["clean"], path)
    end = int(golden.expected("clean")["topics"]["plain"]["partitions"]["0"]["log_end_offset"])
    last = max((path / "plain-0").glob("*.log"))
    assert 0 < int(last.stem) < end
    last.write_bytes(b"")

    def look(node: Node) -> None:
        partition = node.replicas.partition("plain", 0)
        assert partition is not None
        assert partition.log.high_watermark == partition.log.log_end_offset == end

    _start(path, look)
