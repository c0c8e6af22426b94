"""What a broker that takes clients' metrics answers: one conversation, with Apache Kafka and kwire.

Client instances have ids of their own in each step, so that no step waits for an interval; what the
broker draws (ids) is left out. `PROPERTIES` make the limits small.
"""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from kwire.protocol import messages as m
from kwire.protocol.records.compression import compress
from kwire.protocol.records.header import Codec
from kwire.testing.cluster import wait_for
from tests.support.wire import WireClient

PROPERTIES = {"telemetry.max.bytes": "1000"}
CLIENT_METRICS = 16
SET, DELETE = 0, 1
HOUR_MS = "3600000"
TIMEOUT_S = 30
NAMES = [
    *("org.apache.kafka.producer.", "org.apache.kafka.consumer.", "org.apache.kafka.client."),
    *(f"org.apache.kafka.consumer.fetch.manager.{name}" for name in ("fetch", "bytes", "records")),
    *(f"org.apache.kafka.producer.node.request.latency.{at}" for at in range(20)),
    *("Aa", "BB", "", "x", "org.example.größe", "org.example.𝄞"),
]

Said = list[Any]
"""A step's name, and what came of it: JSON."""


def own_id(number: int) -> bytes:
    """The id of a client instance."""
    return bytes.fromhex("8a5c2f10b3e74d6f") + number.to_bytes(8, "big")


def hash_of(instance_id: bytes) -> int:
    """As Kafka's ids hash; 32 bits, unsigned."""
    words = [int.from_bytes(instance_id[at : at + 4], "big") for at in range(0, 16, 4)]
    return words[0] ^ words[1] ^ words[2] ^ words[3]


def get(client: WireClient, instance_id: bytes) -> m.GetTelemetrySubscriptionsResponse:
    answer = client.call(m.GetTelemetrySubscriptionsRequest(client_instance_id=instance_id), 0)
    assert isinstance(answer, m.GetTelemetrySubscriptionsResponse)
    return answer


def told(answer: m.GetTelemetrySubscriptionsResponse) -> Said:
    """All fields but the id."""
    return [
        answer.throttle_time_ms,
        answer.error_code,
        answer.subscription_id,
        list(answer.accepted_compression_types),
        answer.push_interval_ms,
        answer.telemetry_max_bytes,
        answer.delta_temporality,
        list(answer.requested_metrics),
    ]


def push(
    client: WireClient,
    instance_id: bytes,
    subscription_id: int,
    metrics: bytes = b"",
    compression: int = 0,
    *,
    terminating: bool = False,
) -> Said:
    """[throttle time, error code]."""
    request = m.PushTelemetryRequest(
        client_instance_id=instance_id,
        subscription_id=subscription_id,
        terminating=terminating,
        compression_type=compression,
        metrics=metrics,
    )
    answer = client.call(request, 0)
    return [answer.throttle_time_ms, answer.error_code]


def set_subscription(client: WireClient, name: str, configs: Mapping[str, str | None]) -> Said:
    """[error code, message]; None takes a config away. In force when this returns."""
    before = get(client, own_id(next(_fresh)))
    said = alter(client, name, configs)
    if said[0] == 0:
        wait_for(lambda: _is_other(client, before), f"{name} is in force", TIMEOUT_S)
    return said


_fresh = itertools.count(1_000_000)


def _is_other(client: WireClient, before: m.GetTelemetrySubscriptionsResponse) -> bool:
    now = get(client, own_id(next(_fresh)))
    return (now.push_interval_ms, now.requested_metrics) != (
        before.push_interval_ms,
        before.requested_metrics,
    )


def dialogue(bootstrap: str) -> list[Said]:
    """All steps, in order."""
    numbers = itertools.count(1)
    with WireClient(bootstrap) as client:
        return [
            *_listed(client),
            *_without_subscriptions(client, numbers),
            *_subscriptions(client, numbers),
            *_matches(bootstrap, client, numbers),
            *_pushes(bootstrap, client, numbers),
            *_payloads(client, numbers),
            *_changes(bootstrap, client, numbers),
        ]


def _listed(client: WireClient) -> Iterator[Said]:
    request = m.ApiVersionsRequest(client_software_name="kwire", client_software_version="1.0")
    keys = client.call(request, 4).api_keys
    listed = [[one.api_key, one.min_version, one.max_version] for one in keys]
    yield ["ApiVersions", [one for one in listed if one[0] in (71, 72)]]


def _without_subscriptions(client: WireClient, numbers: Iterator[int]) -> Iterator[Said]:
    answer = get(client, bytes(16))
    drawn = answer.client_instance_id
    answer.subscription_id = (answer.subscription_id & 0xFFFFFFFF) ^ hash_of(drawn)
    yield ["an id is drawn", drawn[6] >> 4, drawn[8] >> 6, told(answer)]
    again = get(client, drawn)
    yield ["again", told(again), again.client_instance_id == bytes(16)]
    mine = own_id(next(numbers))
    answer = get(client, mine)
    yield ["own id", answer.client_instance_id == mine, told(answer)]
    yield ["reserved id", told(get(client, bytes(15) + b"\1"))]
    yield ["push with nothing subscribed", push(client, mine, answer.subscription_id, b"x")]


def _subscriptions(client: WireClient, numbers: Iterator[int]) -> Iterator[Said]:
    def asked(name: str) -> Said:
        return [name, told(get(client, own_id(next(numbers))))]

    hour = {"interval.ms": HOUR_MS}
    yield ["too short", set_subscription(client, "a", {"interval.ms": "99"})]
    yield ["unknown", set_subscription(client, "a", {"interval": "100"})]
    yield ["set", set_subscription(client, "a", {**hour, "metrics": "org.apache.kafka."})]
    yield asked("longer than by default")
    for count in (2, 3, 11, 12, 13, 24, len(NAMES)):
        names = ",".join(name for name in NAMES[:count] if name)
        yield [count, set_subscription(client, "a", {"metrics": names})]
        yield asked(f"{count} names")
    yield ["b", set_subscription(client, "b", {"interval.ms": "60000", "metrics": "z,Aa,x"})]
    yield asked("two subscriptions")
    yield ["c", set_subscription(client, "c", {"metrics": "*,org.example", "interval.ms": "100"})]
    yield asked("everything")
    for name in "cb":
        empty = {"metrics": None, "interval.ms": None}
        yield [f"without {name}", set_subscription(client, name, empty)]
    yield asked("one again")
    yield ["without a", set_subscription(client, "a", {"metrics": None, "interval.ms": None})]
    yield asked("none again")


def _matches(bootstrap: str, client: WireClient, numbers: Iterator[int]) -> Iterator[Said]:
    set_subscription(client, "everybody", {"metrics": "m", "interval.ms": "200000"})
    number = 0
    with WireClient(bootstrap) as unnamed, WireClient(bootstrap) as named:
        hello = m.ApiVersionsRequest(
            client_software_name="software", client_software_version="1.2.3"
        )
        named.call(hello, 4)
        for match in (
            "client_id=test",
            "client_id=tes",
            "client_id=te.*",
            "client_id=TEST",
            "client_software_name=software",
            "client_software_name=unknown",
            "client_software_version=1\\.2.*",
            "client_software_version=unknown",
            "client_source_address=127.0.0.1",
            "client_source_address=/127.0.0.1",
            "client_source_port=[0-9]+",
            "client_source_port=1",
            "client_instance_id=ilwvELPnTW8.*",
            "client_instance_id=[0-9a-f-]+",
            "client_id=test,client_software_name=software",
            "client_id=tes,client_software_name=software",
            "client_id=tes,client_id=test",
        ):
            number += 1
            one = {"interval.ms": "50000", "metrics": "matched", "match": match}
            said = alter(client, "one", one)
            # What is changed after it is in force after it.
            set_subscription(client, "marker", {"metrics": f"at.{number}"})
            found = [
                "matched" in get(who, own_id(next(numbers))).requested_metrics
                for who in (unnamed, named)
            ]
            yield [match, said, found]
            alter(client, "one", {"interval.ms": None, "metrics": None, "match": None})
    set_subscription(client, "marker", {"metrics": None})
    set_subscription(client, "everybody", {"interval.ms": None, "metrics": None})


def alter(client: WireClient, name: str, configs: Mapping[str, str | None]) -> Said:
    shape = m.IncrementalAlterConfigsRequest
    resource = shape.AlterConfigsResource(
        resource_type=CLIENT_METRICS,
        resource_name=name,
        configs=[
            shape.AlterableConfig(
                name=key, config_operation=DELETE if value is None else SET, value=value
            )
            for key, value in configs.items()
        ],
    )
    answer = client.call(shape(resources=[resource]), 1).responses[0]
    return [answer.error_code, answer.error_message]


def _pushes(bootstrap: str, client: WireClient, numbers: Iterator[int]) -> Iterator[Said]:
    set_subscription(client, "p", {"interval.ms": HOUR_MS, "metrics": "*"})
    for reserved in (bytes(16), bytes(15) + b"\1"):
        yield ["push of a reserved id", push(client, reserved, 1)]
    mine = own_id(next(numbers))
    yield ["push before get", push(client, mine, 1)]
    yield ["get after an unknown subscription", told(answer := get(client, mine))]
    known = answer.subscription_id
    yield ["wrong subscription", push(client, mine, known ^ 1)]
    yield ["right subscription, at once", push(client, mine, known)]
    yield ["get after a throttled push", told(get(client, mine))]
    mine = own_id(next(numbers))
    known = get(client, mine).subscription_id
    yield ["first push", push(client, mine, known, b"x")]
    yield ["second push", push(client, mine, known, b"x")]
    yield ["get after it", told(get(client, mine))]
    yield ["terminating", push(client, mine, known, b"x", terminating=True)]
    yield ["push after terminating", push(client, mine, known, b"x")]
    yield ["and another", push(client, mine, known, b"x")]
    yield ["terminating with the wrong id", push(client, mine, known ^ 1, terminating=True)]
    yield ["terminating twice", push(client, mine, known, terminating=True)]
    yield ["terminating thrice", push(client, mine, known, terminating=True)]
    yield ["get after terminating", told(get(client, mine))]
    mine = own_id(next(numbers))
    known = get(client, mine).subscription_id
    yield ["unknown compression", push(client, mine, known, b"x", 5)]
    yield ["get after it", told(get(client, mine))]
    yield ["push after it", push(client, mine, known, b"x", -1)]
    with WireClient(bootstrap) as other:
        mine = own_id(next(numbers))
        known = get(other, mine).subscription_id
        yield ["push by another connection", push(client, mine, known, b"x")]
        yield ["and by the first", push(other, mine, known, b"x")]

    def is_forgotten() -> bool:
        return get(client, mine).error_code == 0

    wait_for(is_forgotten, "the instance goes with its connection", TIMEOUT_S)
    yield ["an instance goes with its connection", True]


def _payloads(client: WireClient, numbers: Iterator[int]) -> Iterator[Said]:
    def pushed(metrics: bytes, compression: int) -> Said:
        mine = own_id(next(numbers))
        known = get(client, mine).subscription_id
        said = push(client, mine, known, metrics, compression)
        return [*said, told(get(client, mine))[1]]

    yield ["nothing", pushed(b"", 0)]
    yield ["nothing, compressed", pushed(b"", 1)]
    yield ["at the limit", pushed(b"x" * 1000, 0)]
    yield ["over the limit", pushed(b"x" * 1001, 0)]
    yield ["over the limit, compressed", pushed(b"x" * 1001, 4)]
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        for size in (10, 1000, 1001, 1100, 20_000):
            sent = compress(codec, bytes(size))
            if len(sent) <= 1000:
                yield [f"{codec.name} of {size}", pushed(sent, int(codec))]
        yield [f"{codec.name} of garbage", pushed(b"garbage", int(codec))]
        whole = compress(codec, bytes(range(200)))
        yield [f"{codec.name} cut", pushed(whole[:-9], int(codec))]
    yield ["wrong codec", pushed(gzip.compress(b"x"), int(Codec.ZSTD))]


def _changes(bootstrap: str, client: WireClient, numbers: Iterator[int]) -> Iterator[Said]:
    mine = own_id(next(numbers))
    known = get(client, mine).subscription_id
    set_subscription(client, "p", {"metrics": "other"})
    yield ["push after a change", push(client, mine, known, b"x")]
    yield ["get after it", told(answer := get(client, mine))]
    yield ["push anew", push(client, mine, answer.subscription_id, b"x")]
    shape = m.ListConfigResourcesRequest
    for version, request in ((0, shape()), (1, shape(resource_types=[CLIENT_METRICS]))):
        listed = client.call(request, version)
        names = [one.resource_name for one in listed.config_resources]
        yield [f"ListConfigResources {version}", listed.error_code, names]
    yield ["removed", set_subscription(client, "p", {"metrics": None, "interval.ms": None})]
    yield ["nothing is listed", len(client.call(shape(), 0).config_resources)]
