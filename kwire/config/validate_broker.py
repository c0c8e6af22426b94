"""What clients may set of a broker while it runs: Kafka's checks, codes and texts.

Measured on Apache Kafka 4.4. In its order: which names may change at all, which need a listener's
prefix, each value by itself, which are a single broker's; then everything that the broker would
have together (`kwire.config.requirements`), then what the parts say that would take the change over
(thread counts at most double, a listener keeps its security protocol, ...). What kwire has not
built is refused last, so that a client is told Kafka's reason where there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from kwire.config import stored
from kwire.config.broker_config import BrokerConfig, definition_of
from kwire.config.checks import check_repeats
from kwire.config.consistency import check_supported
from kwire.config.definitions import BROKER, ConfigDefinition
from kwire.config.dynamic import DynamicConfig
from kwire.config.errors import ConfigError
from kwire.config.listener_requirements import protocol_map
from kwire.config.listener_settings import PREFIX
from kwire.config.provider_settings import has_providers, is_provider_setting
from kwire.config.requirements import check_requirements
from kwire.config.values import parse
from kwire.protocol.errors import ErrorCode, KafkaError

# Dynamic thread counts may at most double and at least halve in one step.
NETWORK_THREADS = "num.network.threads"
THREAD_SETTINGS = (
    NETWORK_THREADS,
    "num.io.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "remote.log.reader.threads",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
)
NEVER_ZERO = ("max.connections", "max.connection.creation.rate")
# What a listener's prefix is allowed for at cluster level.
OF_ALL_LISTENERS = (*NEVER_ZERO, NETWORK_THREADS)
WITH_PREFIX_ONLY = (
    *("ssl.keystore.type", "ssl.keystore.location", "ssl.keystore.password", "ssl.key.password"),
    *("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.truststore.type"),
    *("ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.certificates"),
)
# What only a listener that is there reads, and so only it finds malformed.
READ_BY_LISTENERS = ("connections.max.idle.ms", "connections.max.reauth.ms")
REPORTERS = "metric.reporters"


def validate_broker_configs(
    changed: Mapping[str, str], dynamic: DynamicConfig, *, per_broker: bool
) -> None:
    """Check the dynamic settings that a broker (or the cluster default) is to have.

    `changed` is all of them, those too that stay. Raises KafkaError: INVALID_REQUEST with Kafka's
    text, INVALID_CONFIG for what is not built. Unknown names pass, as in Kafka.
    """
    try:
        changed, as_set = _resolved(changed)
        _check_names(list(changed))
        _check_types(changed, as_set)
        if not per_broker:
            _check_level(list(changed))
        candidate = dynamic.candidate(changed, per_broker=per_broker)
        check_requirements(candidate)
        _check_parts(candidate, changed, dynamic)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
    _check_built(candidate, changed)


def _resolved(changed: Mapping[str, str]) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """What config providers make of it without their own settings; the texts that are others now.

    Kafka takes any list of names for `config.providers`.
    """
    if not has_providers(changed):
        return {n: text for n, text in changed.items() if not is_provider_setting(n)}, {}
    from kwire.config.providers import resolve_change

    resolved = resolve_change(changed)
    return resolved.texts, resolved.as_set


def _check_names(names: list[str]) -> None:
    fixed = [name for name in names if name in BROKER and not _may_change(BROKER[name])]
    if fixed:
        raise ConfigError(f"Cannot update these configs dynamically: {_listed(fixed)}")
    bare = [name for name in names if name in WITH_PREFIX_ONLY]
    if bare:
        raise ConfigError(
            "These security configs can be dynamically updated only per-listener using the "
            f"listener prefix: {_listed(bare)}"
        )


def _may_change(definition: ConfigDefinition) -> bool:
    return definition.update_mode != "read-only"


def _listed(names: list[str]) -> str:
    return f"[{', '.join(sorted(names))}]"


def _check_types(changed: Mapping[str, str], as_set: Mapping[str, str]) -> None:
    """Each value by itself; of what a config provider gave Kafka tells the placeholder only."""
    for name, text in changed.items():
        definition = definition_of(name)
        if definition is None or not _may_change(definition):
            continue
        try:
            _check_type(definition, text)
        except ConfigError:
            if name not in as_set:
                raise
            raise ConfigError(
                f"Invalid value {as_set[name]} for configuration {definition.name}"
            ) from None


def _check_type(definition: ConfigDefinition, text: str) -> None:
    """A value by itself. A list may have nothing twice here, unlike elsewhere."""
    if definition.type == "class":
        _check_class(definition.name, text.strip())
    value = parse(definition.name, definition.type, text)
    check_repeats(definition.name, definition.check, value)
    definition.parse(text)


def _check_class(name: str, text: str) -> None:
    """There are no classes here but the defaults; which others Kafka would find, nobody knows."""
    if "." not in text:
        raise ConfigError(
            f"Invalid value {text} for configuration {name}: Class {text} could not be found."
        )


def _check_level(names: list[str]) -> None:
    too_wide = [name for name in names if _is_of_one_broker(name)]
    if too_wide:
        raise ConfigError(
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"{_listed(too_wide)}"
        )


def _is_of_one_broker(name: str) -> bool:
    base = _behind_prefix(name)
    if base is not None:
        return base not in OF_ALL_LISTENERS
    definition = BROKER.get(name)
    return definition is not None and definition.update_mode == "per-broker"


def _behind_prefix(name: str) -> str | None:
    """`max.connections` of `listener.name.x.max.connections`; None without such a prefix."""
    if not name.startswith(PREFIX):
        return None
    _, dot, base = name[len(PREFIX) :].partition(".")
    return base if dot else None


def _check_parts(
    candidate: BrokerConfig, changed: Mapping[str, str], dynamic: DynamicConfig
) -> None:
    try:
        for name in THREAD_SETTINGS:
            _check_thread_count(name, candidate[name], dynamic[name])
        _check_reporters(candidate)
        _check_cleaner_threads(candidate, dynamic)
        _check_remote_log(candidate)
        _check_protocols(candidate, dynamic)
        if candidate["max.connections"] == 0:
            raise ConfigError("Invalid max.connections 0")
        if candidate["max.connection.creation.rate"] == 0:
            raise ConfigError("Invalid max.connection.creation.rate 0")
        _check_prefixed(candidate, changed, dynamic)
        for check in dynamic.checks:
            check(candidate)
    except ConfigError as error:
        raise ConfigError(
            f"Invalid value org.apache.kafka.common.config.ConfigException: {error} for "
            "configuration Invalid dynamic configuration"
        ) from None


def _check_thread_count(name: str, value: int, current: int) -> None:
    if value > current * 2:
        why = f"value should not be greater than double the current value {current}"
    elif value < current // 2:
        why = f"value should be at least half the current value {current}"
    else:
        return
    raise ConfigError(f"Dynamic thread count update validation failed for {name}={value}, {why}")


def _check_reporters(candidate: BrokerConfig) -> None:
    """Whatever it names cannot be loaded here; Kafka refuses a class that it does not find."""
    known = BROKER[REPORTERS].default
    if not isinstance(known, list) or any(
        reporter not in known for reporter in candidate[REPORTERS]
    ):
        raise ConfigError(
            f"Validation of dynamic config update of Set({REPORTERS}) failed with class class "
            "kafka.server.DynamicMetricsReporters"
        )


def _check_cleaner_threads(candidate: BrokerConfig, dynamic: DynamicConfig) -> None:
    threads, current = candidate["log.cleaner.threads"], dynamic["log.cleaner.threads"]
    if threads < current // 2:
        raise ConfigError(
            f"Log cleaner threads cannot be reduced to less than half the current value {current}"
        )
    if threads > current * 2:
        raise ConfigError(
            "Log cleaner threads cannot be increased to more than double the current value "
            f"{current}"
        )


def _check_remote_log(candidate: BrokerConfig) -> None:
    """What stays here of a tiered topic is within what stays at all."""
    for unit in ("ms", "bytes"):
        whole_name, local_name = f"log.retention.{unit}", f"log.local.retention.{unit}"
        lag_name = f"log.remote.copy.lag.{unit}"
        whole = _retention(candidate, unit)
        local, lag = candidate[local_name], candidate[lag_name]
        if whole >= 0 and local != -2:
            if local == -1:
                _refuse_local(
                    local_name,
                    local,
                    f"Value must not be -1 as {whole_name} value is set as {whole}.",
                )
            if local > whole:
                _refuse_local(
                    local_name,
                    local,
                    f"Value must not be more than {whole_name} property value: {whole}",
                )
        effective = whole if local == -2 else local
        if effective >= 0 and lag > effective:
            _refuse_local(
                lag_name, lag, f"Value must not exceed {local_name} (effective value: {effective})"
            )


def _retention(candidate: BrokerConfig, unit: str) -> int:
    if unit == "bytes":
        return int(candidate["log.retention.bytes"])
    for name, factor in (("ms", 1), ("minutes", 60_000), ("hours", 3_600_000)):
        value = candidate[f"log.retention.{name}"]
        if value is not None:
            return int(value) * factor
    return -1


def _refuse_local(name: str, value: int, why: str) -> NoReturn:
    raise ConfigError(f"Invalid value {value} for configuration {name}: {why}")


def _check_protocols(candidate: BrokerConfig, dynamic: DynamicConfig) -> None:
    """A listener that is there keeps its security protocol."""
    before, after = protocol_map(dynamic.static), protocol_map(candidate)
    for listener in dynamic.static.listeners():
        name = listener.name
        if name in after and before.get(name) != after[name]:
            raise ConfigError(
                f"Security protocol cannot be updated for existing listener ListenerName({name})"
            )


def _check_prefixed(
    candidate: BrokerConfig, changed: Mapping[str, str], dynamic: DynamicConfig
) -> None:
    """A listener that is there reads its own settings; those of one that is not wait for it."""
    known = [listener.name.lower() for listener in dynamic.static.broker_listeners()]
    for name, text in changed.items():
        base = _behind_prefix(name)
        if base is None or name[len(PREFIX) :].partition(".")[0] not in known:
            continue
        if base == NETWORK_THREADS:
            _check_thread_count(base, int(text), dynamic[base])
        elif base in NEVER_ZERO and int(text) == 0:
            raise ConfigError(f"Invalid {base} 0")
        elif base in READ_BY_LISTENERS:
            parse(base, "long", text)


def _check_built(candidate: BrokerConfig, changed: Mapping[str, str]) -> None:
    """INVALID_CONFIG for what Kafka would take and kwire cannot do."""
    for name, text in changed.items():
        definition = definition_of(name)
        if definition is None or definition.support != "refused":
            continue
        if stored.read(definition, text, None) != definition.default:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{name} is refused: {definition.note}")
    try:
        check_supported(candidate)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
