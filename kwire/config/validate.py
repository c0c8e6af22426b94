"""What clients may set: Kafka's checks, codes and texts for altered configs (measured on 4.4).

Each function takes the configs a resource would have afterwards (name -> text; for brokers the
changed ones) and raises `KafkaError`. Topics, groups and client metrics are checked by the
controller, brokers and loggers by the broker that the request reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from kwire.config.broker_config import BrokerConfig, definition_of
from kwire.config.definitions import BROKER, CLIENT_METRICS, GROUP, TOPIC, ConfigTable
from kwire.config.dynamic import DynamicConfig
from kwire.config.errors import ConfigError
from kwire.config.listener_settings import PREFIX
from kwire.config.values import TypedValue, Value, has_repeats, operands, split_list
from kwire.protocol.errors import ErrorCode, KafkaError

SET, DELETE, APPEND, SUBTRACT = range(4)

CLIENT_METRICS_INTERVAL_MIN_MS = 100
CLIENT_METRICS_INTERVAL_MAX_MS = 3_600_000
CLIENT_METRICS_MATCH_KEYS = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
_BOUNDED = (
    ("consumer", "heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"),
    ("share", "heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"),
    ("share", "record.lock.duration.ms", "delivery.count.limit", "partition.max.record.locks"),
    ("streams", "heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"),
)
# Group config -> broker settings that bound it (least, most).
GROUP_BOUNDS = {
    f"{kind}.{what}": (f"group.{kind}.min.{what}", f"group.{kind}.max.{what}")
    for kind, *whats in _BOUNDED
    for what in whats
}
GROUP_AT_MOST = {
    "streams.num.standby.replicas": "group.streams.max.standby.replicas",
    "streams.num.warmup.replicas": "group.streams.max.warmup.replicas",
}
RACK_TAGS = "streams.rack.aware.assignment.tags"
GROUP_AT_LEAST = {"streams.task.offset.interval.ms": "group.streams.min.task.offset.interval.ms"}
# Settings that exist dynamically only; Kafka knows them apart from all others.
REPLICATION_QUOTAS = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)


def _invalid_config(message: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_CONFIG, message)


def _invalid_request(message: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def validate_topic(name: str, value: str) -> Value:
    """Check one topic config alone; returns its typed value, raises INVALID_CONFIG."""
    definition = TOPIC.get(name)
    if definition is None:
        _invalid_config(f"Unknown topic config name: {name}")
    try:
        parsed = definition.parse(value)
    except ConfigError as error:
        _invalid_config(str(error))
    if definition.support == "refused" and parsed != definition.default:
        _invalid_config(_refusal(name, definition.note))
    return parsed


def _refusal(name: str, note: str) -> str:
    if name == "remote.storage.enable":
        return (
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    return f"{name} is refused: {note}"


def validate_topic_configs(configs: Mapping[str, str | None]) -> dict[str, TypedValue]:
    """Check all configs that a topic is to have; returns the typed ones, raises INVALID_CONFIG."""
    nulls = [name for name, value in configs.items() if value is None]
    if nulls:
        _invalid_config(f"Null value not supported for topic configs: {','.join(nulls)}")
    for name in configs:
        if name not in TOPIC:
            _invalid_config(f"Unknown topic config name: {name}")
    values: dict[str, TypedValue] = {
        name: validate_topic(name, value) for name, value in configs.items() if value is not None
    }
    least: TypedValue = values.get("min.compaction.lag.ms", TOPIC["min.compaction.lag.ms"].default)
    most: TypedValue = values.get("max.compaction.lag.ms", TOPIC["max.compaction.lag.ms"].default)
    if least > most:
        _invalid_config(
            f"conflict topic config setting min.compaction.lag.ms ({least}) > "
            f"max.compaction.lag.ms ({most})"
        )
    return values


def validate_group_configs(
    group: str, configs: Mapping[str, str | None], broker: BrokerConfig | DynamicConfig
) -> None:
    """Check all configs that a group is to have; INVALID_REQUEST or INVALID_CONFIG."""
    if not group:
        _invalid_request("Default group resources are not allowed.")
    nulls = [name for name, value in configs.items() if value is None]
    if nulls:
        _invalid_config(f"Null value not supported for group configs: {','.join(nulls)}")
    for name in configs:
        if name not in GROUP:
            _invalid_config(f"Unknown group config name: {name}")
    tags = configs.get(RACK_TAGS)
    if tags is not None and has_repeats(tags):
        _invalid_config(f"{RACK_TAGS} must not contain duplicate tag keys.")
    values = _parse_all(GROUP, configs)
    for name, value in values.items():
        _check_group_value(name, value, broker)
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        given: list[TypedValue] = [
            values.get(name, broker[f"group.{name}"]) for name in (session, heartbeat)
        ]
        if given[0] <= given[1]:
            _invalid_config(f"{session} must be greater than {heartbeat}")


def _parse_all(table: ConfigTable, configs: Mapping[str, str | None]) -> dict[str, TypedValue]:
    values: dict[str, TypedValue] = {}
    for name, text in configs.items():
        try:
            values[name] = table[name].parse(text or "")
        except ConfigError as error:
            _invalid_config(str(error))
    return values


def _check_group_value(name: str, value: TypedValue, broker: BrokerConfig | DynamicConfig) -> None:
    if name in GROUP_BOUNDS:
        least, most = (broker[bound] for bound in GROUP_BOUNDS[name])
        if not least <= value <= most:
            _invalid_config(f"{name} must be in the range {least} to {most} inclusive.")
    elif name in GROUP_AT_MOST:
        most = broker[GROUP_AT_MOST[name]]
        if value > most:
            _invalid_config(f"{name} must be less than or equal to {most}")
    elif name in GROUP_AT_LEAST:
        least = broker[GROUP_AT_LEAST[name]]
        if value < least:
            _invalid_config(f"{name} must be greater than or equal to {least}")
    elif name == "streams.assignor.name":
        assignors = broker["group.streams.assignors"]
        if value not in assignors:
            _invalid_config(
                f"{name} '{value}' is not a registered task assignor. "
                f"Registered assignors are: [{', '.join(assignors)}]."
            )
    elif name == "errors.deadletterqueue.topic.name" and str(value).startswith("__"):
        _invalid_config(f"{name}: DLQ topic name must not start with '__'")


def validate_client_metrics_configs(name: str, configs: Mapping[str, str | None]) -> None:
    """Check all configs of a client metrics subscription; INVALID_REQUEST or INVALID_CONFIG."""
    if not name:
        _invalid_request("Subscription name can't be empty")
    for key in configs:
        if key not in CLIENT_METRICS:
            _invalid_request(f"Unknown client metrics configuration: {key}")
    values = _parse_all(CLIENT_METRICS, configs)
    interval = values.get("interval.ms")
    if isinstance(interval, int) and not (
        CLIENT_METRICS_INTERVAL_MIN_MS <= interval <= CLIENT_METRICS_INTERVAL_MAX_MS
    ):
        _invalid_request(
            f"Invalid value {interval} for interval.ms, interval must be between "
            f"{CLIENT_METRICS_INTERVAL_MIN_MS} and {CLIENT_METRICS_INTERVAL_MAX_MS} (1 hour)"
        )
    patterns = values.get("match")
    for pattern in patterns if isinstance(patterns, list) else []:
        _check_match(pattern)


def _check_match(pattern: str) -> None:
    """What a client tells of itself, `=`, and a pattern in RE2's syntax."""
    from kwire.protocol.regex import compile_pattern

    key, _, expression = (part.strip() for part in pattern.partition("="))
    if key in CLIENT_METRICS_MATCH_KEYS and expression and "=" not in expression:
        try:
            compile_pattern(expression)
            return
        except KafkaError:
            pass
    _invalid_config(f"Illegal client matching pattern: {pattern}")


def is_list_config(resource_type: int, name: str) -> bool:
    """Whether APPEND and SUBTRACT apply: only to configs of topics and brokers, as in Kafka."""
    table = {2: TOPIC, 4: BROKER}.get(resource_type)
    if table is None:
        return False
    definition = definition_of(name) if table is BROKER else table.get(name)
    return definition is not None and definition.type == "list"


def apply_broker_operation(
    name: str, operation: int, value: str | None, current: str | None
) -> str | None:
    """A broker's setting after one incremental operation, as text; None removes it.

    APPEND and SUBTRACT take and give comma-separated entries, on top of `current` (which the
    caller fills with the default where nothing is set). INVALID_REQUEST for a missing value,
    INVALID_CONFIG for what is no list or is unknown: settings with a listener's prefix and the
    replication quotas are unknown here (measured on Apache Kafka 4.4).
    """
    if operation == DELETE:
        return None
    if value is None:
        _invalid_request(f"Null value not supported for : {name}")
    if operation == SET:
        return value
    definition = None if name.startswith(PREFIX) else definition_of(name)
    if definition is None or name in REPLICATION_QUOTAS:
        _invalid_config(f"Unknown config name: {name}")
    if definition.type != "list":
        verb = "append" if operation == APPEND else "subtract"
        _invalid_config(f"Config value {verb} is not allowed for config key: {name}")
    entries = split_list(current or "")
    given = operands(value)
    if operation == APPEND:
        entries += [entry for entry in given if entry not in entries]
    else:
        entries = [entry for entry in entries if entry not in given]
    return ",".join(entries)
