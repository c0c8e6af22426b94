"""What APIs were asked goes to the HTTP process as it is counted; that makes the samples of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from kwire.metrics.blocks import decoded
from kwire.metrics.exposition import Exposition
from kwire.metrics.requests import read_requests
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.server.dispatch import Dispatcher
from kwire.server.listener import Listener
from kwire.server.request_counts import RECENT_MAX, RequestCounts, Timed

PREFIX = "kafka_network_requestmetrics_"


def listener(*asked: tuple[str, RequestCounts]) -> Listener:
    """One whose dispatcher has these counts."""
    dispatcher = Dispatcher({})
    dispatcher.counts = lambda: list(asked)  # type: ignore[method-assign]
    return cast("Listener", SimpleNamespace(dispatcher=dispatcher))


def samples(*listeners: Listener) -> dict[str, str]:
    """What is shown: `name{labels}` and the value."""
    told = b"".join(read_requests(listeners))
    text = Exposition().text(decoded(told), 0.0, as_openmetrics=True)
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def timed(local_ns: int, remote_ns: int, size_bytes: int, counts: RequestCounts) -> None:
    counts._keep(local_ns, remote_ns, size_bytes)


def test_fetches_of_consumers_and_followers_are_shown_apart_and_together() -> None:
    counts = RequestCounts(ApiKey.FETCH)
    response = m.FetchResponse(responses=[])
    for _ in range(3):
        counts.count(12, response)
    counts.of_followers.count(17, m.FetchResponse(responses=[], error_code=70))
    timed(2_000_000, 1_000_000, 100, counts)
    timed(4_000_000, 0, 300, counts.of_followers)
    found = samples(listener(("Fetch", counts)))
    assert found[f'{PREFIX}requests_total{{request="FetchConsumer",version="12"}}'] == "3"
    assert found[f'{PREFIX}requests_total{{request="FetchFollower",version="17"}}'] == "1"
    assert found[f'{PREFIX}requests_total{{request="Fetch",version="17"}}'] == "1"
    assert found[f'{PREFIX}errors_total{{request="Fetch",error="NONE"}}'] == "3"
    assert found[f'{PREFIX}errors_total{{request="Fetch",error="FETCH_SESSION_ID_NOT_FOUND"}}']
    assert not any("errors_total" in name and "Consumer" in name for name in found)
    assert found[f'{PREFIX}totaltimems{{request="FetchConsumer",quantile="0.50"}}'] == "3.0"
    assert found[f'{PREFIX}localtimems{{request="FetchFollower",quantile="0.99"}}'] == "4.0"
    assert found[f'{PREFIX}remotetimems{{request="Fetch",quantile="0.999"}}'] == "1.0"
    assert found[f'{PREFIX}requestbytes{{request="Fetch",quantile="0.99"}}'] == "300.0"
    assert found[f'{PREFIX}totaltimems_count{{request="Fetch"}}'] == "4"


def test_listeners_that_share_an_api_are_summed_up() -> None:
    first, second = RequestCounts(ApiKey.HEARTBEAT), RequestCounts(ApiKey.HEARTBEAT)
    first.count(3, m.HeartbeatResponse(error_code=25))
    second.count(3, m.HeartbeatResponse())
    second.count(4, m.HeartbeatResponse())
    second.throttled(70)
    found = samples(listener(("Heartbeat", first)), listener(("Heartbeat", second)))
    assert found[f'{PREFIX}requests_total{{request="Heartbeat",version="3"}}'] == "2"
    assert found[f'{PREFIX}errors_total{{request="Heartbeat",error="UNKNOWN_MEMBER_ID"}}'] == "1"
    assert found['kwire_requests_throttled_total{request="Heartbeat"}'] == "1"
    assert found['kwire_requests_throttled_ms_total{request="Heartbeat"}'] == "70"
    assert found[f'{PREFIX}throttletimems{{request="Heartbeat",quantile="0.999"}}'] == "70.0"
    assert found[f'{PREFIX}throttletimems{{request="Heartbeat",quantile="0.50"}}'] == "0.0"


def test_requests_that_took_a_plain_road_are_shown() -> None:
    first, second = RequestCounts(ApiKey.HEARTBEAT), RequestCounts(ApiKey.HEARTBEAT)
    first.answered_plainly(3, 0, None)
    first.count(3, m.HeartbeatResponse())
    second.answered_plainly(4, 0, None)
    second.answered_plainly(4, 0, None)
    found = samples(listener(("Heartbeat", first)), listener(("Heartbeat", second)))
    assert found['kwire_requests_plain_total{request="Heartbeat"}'] == "3"
    assert found[f'{PREFIX}requests_total{{request="Heartbeat",version="3"}}'] == "2"


def test_a_code_that_kafka_does_not_have_is_an_unknown_error() -> None:
    counts = RequestCounts(ApiKey.HEARTBEAT)
    counts.count(0, m.HeartbeatResponse(error_code=-1))
    found = samples(listener(("Heartbeat", counts)))
    error = "UNKNOWN_SERVER_ERROR"
    assert found[f'{PREFIX}errors_total{{request="Heartbeat",error="{error}"}}'] == "1"


def test_an_api_that_was_not_answered_is_not_shown() -> None:
    assert samples(listener(("Heartbeat", RequestCounts(ApiKey.HEARTBEAT)))) == {}


def test_the_newest_times_count_when_there_are_more_than_are_kept() -> None:
    counts = RequestCounts(ApiKey.HEARTBEAT)
    counts.count(3, m.HeartbeatResponse())
    for size_bytes in range(RECENT_MAX + 10):
        counts.ended(Timed(size_bytes))
    found = samples(listener(("Heartbeat", counts)))
    half = found[f'{PREFIX}requestbytes{{request="Heartbeat",quantile="0.50"}}']
    assert float(half) == 10 + round(0.5 * (RECENT_MAX - 1))
