"""Of recorded logs our cleaner leaves what Apache Kafka 4.4's left of them.

Recorded by tests/differential/test_cleaner_live.py: six partitions with plain, idempotent and
transactional batches of several codecs, tombstones whose horizons pass from round to round.
"""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cleaning import CONFIG, TOPIC, CleaningWorld, plain_outcome

DATA = Path(__file__).parents[1] / "data" / "cleaned.json.gz"
RECORDED: dict[str, Any] = json.loads(gzip.decompress(DATA.read_bytes()))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("round_", range(len(RECORDED["rounds"])))
def test_our_cleaner_leaves_what_kafkas_left(round_: int, compiled: bool) -> None:
    recorded = RECORDED["rounds"][round_]
    config = dataclasses.replace(CONFIG, delete_retention_ms=500)
    world = CleaningWorld(config, partitions=0, compiled=compiled)
    world.disk.process_killed()
    for path, text in recorded["files"].items():
        directory = f"/data/{path}".rpartition("/")[0]
        world.disk.make_directory(directory)
        handle = world.disk.open(f"/data/{path}", create=True)
        world.disk.pwritev(handle, [base64.b64decode(text)], 0)
    world.clock.now_ms = recorded["now_ms"]
    world.start()
    for partition in range(RECORDED["partitions"]):
        log = world.manager.get(TOPIC, partition)
        assert log is not None
        log.update_high_watermark(log.log_end_offset)
    assert world.clean() == RECORDED["partitions"]
    left = {}
    for partition in range(RECORDED["partitions"]):
        world.partition = partition
        left[partition] = (world.shape(), world.rows())
    assert plain_outcome(left) == recorded["left"]
