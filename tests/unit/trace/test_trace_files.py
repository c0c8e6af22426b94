"""Files of traces, filters, figures."""

from __future__ import annotations

import asyncio
import gzip
import pathlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from kwire.trace.background import BackgroundTrace
from kwire.trace.events import CLOSE, LOST, OPEN, REQUEST, RESPONSE, TRACE, Event, parse_event
from kwire.trace.files import TraceError, TraceReader, TraceWriter
from kwire.trace.filters import Filters, api_names
from kwire.trace.json_values import JsonObject
from kwire.trace.recorder import Recorder, Selection
from kwire.trace.statistics import Latencies, Statistics

FIRST = Event(TRACE, body={"source": "a test", "kept_bytes": 0, "filters": {}})


def asked(number: int, api: str = "Fetch", **others: object) -> Event:
    event = Event(REQUEST, 10.0, 1, correlation_id=number, client_id="c", api=api, api_key=1)
    return event._replace(**{"body": {}, "size_bytes": 50, **others})


def answered(number: int, api: str = "Fetch", **others: object) -> Event:
    made = asked(number, api)._replace(kind=RESPONSE, ms=12.0, took_ms=2.0, size_bytes=70)
    return made._replace(**others)


def written(path: pathlib.Path, *events: Event) -> str:
    writer = TraceWriter(str(path))
    writer.write([event.to_line() for event in (FIRST, *events)])
    writer.close()
    return str(path)


@pytest.mark.parametrize("name", ["a.trace", "a.trace.gz"])
def test_a_trace_is_read_as_it_was_written(tmp_path: pathlib.Path, name: str) -> None:
    events = [
        Event(OPEN, 1.5, 1, "127.0.0.1:1", "127.0.0.1:9092"),
        asked(1),
        answered(1, errors={"NOT_COORDINATOR": 2}),
        Event(CLOSE, 13.0, 1, note="1 requests without a reply: Fetch"),
    ]
    reader = TraceReader(written(tmp_path / name, *events))
    first, *rest = list(reader)
    assert first.body is not None
    assert first.body["source"] == "a test"
    assert rest == events
    assert reader.damage == ""


def test_a_file_that_is_cut_off_is_read_as_far_as_it_reaches(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.trace"
    written(path, asked(1), answered(1))
    path.write_bytes(path.read_bytes()[:-10])
    reader = TraceReader(str(path))
    assert [event.kind for event in reader] == [TRACE, REQUEST]
    assert reader.damage.startswith("line 3 is no line of a trace: cut off")


def test_a_compressed_file_that_is_cut_off_too(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.trace.gz"
    written(path, *[asked(number) for number in range(2000)])
    path.write_bytes(path.read_bytes()[:-200])
    reader = TraceReader(str(path))
    assert [event.kind for event in reader][:2] == [TRACE, REQUEST]
    assert reader.damage.startswith("line ")


@pytest.mark.parametrize(
    "content",
    [b"", b"no JSON\n", b"[]\n", b'{"event":"request"}\n', b"\x00\xff\xfe", b"\x1f\x8bno gzip"]
    + [
        b'{"event":"trace","format":99}\n',
        b"[" * 100_000 + b"\n",
        gzip.compress(b"words\n", mtime=0),
    ],
)
def test_what_is_no_trace_is_named_in_one_line(tmp_path: pathlib.Path, content: bytes) -> None:
    path = tmp_path / "a.trace"
    path.write_bytes(content)
    with pytest.raises(TraceError) as refused:
        list(TraceReader(str(path)))
    assert str(refused.value).startswith(f"{path}: no trace of kwire's")
    assert "\n" not in str(refused.value)


def test_what_was_left_out_last_is_told_when_the_trace_ends(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kwire.trace.background.HELD_BYTES_MAX", 10)
    path = tmp_path / "slow.trace"

    async def write() -> None:
        with ThreadPoolExecutor(1) as executor:
            writer, loop = TraceWriter(str(path)), asyncio.get_running_loop()
            trace = BackgroundTrace(loop, executor, writer, pytest.fail)
            for event in (FIRST, asked(1), answered(1)):
                trace.write(event)
            await trace.close()

    asyncio.run(write())
    _, lost = list(TraceReader(str(path)))
    assert (lost.kind, lost.ms) == (LOST, 12.0)
    assert lost.note == "2 events are left out: the file is too slow"


def test_a_file_that_is_not_there_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(TraceError, match="No such file or directory"):
        list(TraceReader(str(tmp_path / "none")))
    with pytest.raises(TraceError, match="Is a directory"):
        list(TraceReader(str(tmp_path)))


@pytest.mark.parametrize(
    "line",
    [
        '{"event":"response","ms":"soon"}',
        '{"event":"response","took_ms":Infinity}',
        '{"event":"dance"}',
        "{",
        "null",
    ],
)
def test_lines_that_are_no_events_are_refused(line: str) -> None:
    with pytest.raises(ValueError):
        parse_event(line)


# -- filters


def selected(filters: Filters, *events: Event) -> list[tuple[str, int]]:
    selection = Selection(filters)
    return [(one.kind, one.correlation_id) for event in events for one in selection.select(event)]


BOTH = [(REQUEST, 1), (RESPONSE, 1)]


def test_filters_choose_exchanges() -> None:
    one, other = (asked(1), answered(1)), (asked(2, "Produce"), answered(2, "Produce"))
    assert selected(Filters(apis=("Fetch",)), *one, *other) == BOTH
    assert selected(Filters(client_id="c"), *one) == BOTH
    assert selected(Filters(client_id="d"), *one) == []
    slow = answered(1, took_ms=500.0)
    assert selected(Filters(slower_than_ms=100), asked(1), slow, *other) == BOTH
    wrong = answered(1, errors={"NOT_COORDINATOR": 1})
    assert selected(Filters(errors_only=True), asked(1), wrong, *other) == BOTH


def test_a_request_without_a_reply_is_among_the_errors() -> None:
    events = asked(1), Event(CLOSE, 20.0, 1)
    assert selected(Filters(errors_only=True), *events)[0] == (REQUEST, 1)
    assert selected(Filters(slower_than_ms=1), *events)[0] == (REQUEST, 1)


def test_a_produce_without_acks_is_no_error_and_not_kept_in_memory() -> None:
    body: JsonObject = {"acks": 0, "topic_data": [{"name": "orders"}]}
    events = [asked(1, "Produce", body=body), Event(CLOSE, 20.0, 1)]
    assert selected(Filters(errors_only=True), *events) == [(CLOSE, 0)]
    assert selected(Filters(topic="orders"), *events) == [(REQUEST, 1), (CLOSE, 0)]
    assert selected(Filters(topic="others"), *events) == [(CLOSE, 0)]
    assert selected(Filters(), *events) == [(REQUEST, 1), (CLOSE, 0)]


def test_topics_are_found_by_name_and_by_the_id_that_metadata_told() -> None:
    topics = [{"name": "orders", "topic_id": "ID"}, {"name": "others", "topic_id": "OTHER"}]
    metadata = answered(1, "Metadata", body={"topics": topics})
    by_id = [{"topic_id": "ID", "partitions": []}]
    events = (
        *(asked(1, "Metadata"), metadata),
        *(asked(2, body={"topics": by_id}), answered(2)),
        *(asked(3, body={"topics": [{"topic_id": "OTHER"}]}), answered(3)),
        *(asked(4), answered(4, body={"responses": [{"topic": "orders"}]})),
    )
    found = selected(Filters(topic="orders"), *events)
    assert [number for _, number in found] == [1, 1, 2, 2, 4, 4]


def test_groups_are_found_by_what_a_request_names() -> None:
    coordinator = asked(1, "FindCoordinator", body={"key_type": 0, "coordinator_keys": ["g"]})
    other = asked(2, "Heartbeat", body={"group_id": "h"})
    found = selected(Filters(group="g"), coordinator, answered(1), other, answered(2))
    assert found == BOTH


def test_apis_are_named_as_people_write_them() -> None:
    assert api_names(["fetch", "18", "JOINGROUP"]) == ("Fetch", "ApiVersions", "JoinGroup")
    with pytest.raises(ValueError, match="Fech: no API of Kafka; did you mean Fetch"):
        api_names(["Fech"])


def test_the_first_line_of_a_recording_says_how_it_was_made() -> None:
    lines: list[Event] = []
    recorder = Recorder(lambda: 1.0, Filters(client_id="c"), 8)
    recorder.add(lines.append)
    recorder.begins("here", 1000)
    assert lines[0].body == {
        "source": "here",
        "started_ms": 1000,
        "kept_bytes": 8,
        "filters": {"client_id": "c"},
    }


# -- figures


def test_quantiles_are_right_within_five_percent() -> None:
    latencies = Latencies()
    for number in range(1, 1001):
        latencies.add(number / 10)
    for part, expected in ((0.5, 50.0), (0.99, 99.0), (1.0, 100.0)):
        assert expected <= latencies.quantile(part) <= expected * 1.05
    assert Latencies().quantile(0.5) == 0.0


def test_figures_by_api_and_client() -> None:
    statistics = Statistics("both")
    for event in (asked(1), answered(1, errors={"X": 2}), asked(2), asked(3, "Produce")):
        statistics.add(event)
    fetch, produce = statistics.rows()
    assert (fetch.client, fetch.api, fetch.requests, fetch.unanswered) == ("c", "Fetch", 2, 1)
    assert (fetch.errors, fetch.request_bytes, fetch.response_bytes) == ({"X": 2}, 100, 70)
    assert (produce.api, produce.unanswered) == ("Produce", 1)


def test_a_file_that_was_there_is_the_owners_alone_afterwards(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "old.trace"
    path.write_text("what was there before")
    path.chmod(0o644)
    TraceWriter(str(path)).close()
    assert path.stat().st_mode & 0o777 == 0o600
