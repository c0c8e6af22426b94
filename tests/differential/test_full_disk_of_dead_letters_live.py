"""What a live Apache Kafka does with rejected records when the disk of their letters is full."""

from __future__ import annotations

import pathlib

from tests.golden.coordinator.dead_letter_dialogues import PROPERTIES
from tests.support.kafka import running_kafka
from tests.support.share.full_disk import FullDisk, small_disk
from tests.system.test_dead_letters_on_a_full_disk import TAKEN


def test_kafka_archives_without_letters_what_is_rejected_meanwhile(tmp_path: pathlib.Path) -> None:
    """Its directory is offline from the first failure on: what follows is given up, too."""
    others, small = tmp_path / "others", tmp_path / "small"
    settings = {**PROPERTIES, "log.dirs": f"{others},{small}"}
    with small_disk(small), running_kafka(tmp_path / "kafka", settings) as bootstrap:
        full = FullDisk(bootstrap, others, small)
        full.fill()
        assert full.reject(0) == TAKEN
        full.free()
        assert full.reject(1) == TAKEN
        full.close()
