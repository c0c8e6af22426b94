"""KAFKA-13194: the cleaner went past the high watermark when it lay in a segment that was not the
active one, so that a record nobody had committed yet replaced one that was committed; when the
former was truncated, both were gone.
"""

from __future__ import annotations

from tests.support.cleaning import CleaningWorld


def test_a_committed_record_outlives_an_uncommitted_one_of_its_key() -> None:
    world = CleaningWorld()
    world.append([(b"key", b"committed")])
    world.roll()
    world.append([(b"key", b"not yet")])
    world.roll()
    world.append([(b"other", b"1")])
    world.log.high_watermark = 1
    world.clean()
    world.log.truncate_to(1)
    assert [(row[1], row[2]) for row in world.rows()] == [(b"key", b"committed")]
