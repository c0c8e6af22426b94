"""Metrics that clients push: what is read, what is left out, and that nothing else is believed."""

from __future__ import annotations

import random
import struct

import pytest

from kwire.telemetry.otlp import POINTS_MAX, TEXT_MAX, Point, read_metrics
from tests.support.telemetry import otlp_writer as otlp


def test_points_have_the_attributes_of_their_resource_and_their_own() -> None:
    data = otlp.metrics(
        otlp.gauge("a", otlp.point(1.5, {"node.id": 3, "on": True, "rate": 0.5})),
        otlp.total("b", otlp.point(-7), grows=False),
        otlp.total("c", otlp.point(7), is_delta=False),
        resource={"group_id": "g"},
    )
    labels = (("group_id", "g"), ("node.id", "3"), ("on", "true"), ("rate", "0.5"))
    assert read_metrics(data).points == [
        Point("a", labels, 1.5, False, False),
        Point("b", labels[:1], -7, True, False),
        Point("c", labels[:1], 7, False, True),
    ]


def test_what_is_not_shown_is_counted() -> None:
    uneven = [otlp.histogram_point([1, 2], [0.5, 1.0]), otlp.histogram_point([1, 1, 1], [2.0, 1.0])]
    data = otlp.metrics(otlp.histogram("h", *uneven), otlp.gauge("", otlp.point(1)))
    assert read_metrics(data) == ([], 2)
    large = otlp.histogram_point([1] * 300, [float(at) for at in range(299)])
    assert read_metrics(otlp.metrics(otlp.histogram("h", large))) == ([], 1)
    odd = [
        otlp.exponential_point(0, 0, [1], negative=[1]),
        otlp.exponential_point(99, 0, [1]),
        otlp.exponential_point(-10, 1 << 20, [1]),
    ]
    assert read_metrics(otlp.metrics(otlp.histogram("e", *odd, kind=10))) == ([], 3)
    beyond = otlp.summary_point({1.5: 1.0}, 1, 1.0)
    assert read_metrics(otlp.metrics(otlp.histogram("s", beyond, kind=11))) == ([], 1)
    no_value = otlp.point(1) + otlp.field(8, 1)
    assert read_metrics(otlp.metrics(otlp.gauge("g", no_value, b""))) == ([], 0)


def test_points_and_texts_are_bounded() -> None:
    found = read_metrics(otlp.many(f"m{at}" for at in range(POINTS_MAX + 5)))
    assert (len(found.points), found.left_out) == (POINTS_MAX, 5)
    labels = {f"k{at}": "v" * 1000 for at in range(100)}
    (point,) = read_metrics(otlp.metrics(otlp.gauge("n" * 1000, otlp.point(1, labels)))).points
    assert len(point.name) == TEXT_MAX
    assert [len(value) for _, value in point.attributes] == [TEXT_MAX] * 16


@pytest.mark.parametrize(
    "data",
    [
        b"\x00",
        b"\x0b",
        b"\x0a",
        b"\x0a\x05ab",
        b"\x0a" + b"\xff" * 9 + b"\x01",
        b"\xff" * 11,
        b"\x09\x01",
        otlp.metrics(otlp.gauge("a", b"\x21\x00")),
        otlp.field(1, otlp.field(2, b"\x12\x7f")),
    ],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"field|varint|wire type"):
        read_metrics(data)


def test_fields_that_are_not_known_are_passed_over() -> None:
    extra = otlp.field(99, 1) + otlp.field(98, 1.0) + otlp.field(97, "x") + b"\xfd\x07abcd"
    data = otlp.metrics(otlp.gauge("a", otlp.point(2) + extra) + extra) + extra
    assert [point.value for point in read_metrics(data).points] == [2]


def test_damaged_messages_are_read_or_refused() -> None:
    whole = otlp.metrics(
        otlp.gauge("a.b", otlp.point(1.5, {"k": "v"}), otlp.point(2)),
        otlp.total("c", otlp.point(3, {"n": 5})),
        resource={"client_rack": "r"},
    )
    drawn = random.Random(11)
    refused = 0
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(drawn.randint(1, 4)):
            data[drawn.randrange(len(data))] = drawn.randrange(256)
        try:
            found = read_metrics(bytes(data[: drawn.randint(0, len(data))]))
        except ValueError:
            refused += 1
        else:
            assert len(found.points) <= 3
    assert 500 < refused < 3000


def test_a_message_of_nothing_but_begins_takes_no_more_than_its_size() -> None:
    assert read_metrics(b"\x0a\x00" * 100_000) == ([], 0)
    assert read_metrics(otlp.field(1, b"\x12\x00" * 100_000)) == ([], 0)
    nan = struct.unpack("<d", b"\xff" * 8)[0]
    (point,) = read_metrics(otlp.metrics(otlp.gauge("a", otlp.point(nan)))).points
    assert point.value != point.value
