"""What clients pushed, as series: added up, named, bounded, and written so that it can be read."""

from __future__ import annotations

import gzip

import pytest

from kwire.metrics.exposition import client_text
from kwire.telemetry import series
from kwire.telemetry.kept_pushes import SILENT_MS, Push
from kwire.telemetry.series import AllSeries
from tests.support.metrics import parse
from tests.support.telemetry import otlp_writer as otlp

pytest.importorskip("prometheus_client")
SENT = "org.apache.kafka.producer.record.send.total"
SENT_SHOWN = "org_apache_kafka_producer_record_send_total"


def push(
    *found: bytes, client: str = "c", at_ms: int = 0, codec: int = 0, payload: bytes | None = None
) -> Push:
    data = otlp.metrics(*found) if payload is None else payload
    return Push(client, f"id of {client}", "software", "1.0", 1000, codec, at_ms, data)


def values(found: AllSeries) -> dict[str, list[float]]:
    return {x.name: [sample.value for sample in x.samples] for x in found.families()}


def test_counts_are_added_up_where_they_are_sent_as_differences() -> None:
    found = AllSeries()
    for value in (5, 7):
        found.add(
            push(
                otlp.total(SENT, otlp.point(value)),
                otlp.total("org.apache.kafka.x", otlp.point(value), is_delta=False),
                otlp.total("org.apache.kafka.y", otlp.point(-value), grows=False),
                otlp.gauge("org.apache.kafka.z", otlp.point(value)),
            )
        )
    assert values(found) == {
        SENT_SHOWN: [12],
        "org_apache_kafka_x_total": [7],
        "org_apache_kafka_y": [-12],
        "org_apache_kafka_z": [7],
    }


def test_a_client_cannot_show_something_as_the_brokers() -> None:
    found = AllSeries()
    found.add(
        push(
            otlp.gauge("kafka_server_x", otlp.point(1, {"client_id": "another", "le": "1"})),
            otlp.gauge("process_cpu", otlp.point(1, {"__name__": "up", "9": "n"})),
        )
    )
    assert list(values(found)) == ["client_kafka_server_x", "client_process_cpu"]
    told = [dict(sample.labels) for one in found.families() for sample in one.samples]
    assert [one["client_id"] for one in told] == ["id of c"] * 2
    assert [sorted(one)[0] for one in told] == ["client_id", "attribute_9"]
    assert "le" not in told[0]


def test_histograms_and_summaries_are_shown_and_added_up() -> None:
    found = AllSeries()
    for _ in range(2):
        found.add(
            push(
                otlp.histogram("h", otlp.histogram_point([1, 2, 3], [0.5, 1.0], 4.5, {"le": "no"})),
                otlp.histogram("e", otlp.exponential_point(1, 2, [4, 5], zeros=1), kind=10),
                otlp.histogram("f", otlp.histogram_point([7], []), is_delta=False),
                otlp.histogram("s", otlp.summary_point({0.5: 3.0, 0.9: 8.0}, 12, 60.0), kind=11),
            )
        )
    assert (found.left_out, found.unreadable) == (0, 0)
    for as_openmetrics in (True, False):
        end = "# EOF\n" if as_openmetrics else ""
        text = "".join(client_text(found.families(), as_openmetrics=as_openmetrics)) + end
        read = parse(text, as_openmetrics=as_openmetrics)
        shown = {
            (name, dict(labels).get("le") or dict(labels).get("quantile")): value
            for (name, labels), value in read.values.items()
        }
        assert shown == {
            ("client_h_bucket", "0.5"): 2,
            ("client_h_bucket", "1.0"): 6,
            ("client_h_bucket", "+Inf"): 12,
            ("client_h_count", None): 12,
            ("client_h_sum", None): 9.0,
            ("client_e_bucket", "0.0"): 2,
            ("client_e_bucket", repr(2.0**1.5)): 10,
            ("client_e_bucket", "4.0"): 20,
            ("client_e_bucket", "+Inf"): 20,
            ("client_e_count", None): 20,
            ("client_e_sum", None): 3.0,
            ("client_f_bucket", "+Inf"): 7,
            ("client_f_count", None): 7,
            ("client_f_sum", None): 0.0,
            ("client_s", "0.5"): 3.0,
            ("client_s", "0.9"): 8.0,
            ("client_s_count", None): 12,
            ("client_s_sum", None): 60.0,
        }
        assert read.types["client_h_bucket"] == "histogram"
        assert read.types["client_s"] == "summary"


def test_a_histogram_with_other_bounds_begins_anew_and_its_parts_are_nobody_else_s() -> None:
    found = AllSeries()
    found.add(push(otlp.histogram("h", otlp.histogram_point([1, 1], [1.0]))))
    found.add(push(otlp.histogram("h", otlp.histogram_point([1, 1, 1], [1.0, 2.0]))))
    assert values(found) == {"client_h": [1, 2, 3, 3, 0.0]}
    found.add(push(otlp.gauge("h_count", otlp.point(1)), otlp.gauge("g_sum", otlp.point(1))))
    found.add(push(otlp.histogram("g", otlp.histogram_point([1], []))))
    assert found.left_out == 2
    assert sorted(values(found)) == ["client_g_sum", "client_h"]


def test_what_is_under_one_name_is_of_one_kind() -> None:
    found = AllSeries()
    found.add(push(otlp.gauge("a", otlp.point(1)), client="first"))
    found.add(push(otlp.gauge("client.a_total", otlp.point(1)), client="first"))
    found.add(push(otlp.total("client_a_total", otlp.point(1)), client="second"))
    found.add(push(otlp.total("b", otlp.point(-1), is_delta=False), client="second"))
    found.add(push(otlp.total("b", otlp.point(float("inf"))), client="second"))
    assert found.left_out == 3


def test_it_is_written_as_prometheus_reads_it() -> None:
    found = AllSeries()
    found.add(
        push(
            otlp.gauge("org.apache.kafka.a", otlp.point(float("nan"), {"x": 'q"\\\n'})),
            otlp.total("org.apache.kafka.a", otlp.point(2)),
            otlp.gauge("org.apache.kafka.b.total", otlp.point(float("-inf"))),
            otlp.total("org.apache.kafka.c.total", otlp.point(3), otlp.point(4, {"y": "1"})),
        )
    )
    for as_openmetrics in (True, False):
        text = "".join(client_text(found.families(), as_openmetrics=as_openmetrics))
        read = parse(text + "# EOF\n" * as_openmetrics, as_openmetrics=as_openmetrics)
        assert read.names() == {
            "org_apache_kafka_a",
            "org_apache_kafka_a_total",
            "org_apache_kafka_b_total",
            "org_apache_kafka_c_total",
        }
        assert sorted(read.values.values())[-3:] == [2, 3, 4] or as_openmetrics
        assert read.types["org_apache_kafka_c_total"] == "counter"
        assert {dict(labels).get("x") for _, labels in read.values} == {'q"\\\n', None}


def readable(found: AllSeries) -> None:
    """By the parsers of the library, in both forms."""
    for as_openmetrics in (True, False):
        text = "".join(client_text(found.families(), as_openmetrics=as_openmetrics))
        parse(text + "# EOF\n" * as_openmetrics, as_openmetrics=as_openmetrics)


@pytest.mark.parametrize(
    "pushed",
    [
        otlp.histogram("h", otlp.histogram_point([1, 2, 3], [-0.5, 1.0], 4.5)),
        otlp.histogram("h", otlp.histogram_point([1, 2], [1.0], -4.5)),
        otlp.histogram("h", otlp.summary_point({0.5: -3.0}, 12, 60.0), kind=11),
        otlp.histogram("h", otlp.summary_point({0.5: 3.0}, 12, -60.0), kind=11),
    ],
)
def test_a_distribution_below_zero_does_not_cost_the_answer(pushed: bytes) -> None:
    """OpenMetrics has no such sums and quantiles: its readers refused every scrape."""
    found = AllSeries()
    found.add(push(pushed, otlp.gauge("a", otlp.point(1))))
    readable(found)
    assert (list(values(found)), found.left_out) == (["client_a"], 1)


@pytest.mark.parametrize(
    "pushed",
    [
        (otlp.total("a.total", otlp.point(1)), otlp.total("a.total.total", otlp.point(1))),
        (otlp.total("a", otlp.point(1)), otlp.total("a.created", otlp.point(1))),
        (otlp.total("a", otlp.point(1)), otlp.gauge("a.created", otlp.point(1))),
        (
            otlp.histogram("a", otlp.histogram_point([1, 2], [1.0])),
            otlp.total("a.count", otlp.point(1)),
            otlp.total("a.sum", otlp.point(1)),
            otlp.total("a", otlp.point(1)),
            otlp.total("a.created", otlp.point(1)),
        ),
        (
            otlp.histogram("a", otlp.summary_point({0.5: 3.0}, 2, 6.0), kind=11),
            otlp.total("a.created", otlp.point(1)),
        ),
    ],
    ids=range(5),
)
def test_names_that_openmetrics_keeps_for_others_do_not_cost_the_answer(
    pushed: tuple[bytes, ...],
) -> None:
    """A counter is told without its suffix there, and has a `_created` beside it."""
    for order in (pushed, pushed[::-1]):
        found = AllSeries()
        found.add(push(*order))
        readable(found)
        assert (len(values(found)), found.left_out) == (len(pushed), 0)


def test_the_begin_of_a_histogram_is_nobody_else_s() -> None:
    one = otlp.histogram("a", otlp.histogram_point([1], []))
    others = (
        otlp.gauge("a.created", otlp.point(1)),
        otlp.histogram("a.created", otlp.summary_point({0.5: 3.0}, 2, 6.0), kind=11),
        otlp.histogram("a.count", otlp.histogram_point([1], [])),
    )
    for other in others:
        for both in ((one, other), (other, one)):
            found = AllSeries()
            found.add(push(*both))
            readable(found)
            assert found.left_out == 1


def test_what_cannot_be_read_is_counted() -> None:
    found = AllSeries()
    found.add(push(payload=b"garbage"))
    found.add(push(payload=b"garbage", codec=1))
    found.add(push(payload=gzip.compress(bytes(9 << 20)), codec=1))
    found.add(push(otlp.histogram("h", *[otlp.histogram_point([1, 1], [])] * 2)))
    assert (found.unreadable, found.left_out, len(found)) == (3, 2, 1)


def test_clients_and_series_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "CLIENTS_MAX", 3)
    monkeypatch.setattr(series, "SERIES_OF_CLIENT_MAX", 4)
    monkeypatch.setattr(series, "SERIES_MAX", 6)
    found = AllSeries()
    found.add(push(payload=otlp.many(f"m{at}" for at in range(9)), client="a"))
    assert (len(values(found)), found.left_out) == (4, 5)
    found.add(push(payload=otlp.many(f"m{at}" for at in range(9)), client="b"))
    assert (sum(map(len, values(found).values())), found.left_out) == (6, 12)
    for client in "bcda":
        found.add(push(payload=otlp.many(["m"]), client=client))
    assert len(found) == 3
    monkeypatch.setattr(series, "NAMES_MAX", 5)
    found.add(push(payload=otlp.many(["another", "m"]), client="a"))
    assert "client_another" not in values(found)


def test_clients_that_are_silent_are_not_shown_any_more() -> None:
    found = AllSeries()
    found.add(push(otlp.gauge("a", otlp.point(1)), client="old"))
    found.add(push(otlp.gauge("a", otlp.point(2)), client="new", at_ms=10))
    found.expire(SILENT_MS)
    assert values(found) == {"client_a": [2]}
    found.expire(SILENT_MS + 10)
    assert values(found) == {}
    found.add(push(otlp.total("a", otlp.point(1))))  # what it was is forgotten with the last one
    assert values(found) == {"client_a_total": [1]}


def test_series_that_a_client_does_not_send_any_more_go_and_make_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A gauge of a partition that is another consumer's now would tell its old value for ever."""
    monkeypatch.setattr(series, "SERIES_OF_CLIENT_MAX", 2)
    found = AllSeries()
    found.add(push(otlp.gauge("lag", *(otlp.point(9, {"partition": at}) for at in "01"))))
    found.add(push(otlp.gauge("lag", otlp.point(3, {"partition": "1"})), at_ms=10))
    found.expire(SILENT_MS - 1)
    assert values(found) == {"client_lag": [9, 3]}
    found.expire(SILENT_MS)
    assert values(found) == {"client_lag": [3]}
    found.add(push(otlp.gauge("lag", otlp.point(7, {"partition": "2"})), at_ms=20))
    assert (values(found), found.left_out) == ({"client_lag": [3, 7]}, 0)
