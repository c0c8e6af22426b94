"""Blocks become OpenMetrics that prometheus-client's own parser reads."""

from __future__ import annotations

import json

import pytest

from kwire.metrics import families as catalogue
from kwire.metrics.blocks import (
    AGE,
    END,
    LABEL_BYTES_MAX,
    Block,
    decoded,
    encoded,
    in_blocks,
    label,
)
from kwire.metrics.exposition import Exposition, without_end

openmetrics = pytest.importorskip("prometheus_client.openmetrics.parser")
older = pytest.importorskip("prometheus_client.parser")


def parsed(blocks: list[Block], now_s: float = 0.0, exposition: Exposition | None = None):  # type: ignore[no-untyped-def]
    text = (exposition or Exposition()).text(blocks, now_s, as_openmetrics=True)
    return {x.name: x for x in openmetrics.text_string_to_metric_families(text + "# EOF\n")}


def test_counters_gauges_and_quantiles_have_their_types_and_labels() -> None:
    blocks = [
        Block(
            ("topic",), ("kafka_server_brokertopicmetrics_messagesin_total",), [("a", 3), ("b", 4)]
        ),
        Block((), ("kafka_server_replicamanager_leadercount",), [(7,)]),
        Block(
            ("request",),
            ("kafka_network_requestmetrics_totaltimems",),
            [("Fetch", [2, 0.5, 0.75, 0.95, 0.98, 0.99, 0.999])],
        ),
    ]
    found = parsed(blocks)
    messages = found["kafka_server_brokertopicmetrics_messagesin"]
    assert messages.type == "counter"
    assert {s.labels["topic"]: s.value for s in messages.samples} == {"a": 3, "b": 4}
    assert found["kafka_server_replicamanager_leadercount"].type == "gauge"
    times = found["kafka_network_requestmetrics_totaltimems"]
    shares = [0.5, 0.75, 0.95, 0.98, 0.99, 0.999]
    assert [float(s.labels["quantile"]) for s in times.samples] == shares
    assert [s.value for s in times.samples] == shares
    (count,) = found["kafka_network_requestmetrics_totaltimems_count"].samples
    assert (count.labels, count.value) == ({"request": "Fetch"}, 2)


def test_samples_of_a_metric_stand_together_whatever_block_they_came_in() -> None:
    name = "kafka_log_log_size"
    blocks = [
        Block(("topic", "partition"), (name, "kafka_log_log_numlogsegments"), [("a", "0", 5, 1)]),
        Block(("topic", "partition"), (name, "kafka_log_log_numlogsegments"), [("b", "0", 6, 2)]),
    ]
    assert [s.value for s in parsed(blocks)[name].samples] == [5, 6]


@pytest.mark.parametrize("name", ["a" * 10_000, "\x01" * 10_000, "\U0001f600" * 10_000, "é" * 65])
def test_long_names_of_others_are_cut_and_stay_different(name: str) -> None:
    shown = label(name)
    assert len(json.dumps(shown)) <= LABEL_BYTES_MAX
    assert shown.startswith(name[:10])
    assert shown == label(name)
    assert shown != label(name + "b")


def test_short_names_are_shown_as_they_are() -> None:
    for name in ("", "orders", 'a"b', "a\nb", "é" * 60, "a" * (LABEL_BYTES_MAX - 2)):
        assert label(name) == name


def test_text_of_others_is_escaped() -> None:
    reason = 'no space: "a\\b"\nleft'
    name = "kwire_partition_refusing"
    blocks = [Block(("topic", "partition", "reason"), (name,), [("a", "0", reason, 1)])]
    assert parsed(blocks)[name].samples[0].labels["reason"] == reason


def test_a_value_that_is_not_there_and_a_name_that_is_not_known_are_left_out() -> None:
    names = ("kafka_server_brokertopicmetrics_bytesin_total", "no_such_metric")
    assert (
        parsed([Block(("topic",), names, [("a", None, 1)])])[
            "kafka_server_brokertopicmetrics_bytesin"
        ].samples
        == []
    )


def test_the_older_text_has_the_same_samples() -> None:
    blocks = [
        Block((), ("kafka_server_brokertopicmetrics_messagesin_total",), [(3,)]),
        Block((), ("kafka_network_requestmetrics_totaltimems",), [([2, 1, 1, 1, 1, 1, 1],)]),
    ]
    text = Exposition().text(blocks, 0.0, as_openmetrics=False)
    found = {x.name: x for x in older.text_string_to_metric_families(text)}
    assert found["kafka_server_brokertopicmetrics_messagesin"].type == "counter"
    assert found["kafka_network_requestmetrics_totaltimems_count"].type == "unknown"


def test_lag_gets_its_seconds() -> None:
    exposition = Exposition()
    names = ("kafka_consumergroup_committed_offset", "kafka_consumergroup_lag", AGE, END)
    labels = ("group", "topic", "partition")
    parsed([Block(labels, names, [("g", "a", "0", 10, 0, None, 10)])], 100.0, exposition)
    found = parsed([Block(labels, names, [("g", "a", "0", 10, 20, 0.5, 30)])], 110.0, exposition)
    assert found["kafka_consumergroup_lag"].samples[0].value == 20
    assert found["kafka_consumergroup_lag_seconds"].samples[0].value == 10
    elsewhere = Block(labels, names, [("g", "b", "0", 10, None, None, None)])
    unknown = parsed([elsewhere], 110.0, exposition)
    assert unknown["kafka_consumergroup_lag"].samples == []
    assert list(without_end([elsewhere])) == [("b", "0")]
    text = exposition.text([elsewhere], 111.0, as_openmetrics=True, ends={("b", "0"): 14})
    assert 'kafka_consumergroup_lag{group="g",topic="b",partition="0"} 4\n' in text
    of_share = Block(labels, names, [("s", "b", "0", None, None, None, None)])
    assert list(without_end([of_share])) == []
    assert 'group="s"' not in exposition.text([of_share], 112.0, as_openmetrics=True)


def test_lag_that_was_there_before_the_first_scrape_has_seconds() -> None:
    """Who scraped once, or asked after a restart, was told of no time at all."""
    names = ("kafka_consumergroup_committed_offset", "kafka_consumergroup_lag", AGE, END)
    block = Block(("group", "topic", "partition"), names, [("g", "a", "0", 10, 20, 7.5, 30)])
    found = parsed([block], 100.0, Exposition())
    assert found["kafka_consumergroup_lag_seconds"].samples[0].value == 7.5


def test_disks_of_log_directories_are_told_of_and_a_lost_one_is_left_out(tmp_path) -> None:  # type: ignore[no-untyped-def]
    name = "kafka_log_logmanager_logdirectoryoffline"
    rows = [(str(tmp_path), 0), (str(tmp_path / "lost"), 1)]
    found = parsed([Block(("logDirectory",), (name,), rows)])
    (free,) = found["kwire_log_directory_free_bytes"].samples
    assert free.labels == {"logDirectory": str(tmp_path)}
    assert free.value > 0


# -- blocks and families


def test_blocks_come_back_as_they_were() -> None:
    lines = list(in_blocks(("a",), ("b", "c"), ((str(n), n, None) for n in range(100))))
    assert len(lines) == 3
    rows = [row for line in lines for block in decoded(line) for row in block.rows]
    assert rows == [[str(n), n, None] for n in range(100)]
    told = encoded((), ("x",), [(1.5,)], b"\n{\n") + encoded((), ("y",), [(2,)])
    assert [(block.names, block.data) for block in decoded(told)] == [
        (["x"], b"\n{\n"),
        (["y"], b""),
    ]
    for end in (len(told) - 1, told.index(b"{")):
        with pytest.raises(ValueError):
            list(decoded(told[:end]))


KINDS = (catalogue.GAUGE, catalogue.COUNTER, catalogue.QUANTILES, catalogue.RATE)


def test_every_family_has_a_kind_a_help_and_a_name_of_its_kind() -> None:
    found = catalogue.families()
    assert found
    for family in found.values():
        assert family.kind in KINDS
        assert family.help.endswith(".")
        assert family.name.startswith(("kafka_", "kwire_"))
        assert family.name.endswith("_total") == (family.kind == catalogue.COUNTER), family.name


HOSTILE = [
    'a"} 1\nkafka_server_replicamanager_leadercount 99',
    "back\\slash\\",
    "\\n",
    "new\nline",
    "carriage\rreturn",
    "# EOF",
    "\x00\x01\x7f",
    "\u2028\u2029\x85",
    '"',
    "",
    "},=",
    "ü" * 249,
]


def test_10_000_hostile_names_come_back_and_add_no_sample() -> None:
    """Groups and clients call themselves what they like."""
    name = "kafka_consumergroup_committed_offset"
    groups = [f"{HOSTILE[at % len(HOSTILE)]}{at}" for at in range(10_000)]
    lines = list(in_blocks(("group",), (name,), ((group, at) for at, group in enumerate(groups))))
    found = parsed(list(decoded(b"".join(lines))))
    assert set(found) == {name}
    assert {x.labels["group"]: x.value for x in found[name].samples} == {
        group: at for at, group in enumerate(groups)
    }
