"""What a live Apache Kafka does with rejected records when the disk of their letters is full."""

from __future__ import annotations

import pathlib

from tests.golden.coordinator.dead_letter_dialogues import PROPERTIES
from tests.support.kafka import running_kafka
from tests.support.share.full_disk import FullDisk, small_disk


def test_kafka_archives_without_letters_what_is_rejected_meanwhile(tmp_path: pathlib.Path) -> None:
    """Its directory is offline from the first failure on: what follows is given up, too."""
    others, small = tmp_path / "others", tmp_path / "small"
    settings = {**PROPERTIES, "log.dirs": f"{others},{small}"}
    with (
        small_disk(small),
        running_kafka(tmp_path / "kafka", settings) as bootstrap,
        FullDisk(bootstrap, others, small) as full,
    ):
        full.fill()
        full.reject(0)
        full.free()
        full.reject(1)
