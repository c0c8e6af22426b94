"""Error codes and API keys against what was measured on Apache Kafka 4.4."""

from __future__ import annotations

import pytest

from kwire.protocol import schema
from kwire.protocol.api_keys import API_KEYS, UNBUILT, ApiKey, is_supported
from kwire.protocol.errors import ErrorCode, KafkaError, is_retriable, refreshes_metadata


def test_codes_are_without_gaps() -> None:
    assert sorted(ErrorCode) == list(range(-1, 137))


def test_some_codes_by_name() -> None:
    assert ErrorCode.UNKNOWN_SERVER_ERROR == -1
    assert ErrorCode.OFFSET_OUT_OF_RANGE == 1
    assert ErrorCode.UNSUPPORTED_VERSION == 35
    assert ErrorCode.REBOOTSTRAP_REQUIRED == 129
    assert ErrorCode.CONTROLLER_ID_NOT_REGISTERED == 136


def test_retriable_and_refreshing() -> None:
    assert is_retriable(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert refreshes_metadata(6)
    assert is_retriable(14)
    assert not refreshes_metadata(14)
    assert not is_retriable(0)
    assert not is_retriable(12345)


def test_kafka_errors_carry_code_and_message() -> None:
    error = KafkaError(35, "no")
    assert (error.code, error.message) == (ErrorCode.UNSUPPORTED_VERSION, "no")
    assert str(error) == "UNSUPPORTED_VERSION: no"
    assert str(KafkaError(ErrorCode.NONE)) == "NONE"
    with pytest.raises(ValueError):
        KafkaError(9999)


@pytest.mark.parametrize("key", sorted(API_KEYS))
def test_the_table_of_keys_agrees_with_the_messages(key: int) -> None:
    info = API_KEYS[key]
    request = schema.load(f"{info.name}Request")
    response = schema.load(f"{info.name}Response")
    assert request.key == response.key == key == info.key
    assert request.versions == response.versions == (info.min, info.unstable_max or info.max)
    assert request.flexible == response.flexible
    first = None if request.flexible == schema.NONE else request.flexible[0]
    assert first == info.flexible_from
    assert sorted(request.listeners) == sorted(info.listeners)
    assert info.key.name == schema.snake_case(info.name).upper()


def test_keys_ascend_and_removed_ones_have_no_versions() -> None:
    assert list(API_KEYS) == sorted(API_KEYS)
    assert set(ApiKey) - set(API_KEYS) == {4, 5, 6, 7}
    assert set(API_KEYS) >= UNBUILT


def test_what_a_listener_supports() -> None:
    assert is_supported(0, 3, "broker")
    assert not is_supported(0, 2, "broker")
    assert not is_supported(0, 14, "broker")
    assert not is_supported(0, 3, "controller")
    assert is_supported(1, 18, "controller")
    assert not is_supported(4, 0, "broker")
    assert not is_supported(999, 0, "broker")
    assert not is_supported(-1, 0, "broker")
    assert not is_supported(22, 6, "broker")
    assert is_supported(22, 6, "broker", unstable=True)


@pytest.mark.parametrize("letter", ["9", "\u00e9", "\U0001f600", "\ud800"])
def test_a_message_fits_into_a_string_of_the_wire_format(letter: str) -> None:
    message = KafkaError(ErrorCode.INVALID_CONFIG, letter * 40_000).message
    assert message is not None
    assert 32_760 < len(message.encode()) <= 32_767
    assert message.endswith("...")
    assert KafkaError(ErrorCode.INVALID_CONFIG, "9" * 32_767).message == "9" * 32_767
