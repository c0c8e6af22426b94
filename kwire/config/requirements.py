"""What Kafka requires of a broker's settings together, in its words (measured on Kafka 4.4).

`check_requirements` looks at all settings as they are or would be: a node is started with them, or
a dynamic change would leave them so. The rules come in Kafka's order: the first that is broken is
the one that a client is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kwire.config.checks import address_limits
from kwire.config.errors import ConfigError
from kwire.config.listener_requirements import REQUIREMENT, check_listeners, protocol_map
from kwire.config.listeners import WITH_SASL
from kwire.config.node_settings import NodeSettings
from kwire.config.values import has_repeats

BY_ZERO = "/ by zero"
COMPRESSION_IDS = range(5)
ADDRESS_LIMITS = "max.connections.per.ip.overrides"
NO_MAP_OF_LIMITS = f"Error parsing configuration property '{ADDRESS_LIMITS}'"
CORDONED, ALL_DIRECTORIES = "cordoned.log.dirs", "*"
# Settings of group protocols: (which, what it must be, than which).
AT_MOST, AT_LEAST = "less than or equal to", "greater than or equal to"


def _bounded(kind: str, what: str) -> list[tuple[str, str, str]]:
    name, least, most = (f"group.{kind}.{bound}{what}" for bound in ("", "min.", "max."))
    return [(most, AT_LEAST, least), (name, AT_LEAST, least), (name, AT_MOST, most)]


GROUP_REQUIREMENTS: tuple[tuple[str, str, str], ...] = (
    *_bounded("consumer", "heartbeat.interval.ms"),
    *_bounded("consumer", "session.timeout.ms"),
    *_bounded("consumer", "assignment.interval.ms"),
    *_bounded("share", "heartbeat.interval.ms"),
    *_bounded("share", "session.timeout.ms"),
    ("group.share.record.lock.duration.ms", AT_LEAST, "group.share.min.record.lock.duration.ms"),
    ("group.share.max.record.lock.duration.ms", AT_LEAST, "group.share.record.lock.duration.ms"),
    ("group.share.max.share.sessions", AT_LEAST, "group.share.max.size"),
    ("group.share.delivery.count.limit", AT_LEAST, "group.share.min.delivery.count.limit"),
    ("group.share.max.delivery.count.limit", AT_LEAST, "group.share.delivery.count.limit"),
    (
        "group.share.partition.max.record.locks",
        AT_LEAST,
        "group.share.min.partition.max.record.locks",
    ),
    (
        "group.share.max.partition.max.record.locks",
        AT_LEAST,
        "group.share.partition.max.record.locks",
    ),
    *_bounded("share", "assignment.interval.ms"),
    *_bounded("streams", "heartbeat.interval.ms"),
    *_bounded("streams", "session.timeout.ms"),
    *_bounded("streams", "assignment.interval.ms"),
    ("group.streams.num.standby.replicas", AT_MOST, "group.streams.max.standby.replicas"),
    ("group.streams.num.warmup.replicas", AT_MOST, "group.streams.max.warmup.replicas"),
    (
        "group.streams.task.offset.interval.ms",
        AT_LEAST,
        "group.streams.min.task.offset.interval.ms",
    ),
)
# Other assignors are Java classes; Kafka refuses those that it does not find, and here is none.
ASSIGNORS = {
    "group.consumer.assignors": ("uniform", "range"),
    "group.share.assignors": ("simple",),
    "group.streams.assignors": ("sticky",),
}


def check_requirements(config: NodeSettings) -> None:
    """Raise ConfigError for the first requirement that the settings do not meet."""
    for check in _CHECKS:
        check(config)


def for_people(error: ConfigError) -> str:
    """A requirement that is not met, in words for somebody who runs a node."""
    text = str(error).removeprefix(REQUIREMENT)
    if text == BY_ZERO:
        return f"{error.about} must be at least 1"
    if error.about == ADDRESS_LIMITS or text.startswith(NO_MAP_OF_LIMITS):
        text += "; accepted: ADDRESS:NUMBER, parted by commas"
    return f"Invalid value of {error.about}: {text}" if error.about else text


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise ConfigError(REQUIREMENT + text)


def _cleaner(config: NodeSettings) -> None:
    threads = config["log.cleaner.threads"]
    if threads == 0:
        # Kafka divides by it, and tells its clients just that.
        raise ConfigError(BY_ZERO, "log.cleaner.threads")
    size_bytes = config["log.cleaner.dedupe.buffer.size"]
    # Java's division: what is left of the megabyte is cut off.
    _require(
        size_bytes // threads > 1 << 20,
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    )


def _identity(config: NodeSettings) -> None:
    node_id = config["node.id"]
    if node_id is not None and "broker.id" in config.texts and config["broker.id"] != node_id:
        raise ConfigError(
            "`node.id` and `broker.id` must be set to the same value. `broker.id` is deprecated, "
            "please use `node.id` instead."
        )


def _log_times(config: NodeSettings) -> None:
    roll_ms = _first_set(config, ("log.roll.ms", 1), ("log.roll.hours", 3_600_000))
    _require(roll_ms >= 1, "log.roll.ms must be greater than or equal to 1")
    jitter_ms = _first_set(config, ("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 3_600_000))
    _require(jitter_ms >= 0, "log.roll.jitter.ms must be greater than or equal to 0")
    retention_ms = _first_set(
        config,
        ("log.retention.ms", 1),
        ("log.retention.minutes", 60_000),
        ("log.retention.hours", 3_600_000),
    )
    # Kafka makes -1, no limit, of every negative number.
    _require(
        retention_ms != 0,
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
    )


def _first_set(config: NodeSettings, *names: tuple[str, int]) -> int:
    """The first of these that is not null, times its factor; the last has a default."""
    for name, factor in names:
        value = config[name]
        if value is not None:
            return int(value) * factor
    raise AssertionError(f"none of {names} has a value")


def _cordoned(config: NodeSettings) -> None:
    cordoned = config[CORDONED]
    if not config.is_broker:
        return
    if ALL_DIRECTORIES in cordoned:
        _require(
            len(cordoned) == 1,
            f"When {CORDONED} is set to {ALL_DIRECTORIES}, it must not contain other values",
        )
        return
    missing = [entry for entry in cordoned if entry not in config.log_directories]
    _require(
        not missing,
        f"All entries in {CORDONED} must be present in log.dirs or log.dir. Missing entries : "
        + ", ".join(missing),
    )


def _replication(config: NodeSettings) -> None:
    wait_ms = config["replica.fetch.wait.max.ms"]
    _require(
        wait_ms <= config["replica.socket.timeout.ms"],
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent "
        "unnecessary socket timeouts",
    )
    _require(
        wait_ms <= config["replica.lag.time.max.ms"],
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms "
        "to prevent frequent changes in ISR",
    )


def _compression_ids(config: NodeSettings) -> None:
    for topic in ("offsets.topic", "share.coordinator.state.topic"):
        name = f"{topic}.compression.codec"
        if config[name] not in COMPRESSION_IDS:
            raise ConfigError(f"Unknown compression type id: {config[name]}", name)


def _voters(config: NodeSettings) -> None:
    voters = [entry.partition("@")[0] for entry in config["controller.quorum.voters"] or ()]
    _require(
        not voters or not config.is_controller or str(config.node_id) in voters,
        f"If process.roles contains the 'controller' role, the node id {config.node_id} must be "
        f"included in the set of voters controller.quorum.voters=Set({', '.join(voters)})",
    )


def _mechanism_between_brokers(config: NodeSettings) -> None:
    """Of controllers Kafka requires nothing of the kind."""
    listener = config.inter_broker_listener_name()
    if protocol_map(config).get(listener) not in WITH_SASL:
        return
    enabled = config.of_listener(listener, "sasl.enabled.mechanisms")
    _require(
        config["sasl.mechanism.inter.broker.protocol"] in enabled,
        "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms when "
        "SASL is used for inter-broker communication",
    )


_HOST = re.compile(r"[0-9a-zA-Z\-%._:]*")


def _connections(config: NodeSettings) -> None:
    queued_bytes = config["queued.max.request.bytes"]
    _require(
        queued_bytes <= 0 or queued_bytes >= config["socket.request.max.bytes"],
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    )
    limits = address_limits(ADDRESS_LIMITS, config[ADDRESS_LIMITS])
    _require(
        config["max.connections.per.ip"] != 0 or bool(limits),
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides "
        "property is set.",
    )
    wrong = [host for host in limits if not _HOST.fullmatch(host)]
    if wrong:
        raise ConfigError(f"{ADDRESS_LIMITS} contains invalid addresses : {','.join(wrong)}")
    idle_ms = config["connections.max.idle.ms"]
    delay_ms = config["connection.failed.authentication.delay.ms"]
    _require(
        idle_ms < 0 or delay_ms < idle_ms,
        f"connection.failed.authentication.delay.ms={delay_ms} should always be less than "
        f"connections.max.idle.ms={idle_ms} to prevent failed authentication responses from timing "
        "out",
    )


def _groups(config: NodeSettings) -> None:
    if "classic" not in config["group.coordinator.rebalance.protocols"]:
        raise ConfigError("Disabling the 'classic' protocol is not supported.")
    for name, relation, other in GROUP_REQUIREMENTS:
        value, bound = config[name], config[other]
        if value > bound if relation is AT_MOST else value < bound:
            raise ConfigError(f"{name} must be {relation} {other}")
    tags = "group.streams.rack.aware.assignment.tags"
    if has_repeats(config.texts.get(tags, "")):
        raise ConfigError(f"{tags} must not contain duplicate tag keys.")
    for name, known in ASSIGNORS.items():
        for assignor in config[name]:
            if assignor not in known:
                raise ConfigError(
                    f"Invalid value {assignor} for configuration {name}: Class cannot be found"
                )


_CHECKS: tuple[Callable[[NodeSettings], None], ...] = (
    _cleaner,
    _identity,
    _log_times,
    _cordoned,
    _replication,
    _compression_ids,
    _voters,
    check_listeners,
    _mechanism_between_brokers,
    _connections,
    _groups,
)
