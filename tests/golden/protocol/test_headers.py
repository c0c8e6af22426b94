"""Request and response headers of every API and version, as Kafka's code wrote them."""

from __future__ import annotations

from kwire.protocol import frame, messages
from kwire.protocol.api_keys import API_KEYS
from tests.support.vectors import rows


def test_request_headers() -> None:
    seen = set()
    for row in rows("headers"):
        data = bytes.fromhex(row["request_header_hex"])
        header = frame.parse_request_header(b"\xff\xff" + data + b"body", 2)
        value = row["request_header"]
        assert header.api_key == value["requestApiKey"] == row["api_key"]
        assert header.api_version == value["requestApiVersion"] == row["version"]
        assert header.correlation_id == value["correlationId"]
        assert header.client_id == value["clientId"]
        assert header.body_offset == 2 + len(data)
        flexible = frame.has_flexible_request_header(row["api_key"], row["version"])
        assert flexible == (row["request_header_version"] == 2)
        info = API_KEYS[row["api_key"]]
        assert info.name == row["api"]
        assert row["stable"] == (row["version"] <= info.max)
        seen.add((row["api_key"], row["version"]))
    assert seen == {
        (key, version)
        for key, info in API_KEYS.items()
        for version in range(info.min, (info.unstable_max or info.max) + 1)
    }


def test_request_frames() -> None:
    for row in rows("headers"):
        key, version = row["api_key"], row["version"]
        value = row["request_header"]
        request = messages.request_class(key)()
        parts = frame.encode_request(
            key, version, value["correlationId"], value["clientId"], request
        )
        data = b"".join(parts)
        expected = bytes.fromhex(row["request_header_hex"]) + request.encode(version)
        assert data == len(expected).to_bytes(4, "big") + expected


def test_response_frames() -> None:
    for row in rows("headers"):
        key, version = row["api_key"], row["version"]
        correlation_id = row["response_header"]["correlationId"]
        response = messages.response_class(key)()
        data = b"".join(frame.encode_response(key, version, correlation_id, response))
        expected = bytes.fromhex(row["response_header_hex"]) + response.encode(version)
        assert data == len(expected).to_bytes(4, "big") + expected
        assert frame.decode_response(key, version, data[4:]) == (correlation_id, response)
        flexible = frame.has_flexible_response_header(key, version)
        assert flexible == (row["response_header_version"] == 1)
