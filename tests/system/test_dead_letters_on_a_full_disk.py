"""A dead letter topic on a full disk, as Apache Kafka 4.4 takes it
(`tests/differential/test_full_disk_of_dead_letters_live.py`), but that it takes letters again
when there is space."""

from __future__ import annotations

import pathlib

from kwire.testing.cluster import Broker
from tests.golden.coordinator.dead_letter_dialogues import PROPERTIES
from tests.support.share.full_disk import FullDisk, small_disk


def test_records_are_given_up_while_the_disk_of_their_dead_letters_is_full(
    tmp_path: pathlib.Path,
) -> None:
    """The acknowledgement is answered, the record is archived without a letter and comes no more;
    when there is space again the next one leaves a letter."""
    others, small = tmp_path / "others", tmp_path / "small"
    options = {**PROPERTIES, "log.dirs": f"{others},{small}"}
    with (
        small_disk(small),
        Broker(options=options, pass_storage=False) as broker,
        FullDisk(broker.bootstrap, others, small) as full,
    ):
        full.fill()
        full.reject(0)
        full.free()
        full.await_appends()
        full.reject(1)
        assert full.letters() == ["1"]
