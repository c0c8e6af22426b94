"""Kafka's uuids as text, and how they are drawn."""

from __future__ import annotations

import pytest

from kwire.clock import SeededRandom
from kwire.protocol import uuids


def test_text_and_back() -> None:
    assert uuids.to_text(uuids.ZERO) == "A" * 22
    assert uuids.to_text(uuids.METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert uuids.to_text(b"\xfb\xff" + b"\xff" * 14) == "-" + "_" * 20 + "w"
    for number in range(200):
        raw = SeededRandom(number).random_bytes(16)
        assert uuids.from_text(uuids.to_text(raw)) == raw


@pytest.mark.parametrize(
    "text",
    ["", "A" * 21, "A" * 23, "A" * 21 + "=", "A" * 21 + "+", "A" * 21 + "/", "é" * 22, " " * 22],
)
def test_what_is_no_uuid(text: str) -> None:
    with pytest.raises(ValueError, match="not a uuid"):
        uuids.from_text(text)


def test_only_16_bytes_have_a_text() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        uuids.to_text(b"x" * 15)


def test_drawn_uuids_are_of_version_4_and_reproducible() -> None:
    drawn = [uuids.random_uuid(SeededRandom(seed)) for seed in range(2000)]
    assert len(set(drawn)) == 2000
    assert drawn[7] == uuids.random_uuid(SeededRandom(7))
    for uuid in drawn:
        assert uuid[6] >> 4 == 4
        assert uuid[8] >> 6 == 2
        assert not uuids.to_text(uuid).startswith("-")


def test_a_draw_whose_text_begins_with_a_dash_is_drawn_again() -> None:
    class Fixed:
        def __init__(self) -> None:
            self.draws = [b"\xf8" * 16, b"\xfb" * 16, b"\x01" * 16]

        def random_bytes(self, size_bytes: int) -> bytes:
            return self.draws.pop(0)[:size_bytes]

        def below(self, limit: int) -> int:
            raise AssertionError

    random = Fixed()
    assert uuids.random_uuid(random)[0] == 1
    assert random.draws == []
