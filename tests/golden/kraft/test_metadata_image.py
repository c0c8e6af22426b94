"""Kafka's metadata logs and snapshots: log -> image -> snapshot -> image is the identity.

`tests/golden/data/metadata_log.json.gz` holds the data records of two `__cluster_metadata` logs
that Apache Kafka 4.4 wrote (a node that was started four times, and one that was killed, whose log
starts at a snapshot) and those of every snapshot beside them.
"""

from __future__ import annotations

import gzip
import json
import pathlib
from typing import Any

import pytest

from kwire.kraft.images.difference import difference
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.protocol.metadata_records import decode_record, encode_record

DATA = pathlib.Path(__file__).parents[1] / "data" / "metadata_log.json.gz"
LOGS = {case["case"]: case for case in json.loads(gzip.decompress(DATA.read_bytes()))}
SNAPSHOTS = [(name, snapshot) for name, log in LOGS.items() for snapshot in log["snapshots"]]


def _message(value_hex: str) -> Any:
    return decode_record(bytes.fromhex(value_hex))[0]


def _image_at(name: str, end_offset: int) -> MetadataImage:
    """The image of everything below `end_offset`."""
    log = LOGS[name]
    image = MetadataImage()
    first = log["log"][0][0]
    if first > 3:
        snapshot = min(log["snapshots"])
        records = [_message(value) for value in log["snapshots"][snapshot]]
        image.load(records, int(snapshot[:20]) - 1, int(snapshot[21:]))
    for offset, epoch, value in log["log"]:
        if image.offset < offset < end_offset:
            image.replay(_message(value), offset, epoch)
    return image


def _comparable(values: list[bytes]) -> list[str]:
    """Records in no order, and their features and entities in none: Kafka keeps them in maps."""
    shown = []
    for value in values:
        message, version = decode_record(value)
        for field in ("features", "entity"):
            if hasattr(message, field):
                setattr(message, field, sorted(getattr(message, field), key=repr))
        shown.append(f"{version} {message!r}")
    return sorted(shown)


@pytest.mark.parametrize(("name", "snapshot"), SNAPSHOTS)
def test_the_log_replayed_up_to_a_snapshot_gives_that_snapshot(name: str, snapshot: str) -> None:
    image = _image_at(name, int(snapshot[:20]))
    written = [encode_record(message, version) for message, version in image.to_records()]
    kafkas = [bytes.fromhex(value) for value in LOGS[name]["snapshots"][snapshot]]
    assert _comparable(written) == _comparable(kafkas)


@pytest.mark.parametrize(("name", "snapshot"), SNAPSHOTS)
def test_a_snapshot_loaded_is_the_image_it_was_written_from(name: str, snapshot: str) -> None:
    image = _image_at(name, int(snapshot[:20]))
    loaded = MetadataImage()
    loaded.load([message for message, _ in image.to_records()], image.offset, image.epoch)
    assert loaded == image
    assert loaded.to_records() == image.to_records()
    kafkas = MetadataImage()
    records = [_message(value) for value in LOGS[name]["snapshots"][snapshot]]
    kafkas.load(records, int(snapshot[:20]) - 1, int(snapshot[21:]))
    assert kafkas == image


@pytest.mark.parametrize("name", LOGS)
def test_the_delta_of_a_run_of_records_is_the_difference_of_the_images(name: str) -> None:
    log = LOGS[name]["log"]
    for start in range(0, len(log), 97):
        old = _image_at(name, log[start][0])
        new = _image_at(name, log[start][0])
        delta = MetadataDelta()
        for offset, epoch, value in log[start : start + 97]:
            if new.offset < offset and not old.in_transaction:
                new.replay(_message(value), offset, epoch, delta)
        told = MetadataDelta()
        difference(old, new, told)
        assert set(told.topics_created) == set(delta.topics_created)
        assert set(told.topics_deleted) == set(delta.topics_deleted)
        # A run may also tell of what it changed and changed back.
        changed = {k: v for k, v in delta.partitions.items() if v.old != v.new}
        assert told.partitions == changed
        for area in ("brokers", "controllers", "features", "acls", "scram", "delegation_tokens"):
            tells = {k: v for k, v in getattr(delta, area).items() if v[0] != v[1]}
            assert getattr(told, area) == tells, area
        for area in ("configs", "client_quotas"):
            for key, names in getattr(told, area).items():
                assert set(names) <= set(getattr(delta, area)[key]), area
        assert told.producer_ids == delta.producer_ids


def test_a_log_whose_transaction_is_open_is_not_in_the_image() -> None:
    log = LOGS["clean"]["log"]
    image = MetadataImage()
    for offset, epoch, value in log:
        message = _message(value)
        image.replay(message, offset, epoch)
        if type(message).NAME == "EndTransactionRecord":
            break
        assert image.in_transaction
        assert image.offset == -1
        assert image.to_records() == []
    assert image.offset == 11
    assert image.features.finalized["metadata.version"] == 33
