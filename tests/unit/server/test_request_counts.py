"""What is counted of requests: each once, when it is answered, by version and by error code."""

from __future__ import annotations

import pytest

from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.api_keys import API_KEYS, ApiKey
from kwire.quota.client_quotas import ClientQuotas
from kwire.server.context import DISCONNECT, NO_REPLY, RequestContext
from kwire.server.error_codes import error_lines
from kwire.server.request_counts import RECENT_MAX, TIMED_S, RequestCounts, Timed
from kwire.server.request_steps import RequestSteps
from kwire.server.response import error_counts
from kwire.server.sliced_response import SlicedResponse
from tests.support.connections import ConnectionUnderTest, metadata_request, metadata_response


def codes(counts: RequestCounts) -> dict[int, int]:
    return {code: count for code, count in enumerate(counts.errors) if count}


def test_an_answer_is_counted_with_its_codes() -> None:
    counts = RequestCounts(ApiKey.PRODUCE)
    result = m.ProduceResponse.PartitionProduceResponse
    response = m.ProduceResponse(
        responses=[
            m.ProduceResponse.TopicProduceResponse(
                partition_responses=[result(), result(error_code=3), result(error_code=3)]
            )
        ]
    )
    counts.count(9, response)
    counts.count_any(9, NO_REPLY)
    counts.count_any(9, response)
    assert counts.by_version[9] == counts.total == 3
    assert codes(counts) == {0: 2, 3: 4}


def test_a_prompt_answer_has_one_time_and_a_late_one_two() -> None:
    counts = RequestCounts(ApiKey.HEARTBEAT)
    counts.ended(counts.begun(0.0, 120))
    timed = counts.begun(0.0, 70)
    timed.executed()
    timed.started_ns = timed.executed_ns - 2000
    counts.ended(timed)
    (prompt_ns, none_ns, prompt_bytes), (local_ns, remote_ns, late_bytes) = counts.recent
    assert prompt_ns >= 0 == none_ns
    assert local_ns == 2000
    assert remote_ns > 0
    assert (prompt_bytes, late_bytes) == (120, 70)


@pytest.mark.parametrize("version", [-100, -1, 64, 32767])
def test_a_refused_request_of_an_unknown_version_is_of_none(version: int) -> None:
    counts = RequestCounts(ApiKey.API_VERSIONS)
    counts.count_any(version, DISCONNECT)
    assert counts.total == 0


def test_what_has_no_answer_has_no_code_and_what_is_of_no_version_has_one() -> None:
    counts = RequestCounts(ApiKey.API_VERSIONS)
    counts.count(3, m.ApiVersionsResponse())
    counts.count_any(3, DISCONNECT)
    counts.count_any(3, NO_REPLY)
    counts.count_any(3, m.ApiVersionsResponse(error_code=42))
    counts.count_any(999, m.ApiVersionsResponse(error_code=35))
    counts.count_any(999, m.ApiVersionsResponse())
    assert counts.total == 4
    assert codes(counts) == {0: 2, 35: 1, 42: 1}


def test_an_error_without_a_number_of_kafka_s_is_the_last() -> None:
    counts = RequestCounts(ApiKey.HEARTBEAT)
    counts.count(0, m.HeartbeatResponse(error_code=-1))
    assert counts.errors[-1] == 1


def test_only_the_newest_times_are_kept() -> None:
    counts = RequestCounts(ApiKey.HEARTBEAT)
    for size in range(RECENT_MAX + 10):
        counts.ended(Timed(size))
    assert [size for _, _, size in counts.recent] == list(range(10, RECENT_MAX + 10))


@pytest.mark.parametrize("key", [key for key in API_KEYS if key != ApiKey.METADATA])
def test_codes_are_counted_where_the_schema_has_them(key: int) -> None:
    """The written function finds what a walk over all fields finds, in a response with one of
    each struct."""
    response_class = m.response_class(key)
    response = response_class()
    _fill(response, response_class.SCHEMA.root, response_class)
    counts = RequestCounts(key)
    counts.count(0, response)
    expected = error_counts(response)
    if key in (ApiKey.FIND_COORDINATOR, ApiKey.OFFSET_FETCH):
        expected[0] -= 1  # the one at the top counts only where there is no other
    elif key == ApiKey.ADD_PARTITIONS_TO_TXN:
        expected[0] += 1  # the same, and two of partitions
    assert codes(counts) == {code: count for code, count in expected.items() if count}


def _fill(struct, definition, response_class) -> None:  # type: ignore[no-untyped-def]
    for field in definition.fields:
        if field.struct is not None and field.is_array:
            inner = response_class.STRUCTS[field.type]()
            _fill(inner, field.struct, response_class)
            setattr(struct, field.name, [inner])


def test_metadata_counts_no_error_at_the_top() -> None:
    """Measured on Apache Kafka 4.4."""
    assert not any("response.error_code" in line for line in error_lines(m.MetadataResponse))


def test_answers_that_are_put_down_are_added_up_and_stay_few() -> None:
    """With the first request that is timed anew, whatever road it takes, and before all readings:
    those of followers too."""
    counts = RequestCounts(ApiKey.FETCH)
    for begin in (
        lambda: counts.begun(0.0, 1),
        lambda: counts.begun_at(0.0, 1, 1),
        lambda: counts.answered_at_once(0.0, 1, 1),
        lambda: counts.by_version,
    ):
        counts.usual += [12, 12, 4]
        counts.of_followers.usual += [17]
        begin()
        assert counts.usual == counts.of_followers.usual == []
    assert (counts.by_version[12], counts.by_version[4], counts.total) == (8, 4, 12)
    assert counts.of_followers.by_version[17] == counts.of_followers.total == 4
    counts.of_followers.usual += [17]
    assert counts.of_followers.total == 5
    counts.usual += [12]
    assert codes(counts) == {0: 2 * 13}


# -- in a connection


def test_requests_of_a_connection_are_counted_when_they_are_answered() -> None:
    pending: Pending[m.MetadataResponse] = Pending()
    answers = [metadata_response(), pending, metadata_response()]
    under_test = ConnectionUnderTest(lambda context, request: answers.pop(0))
    counts = under_test.listener.dispatcher.counts
    under_test.receive(metadata_request(1) + metadata_request(2) + metadata_request(3))
    assert counts[3].total == 1, "the second waits, and the third behind it"
    pending.complete(metadata_response())
    assert counts[3].total == 3


def test_one_request_of_an_api_is_timed_in_ten_milliseconds() -> None:
    """The first, whoever asks; one that waits has two times."""
    pending: Pending[m.MetadataResponse] = Pending()
    answers = [metadata_response(), metadata_response(), pending, metadata_response()]
    under_test = ConnectionUnderTest(lambda context, request: answers.pop(0))
    counts = under_test.listener.dispatcher.counts
    under_test.receive(metadata_request(1) + metadata_request(2))
    assert counts[3].total == 2
    assert [entry[1] > 0 for entry in counts[3].recent] == [False]
    under_test.listener.loop.now_s += TIMED_S
    under_test.receive(metadata_request(3))
    pending.complete(metadata_response())
    under_test.receive(metadata_request(4))
    assert counts[3].total == 4
    assert [entry[1] > 0 for entry in counts[3].recent] == [False, True]


@pytest.mark.parametrize("is_bound", [False, True])
@pytest.mark.parametrize("is_behind", [False, True])
@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("outcome", ["usual", "error", "no reply", "disconnect", "not to be sent"])
def test_each_request_is_counted_and_timed_once_however_it_ends(
    outcome: str, is_late: bool, is_behind: bool, is_bound: bool
) -> None:
    """At once or later, behind another or alone, of a client that has to wait or not."""
    steps = RequestSteps()
    quotas = ClientQuotas()
    quotas.changed((("client-id", "<default>"),), {"request_percentage": 1e-9})
    steps.set_throttles(quotas if is_bound else None)
    topic = m.MetadataResponse.MetadataResponseTopic
    answer = {
        "usual": metadata_response(),
        "error": m.MetadataResponse(topics=[topic(name="t", error_code=3)]),
        "no reply": NO_REPLY,
        "disconnect": DISCONNECT,
        "not to be sent": m.MetadataResponse(topics=[topic(name=7)]),
    }[outcome]
    front: Pending[object] = Pending()
    later: Pending[object] = Pending()

    def handle(context: RequestContext, request: object) -> object:
        if is_behind and context.correlation_id == 1:
            context.let_next_start()
            return front
        return later if is_late else answer

    under_test = ConnectionUnderTest(handle, steps)
    counts = under_test.listener.dispatcher.counts[ApiKey.METADATA]
    if is_behind:
        under_test.receive(metadata_request(1))
        under_test.listener.loop.now_s += TIMED_S
    under_test.receive(metadata_request(2))
    assert under_test.started == ([1, 2] if is_behind else [2])
    if is_late:
        assert counts.total == 0
        later.complete(answer)
    assert counts.total == 1
    assert len(counts.recent) == 1
    expected = {"usual": {}, "error": {3: 1}}.get(outcome, {})
    assert {code: count for code, count in codes(counts).items() if code} == expected
    front.complete(metadata_response())
    assert counts.total == len(counts.recent) == 1 + is_behind


@pytest.mark.parametrize("is_watched", [False, True])
def test_a_response_in_slices_is_counted_and_sent_as_a_whole_one(is_watched: bool) -> None:
    shape = m.MetadataResponse.MetadataResponseTopic
    topics = [shape(name="t"), shape(name="u", error_code=5)]
    told: list[dict[int, int]] = []
    steps = RequestSteps()
    if is_watched:
        steps.set_observers(lambda _, answered: told.append(dict(answered.errors)))
    written = []
    for is_sliced in (False, True):
        pending: Pending[m.MetadataResponse | SlicedResponse] = Pending()
        under_test = ConnectionUnderTest(lambda *_, waits=pending: waits, steps)
        under_test.receive(metadata_request(1))
        if is_sliced:
            response = SlicedResponse(m.MetadataResponse(throttle_time_ms=3), "topics", 9)
            response.add(topics[:1])
            response.add(topics[1:])
            response.throttle_time_ms += 4
            pending.complete(response)
        else:
            pending.complete(m.MetadataResponse(throttle_time_ms=7, topics=topics))
        written.append(bytes(under_test.transport.written))
        counts = under_test.listener.dispatcher.counts[ApiKey.METADATA]
        assert codes(counts) == {0: 1, 5: 1}
        assert counts.by_version[9] == 1
    assert written[0] == written[1]
    # The code at the top is among what an observer is told.
    assert told == ([{0: 2, 5: 1}] * 2 if is_watched else [])
