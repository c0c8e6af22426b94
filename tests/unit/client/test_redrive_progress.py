"""How far dead letters are redriven: ranges, and one committed offset with its metadata."""

from __future__ import annotations

import base64
import random
import zlib

import pytest

from kwire.client.dead_letters.progress import (
    METADATA_CHARACTERS_MAX,
    Progress,
    from_position,
    to_position,
)
from kwire.client.errors import ClientError
from kwire.client.offsets import Position
from kwire.client.transactional_producer import Identity
from tests.support.effort import seeds

SIZE = 60


def test_ranges_are_what_a_set_of_offsets_says() -> None:
    for seed in seeds(50):
        chance = random.Random(seed)
        progress, settled = Progress(), set[int]()
        for _ in range(20):
            start = chance.randrange(SIZE)
            end = chance.randint(start, SIZE)
            left = sorted(chance.sample(range(start, end), chance.randint(0, end - start)))
            progress = progress.after(start, end, left)
            settled |= set(range(start, end)) - set(left)
            found = {offset for offset in range(SIZE) if progress.is_settled(offset)}
            assert found == settled, (seed, progress)
            last = progress.first
            for first, behind in progress.ahead:
                assert last < first < behind, (seed, progress)
                last = behind
            position = to_position(progress)
            assert position is not None
            assert from_position(position) == progress


def test_without_ranges_the_offset_says_all() -> None:
    assert to_position(Progress(9)) == Position(9, "")
    assert from_position(Position(9, "")) == Progress(9)
    assert to_position(Progress(9), Identity(1000, 3)) == Position(9, "/1000.3")
    assert from_position(Position(9, "/1000.3")) == Progress(9)
    ahead = Progress(9, ((12, 14),))
    signed = to_position(ahead, Identity(1000, 3))
    assert signed is not None
    assert signed != to_position(ahead, Identity(1000, 4))
    assert from_position(signed) == ahead


def test_what_does_not_fit_into_the_metadata_is_no_position() -> None:
    regular = Progress().after(0, 100_000, range(0, 100_000, 2))
    position = to_position(regular)
    assert position is not None
    assert from_position(position) == regular
    chance = random.Random(1)
    ragged = Progress().after(0, 100_000, sorted(chance.sample(range(100_000), 30_000)))
    assert to_position(ragged) is None
    assert len(position.metadata) <= METADATA_CHARACTERS_MAX


def packed(plain: bytes) -> str:
    return "1:" + base64.urlsafe_b64encode(zlib.compress(plain)).decode()


@pytest.mark.parametrize(
    "text",
    [
        "consumer-3",
        "2:",
        "1:",
        "1:%%%",
        "1:AAAA",
        packed(b""),
        packed(b"\x01"),
        packed(b"\x00\x01"),
        packed(b"\x01\x00"),
        packed(b"\x80"),
        packed(b"\xff" * 12 + b"\x01\x01"),
        packed(b"\x01" + b"\xff" * 8 + b"\x7f"),
        packed(b"\x01\x01")[:-6],
        packed(b"\x01\x01" * (1 << 20)),
    ],
)
def test_what_somebody_else_committed_is_no_progress(text: str) -> None:
    with pytest.raises(ClientError, match="not the progress of a redrive"):
        from_position(Position(5, text))
