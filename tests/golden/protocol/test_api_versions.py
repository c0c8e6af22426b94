"""ApiVersions against the answers of a running Apache Kafka 4.4, broker and controller."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kwire.protocol import api_versions, frame, messages
from kwire.protocol.api_keys import API_KEYS, UNBUILT, is_supported
from kwire.protocol.errors import MalformedError
from tests.support.vectors import DATA

MEASURED: dict[str, Any] = json.loads((DATA / "api_versions.json").read_text(encoding="utf-8"))
LISTENERS = sorted(MEASURED)
SUPPORTED = {
    name: tuple(levels) for name, levels in MEASURED["broker"]["v5"]["supported_features"].items()
}
FINALIZED = {
    name: high for name, (_, high) in MEASURED["broker"]["v5"]["finalized_features"].items()
}
EVERYTHING: frozenset[int] = frozenset()


def answer(version: int, listener: str) -> Any:
    """What comes out of the wire at the other end."""
    apis = api_versions.advertised(listener, unbuilt=EVERYTHING)
    levels = {**FINALIZED, "a.feature.at.level.zero": 0}
    response = api_versions.answer(version, apis, SUPPORTED, levels, 3611)
    data = b"".join(frame.encode_response(18, version, 1, response))
    return frame.decode_response(18, version, data[4:])[1]


@pytest.mark.parametrize("version", [0, 3, 4, 5])
@pytest.mark.parametrize("listener", LISTENERS)
def test_answers(listener: str, version: int) -> None:
    measured = MEASURED[listener]
    response = answer(version, listener)
    assert [[row.api_key, row.min_version, row.max_version] for row in response.api_keys] == [
        [row["key"], row["min"], row["max"]] for row in measured["api_keys"]
    ]
    expected = measured[f"v{version}"]
    assert response.error_code == expected["error_code"]
    assert response.throttle_time_ms == (expected["throttle_time_ms"] or 0)
    if version < 3:
        return
    supported = {
        row.name: [row.min_version, row.max_version] for row in response.supported_features
    }
    finalized = {
        row.name: [row.min_version_level, row.max_version_level]
        for row in response.finalized_features
    }
    assert supported == expected["supported_features"]
    assert finalized == expected["finalized_features"]
    assert response.finalized_features_epoch == 3611
    assert not response.zk_migration_ready


@pytest.mark.parametrize("listener", LISTENERS)
def test_what_is_not_built_is_left_out_and_nothing_else(listener: str) -> None:
    listed = [key for key, _, _ in api_versions.advertised(listener)]
    whole = [row["key"] for row in MEASURED[listener]["api_keys"]]
    assert listed == [key for key in whole if key not in UNBUILT]


def test_telemetry_is_listed_while_somebody_takes_it() -> None:
    listed = [
        key for key, _, _ in api_versions.advertised("broker", telemetry=True, unbuilt=EVERYTHING)
    ]
    assert {71, 72} <= set(listed)
    assert listed == sorted(listed)
    listed = [key for key, _, _ in api_versions.advertised("controller", telemetry=True)]
    assert not {71, 72} & set(listed)


def test_a_version_that_is_too_high() -> None:
    for listener in LISTENERS:
        expected = MEASURED[listener]["v6 (not supported), answered as v0"]
        data = api_versions.unsupported_version().encode(0)
        response = messages.ApiVersionsResponse.decode(data, 0)
        assert response.error_code == expected["errorCode"]
        assert [[row.api_key, row.min_version, row.max_version] for row in response.api_keys] == [
            [row["apiKey"], row["minVersion"], row["maxVersion"]] for row in expected["apiKeys"]
        ]


@pytest.mark.parametrize("listener", LISTENERS)
def test_requests_that_are_refused(listener: str) -> None:
    measured = MEASURED[listener]
    good = messages.ApiVersionsRequest(
        client_software_name="kwire-test", client_software_version="1"
    )

    def fault(**changes: Any) -> int:
        return api_versions.fault(good.copy(**changes), 5, listener, "this cluster", 1)

    assert fault() == 0
    assert fault(cluster_id="this cluster", node_id=1) == 0
    name = measured["v5, client name with blank and '!'"]
    assert fault(client_software_name="bad name!") == name
    assert fault(client_software_version="") == name
    assert fault(cluster_id="other") == measured["v5, other cluster id"]["error_code"]
    assert fault(node_id=7) == measured["v5, other node id"]["error_code"]
    both = measured["v5, other cluster id and node id"]["error_code"]
    assert fault(cluster_id="other", node_id=7) == both
    assert api_versions.fault(good.copy(client_software_name="!"), 2, listener, "", 1) == 0
    assert api_versions.fault(good.copy(cluster_id="other"), 4, listener, "", 1) == 0
    refused = api_versions.refusal(name)
    assert (refused.error_code, refused.api_keys, refused.supported_features) == (name, [], [])


@pytest.mark.parametrize(
    ("text", "good"),
    [("a", True), ("apache-kafka-java", True), ("4.4.0", True), ("9", True)]
    + [(text, False) for text in ("", "-", ".a", "a.", "a b", "a!", "é", "a_b", "a-")],
)
def test_well_formed_software_names(text: str, good: bool) -> None:
    assert api_versions.is_well_formed(text) is good


PROBES = [
    ("Produce v0 (below the lowest supported version)", 0, 0),
    ("Fetch v0 (removed version)", 1, 0),
    ("Metadata v14 (above the highest)", 3, 14),
    ("InitProducerId v6 (unstable)", 22, 6),
    ("api key 4 (removed API)", 4, 0),
    ("api key 999", 999, 0),
    ("api key -1", -1, 0),
    ("BrokerHeartbeat v0 (controller API)", 63, 0),
]


@pytest.mark.parametrize("listener", LISTENERS)
@pytest.mark.parametrize(("probe", "key", "version"), PROBES)
def test_what_is_answered_by_closing_the_connection(
    listener: str, probe: str, key: int, version: int
) -> None:
    closed = MEASURED[listener]["probes"][probe] == "closed"
    assert is_supported(key, version, listener) is not closed


def test_a_body_cut_short_is_malformed() -> None:
    assert MEASURED["broker"]["probes"]["Heartbeat v0 (broker API), body cut short"] == "closed"
    with pytest.raises(MalformedError):
        messages.HeartbeatRequest.decode(b"\0\x01", 0)


def test_bytes_of_the_answers_to_probes() -> None:
    produce = bytes.fromhex(MEASURED["broker"]["probes"]["Produce v3, no topics, acks=1"])
    assert frame.decode_response(0, 3, produce[4:]) == (7, messages.ProduceResponse())
    assert b"".join(frame.encode_response(0, 3, 7, messages.ProduceResponse())) == produce
    name = "BrokerHeartbeat v0 (controller API)"
    heartbeat = bytes.fromhex(MEASURED["controller"]["probes"][name])
    correlation_id, response = frame.decode_response(63, 0, heartbeat[4:])
    assert correlation_id == 7
    assert response.error_code == 77
    assert b"".join(frame.encode_response(63, 0, 7, response)) == heartbeat


def test_every_key_of_a_listener_was_measured() -> None:
    for listener in LISTENERS:
        keys = {row["key"] for row in MEASURED[listener]["api_keys"]}
        table = {key for key, info in API_KEYS.items() if listener in info.listeners}
        assert table - keys == ({71, 72} if listener == "broker" else set())
        assert keys <= table
