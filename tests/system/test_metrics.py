"""`/metrics` of a broker that works: what was done is what is told, under names that are known."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Iterator

import pytest

from kwire.metrics.families import QUANTILES, families
from kwire.protocol import messages as m
from kwire.testing.cluster import Broker
from tests.support.metrics import (
    GROUP,
    TOPIC,
    Scrape,
    ask_all,
    changes,
    scrape,
    settle,
    transactional_request,
)
from tests.support.share.dialogue import PROPERTIES, World
from tests.support.share.member import ACCEPT
from tests.support.wire import WireClient, fetch_request, produce_values
from tests.system.test_http import port_of, wait_for
from tests.system.test_quotas import set_quota

pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

NOT_UNDER_THIS_LOAD = {
    "kafka_server_kafkarequesthandlerpool_controllerrequesthandleravgidle_percent",
    "kafka_server_quota_byte_rate",
    "kafka_server_quota_request_time",
    "kwire_quota_throttled_total",
    "kwire_quota_throttled_ms_total",
    "kwire_partition_refusing",
    "kwire_lso_held_back_records",
    "kwire_lso_held_back_seconds",
    "kwire_transaction_open_seconds",
}
ERRORS = "kafka_network_requestmetrics_errors_total"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(options={**PROPERTIES, "http.listeners": "http://127.0.0.1:0"}) as broker:
        yield broker


@pytest.fixture(scope="module")
def client(broker: Broker) -> Iterator[WireClient]:
    with WireClient(broker.bootstrap) as client:
        yield client


@pytest.fixture(scope="module")
def scraped(broker: Broker, client: WireClient) -> Iterator[tuple[str, Scrape, Scrape]]:
    """(URL, before, after `ask_all`)."""
    url = f"http://127.0.0.1:{port_of(broker)}/metrics"
    settle(client)
    shares = World(broker.bootstrap, "metered")
    member = shares.joined()
    member.acknowledge({shares.key: [(0, 1, [ACCEPT]), (3, 3, [ACCEPT])]})
    before = scrape(url)
    ask_all(client)
    yield url, before, scrape(url)
    shares.close()


def test_every_metric_is_shown_and_no_other(scraped: tuple[str, Scrape, Scrape]) -> None:
    shown = {name for name in scraped[2].names() if name.startswith(("kafka_", "kwire_"))}
    known = {family.name for family in families().values()}
    known |= {f"{x.name}_count" for x in families().values() if x.kind == QUANTILES}
    assert shown == known - NOT_UNDER_THIS_LOAD


def test_what_was_asked_is_counted_once(scraped: tuple[str, Scrape, Scrape]) -> None:
    _, before, after = scraped
    name = "kafka_network_requestmetrics_requests_total"
    requests = changes(before, after, [name])
    assert requests[name, frozenset({("request", "Produce"), ("version", "9")})] == 8
    count = "kafka_network_requestmetrics_totaltimems_count"
    counts = changes(before, after, [count])
    assert counts[count, frozenset({("request", "Produce")})] == 8
    errors = changes(before, after, [ERRORS])
    assert errors[ERRORS, frozenset({("request", "Produce"), ("error", "CORRUPT_MESSAGE")})] == 1
    assert errors[ERRORS, frozenset({("request", "Heartbeat"), ("error", "NONE")})] == 1


DOCKER = pathlib.Path(__file__).resolve().parents[2] / "docker"


def expressions() -> list[tuple[str, str]]:
    """(where, expression) of the dashboards and alerts of `docker/`."""
    found = []
    for path in sorted((DOCKER / "grafana" / "dashboards").glob("*.json")):
        board = json.loads(path.read_text())
        for panel in board["panels"]:
            found += [(f"{path.name}: {panel['title']}", x["expr"]) for x in panel["targets"]]
        found += [
            (f"{path.name}: ${x['name']}", x["query"])
            for x in board["templating"]["list"]
            if x["type"] == "query"
        ]
    rules = (DOCKER / "prometheus" / "alerts.yml").read_text().split("- alert: ")[1:]
    for rule in rules:
        name, _, rest = rule.partition("\n")
        expression = rest.partition("expr: ")[2].partition("annotations:")[0]
        found.append((f"alerts.yml: {name}", expression.partition("for: ")[0]))
    return found


@pytest.mark.parametrize(("where", "expression"), expressions())
def test_dashboards_and_alerts_ask_for_what_is_shown(
    scraped: tuple[str, Scrape, Scrape], where: str, expression: str
) -> None:
    """Names, and the labels that a selector or `by` names."""
    after = scraped[2]
    known = after.names() | NOT_UNDER_THIS_LOAD
    names = set(re.findall(r"\b(?:kafka|kwire|process)_\w+", expression))
    assert names <= known, where
    assert names or "up{" in expression, where
    labels = {label for _, pairs in after.values for label, _ in pairs}
    labels |= {"instance", "job", "transactionalId", "producerId", "reason"}
    asked = set(re.findall(r"(\w+)\s*(?:=~|!=|=)\s*\"", expression))
    for grouped in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression):
        asked |= {label.strip() for label in grouped.split(",")}
    assert asked <= labels, where


def test_traffic_is_counted_by_topic(scraped: tuple[str, Scrape, Scrape]) -> None:
    _, before, after = scraped
    messages = "kafka_server_brokertopicmetrics_messagesin_total"
    changed = changes(before, after, [messages])
    assert changed[messages, frozenset({("topic", TOPIC)})] == 11  # two of them markers
    assert after.value("kafka_log_log_logendoffset", topic=TOPIC, partition="0") == 9
    assert after.value("kafka_server_replicamanager_underreplicatedpartitions") == 0


def test_lag_is_that_of_the_offsets(scraped: tuple[str, Scrape, Scrape]) -> None:
    labels = {"group": GROUP, "topic": TOPIC, "partition": "0"}
    assert scraped[2].value("kafka_consumergroup_committed_offset", **labels) == 2
    assert scraped[2].value("kafka_consumergroup_lag", **labels) == 7


def test_lag_of_a_share_group_is_what_is_not_done(scraped: tuple[str, Scrape, Scrape]) -> None:
    """As `kafka-share-groups --describe` tells it: of 20 records three are accepted."""
    labels = {"group": "metered-group", "topic": "metered-topic", "partition": "0"}
    assert scraped[2].value("kafka_consumergroup_committed_offset", **labels) == 2
    assert scraped[2].value("kafka_consumergroup_lag", **labels) == 17
    assert scraped[2].value("kafka_consumergroup_lag_seconds", **labels) >= 0


def test_who_holds_back_a_last_stable_offset_is_told(
    scraped: tuple[str, Scrape, Scrape], client: WireClient
) -> None:
    producer = begun_transaction(client, "held", 'holding "back"')
    produce_values(client, "held", 0, [b"behind it"] * 3)
    found = scrape(scraped[0])
    of_producer = {"topic": "held", "partition": "0", "producerId": str(producer.producer_id)}
    assert found.value("kwire_lso_held_back_records", **of_producer) == 4
    assert found.value("kwire_lso_held_back_seconds", **of_producer) >= 0
    of_partition = {"topic": "held", "partition": "0"}
    assert found.value("kafka_cluster_partition_laststableoffsetlag", **of_partition) == 4
    of_id = {"transactionalId": 'holding "back"', "producerId": str(producer.producer_id)}
    assert found.value("kwire_transaction_open_seconds", **of_id) >= 0
    assert found.value("kwire_transactional_ids", state="ongoing") == 1
    end = m.EndTxnRequest(
        transactional_id='holding "back"',
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=False,
    )
    assert client.call(end, 3).error_code == 0
    wait_for(lambda: "kwire_lso_held_back_records" not in scrape(scraped[0]).names())


def begun_transaction(
    client: WireClient, topic: str, transactional_id: str
) -> m.InitProducerIdResponse:
    """One with a record in partition 0 of a new topic."""
    client.create_topic(topic)
    begin = m.InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=60_000
    )
    producer: m.InitProducerIdResponse = client.call(begin, 4)
    shape = m.AddPartitionsToTxnRequest
    added = shape(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[shape.AddPartitionsToTxnTopic(name=topic, partitions=[0])],
    )
    client.call(added, 3)
    request = transactional_request(topic, transactional_id, producer)
    assert client.call(request, 9).responses[0].partition_responses[0].error_code == 0
    return producer


def test_a_client_that_has_fetched_as_a_follower_is_one_again(
    scraped: tuple[str, Scrape, Scrape], client: WireClient
) -> None:
    """As Apache Kafka counts, each Fetch goes by the replica id in it alone."""
    url = scraped[0]
    before = scrape(url)
    as_follower = fetch_request(TOPIC, {0: 0})
    as_follower.replica_id = 7
    client.call(as_follower, 12)
    for _ in range(2):
        client.call(fetch_request(TOPIC, {0: 0}), 12)
    count = "kafka_network_requestmetrics_totaltimems_count"
    found = changes(before, scrape(url), [count])
    by_request = {dict(labels)["request"]: value for (_, labels), value in found.items()}
    assert by_request == {"FetchFollower": 1, "FetchConsumer": 2, "Fetch": 3}


def test_what_a_consumer_over_its_quota_does_not_get_is_not_counted(
    broker: Broker, scraped: tuple[str, Scrape, Scrape], client: WireClient
) -> None:
    traffic = "kafka_server_brokertopicmetrics_"
    set_quota(client, "consumer_byte_rate", 1.0)
    try:
        before = scrape(scraped[0])
        with WireClient(broker.bootstrap) as other:
            answer = other.call(fetch_request(TOPIC, {0: 0}), 12)
        assert answer.throttle_time_ms > 0
        assert answer.responses == []
        after = scrape(scraped[0])
    finally:
        set_quota(client, "consumer_byte_rate", None)
    names = [f"{traffic}bytesout_total", f"{traffic}totalfetchrequests_total"]
    of_topic = frozenset({("topic", TOPIC)})
    assert changes(before, after, names) == {
        (names[1], of_topic): 1,
        (names[1], frozenset()): 1,
    }


def test_what_a_client_calls_its_group_keeps_nobody_from_the_metrics(
    scraped: tuple[str, Scrape, Scrape], client: WireClient
) -> None:
    """A name of 32,000 characters, each of six in JSON, is in a row for every partition."""
    client.create_topic("many", 8)
    shape = m.OffsetCommitRequest
    partitions = [
        shape.OffsetCommitRequestPartition(partition_index=index, committed_offset=0)
        for index in range(8)
    ]
    request = shape(
        group_id="\x01" * 32_000,
        generation_id_or_member_epoch=-1,
        topics=[shape.OffsetCommitRequestTopic(name="many", partitions=partitions)],
    )
    answer = client.call(request, 8)
    assert {one.error_code for one in answer.topics[0].partitions} == {0}
    name, topic = "kafka_consumergroup_committed_offset", ("topic", "many")
    found = scrape(scraped[0]).values
    assert len([1 for one, labels in found if one == name and topic in labels]) == 8


def test_the_process_is_told_of_too(scraped: tuple[str, Scrape, Scrape]) -> None:
    assert scraped[2].value("process_resident_memory_bytes") > 1 << 20


def test_whoever_does_not_ask_for_openmetrics_gets_the_older_text(
    scraped: tuple[str, Scrape, Scrape],
) -> None:
    older = scrape(scraped[0], as_openmetrics=False)
    assert {n for n in scraped[2].names() if n.startswith("k")} <= older.names()
