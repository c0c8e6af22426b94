"""The controller's `ConfigRules` on top of kwire/config: what may be set, what is in effect."""

from __future__ import annotations

from collections.abc import Mapping

from kwire.config import BrokerConfig, stored
from kwire.config.definitions import BROKER as BROKER_TABLE
from kwire.config.definitions import GROUP, QUOTA, TOPIC
from kwire.config.describe import effective_topic_configs
from kwire.config.dynamic import DynamicConfig
from kwire.config.validate import (
    is_list_config,
    validate_client_metrics_configs,
    validate_group_configs,
    validate_topic_configs,
)
from kwire.config.values import Value, to_text
from kwire.kraft.controller.context import ControllerConfig, TopicConfigEntry
from kwire.kraft.controller.state import BROKER, CLIENT_METRICS
from kwire.kraft.controller.state import GROUP as GROUP_TYPE
from kwire.kraft.controller.state import TOPIC as TOPIC_TYPE
from kwire.kraft.controller.topic_names import check_name
from kwire.protocol.errors import ErrorCode, KafkaError


class KafkaConfigRules:
    """Rules of one node: its static settings are what topics without overrides fall back to."""

    def __init__(self, config: BrokerConfig | DynamicConfig) -> None:
        self._config = config
        self._static = config.static if isinstance(config, DynamicConfig) else config

    def validate(
        self, resource_type: int, name: str, new: Mapping[str, str], old: Mapping[str, str]
    ) -> None:
        if resource_type == TOPIC_TYPE:
            if not name:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."
                )
            check_name(name)
            validate_topic_configs(dict(new))
        elif resource_type == BROKER:
            _check_broker_name(name)
        elif resource_type == CLIENT_METRICS:
            validate_client_metrics_configs(name, dict(new))
        elif resource_type == GROUP_TYPE:
            validate_group_configs(name, dict(new), self._config)
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")

    def is_list(self, resource_type: int, key: str) -> bool:
        return is_list_config(resource_type, key)

    def default(self, resource_type: int, key: str) -> str | None:
        """Kafka's default, not the node's setting: what APPEND starts from."""
        table = {TOPIC_TYPE: TOPIC, GROUP_TYPE: GROUP}.get(resource_type)
        if table is None:
            table = BROKER_TABLE
        definition = table.get(key)
        return None if definition is None else to_text(definition.default)

    def topic_value(
        self,
        key: str,
        topic: Mapping[str, str],
        node: Mapping[str, str],
        cluster: Mapping[str, str],
    ) -> Value:
        definition = TOPIC[key]
        if key in topic:
            value = stored.read(definition, topic[key], None)
            if value is not None:
                return value
        for level in (node, cluster, self._static.texts):
            for synonym, factor in definition.broker_synonyms:
                if synonym not in level:
                    continue
                value = stored.read(BROKER_TABLE[synonym], level[synonym], None)
                if value is not None:
                    return value * factor if isinstance(value, int) and factor != 1 else value
        return definition.default

    def topic_entries(
        self, topic: Mapping[str, str], node: Mapping[str, str], cluster: Mapping[str, str]
    ) -> list[TopicConfigEntry]:
        entries = effective_topic_configs(topic, node, cluster, self._static.texts)
        return [
            TopicConfigEntry(entry.name, entry.value, entry.source, entry.sensitive)
            for entry in entries
        ]

    def quota_keys(self, is_ip: bool) -> Mapping[str, str]:
        wanted = "ip" if is_ip else "user"
        return {
            name: definition.type.upper()
            for name, definition in QUOTA.items()
            if wanted in definition.entity
        }


def _check_broker_name(name: str) -> None:
    if not name:
        return
    try:
        node_id = int(name)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number."
        ) from None
    if node_id < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")


def controller_config(
    config: BrokerConfig,
    cluster_id: str,
    voter_ids: tuple[int, ...] = (),
    dynamic: DynamicConfig | None = None,
) -> ControllerConfig:
    """The controller's settings as a node's configuration has them; `dynamic` is the node's view
    of the configs in the metadata, where it has one."""
    balance = config["auto.leader.rebalance.enable"]
    interval_ms = config["leader.imbalance.check.interval.seconds"] * 1000
    secret = config["delegation.token.secret.key"]
    return ControllerConfig(
        node_id=config.node_id,
        cluster_id=cluster_id,
        rules=KafkaConfigRules(config if dynamic is None else dynamic),
        default_replication_factor=config["default.replication.factor"],
        num_partitions=config["num.partitions"],
        delete_topic_enable=config["delete.topic.enable"],
        session_timeout_ms=config["broker.session.timeout.ms"],
        leader_imbalance_check_interval_ms=interval_ms if balance else None,
        unclean_election_interval_ms=config["unclean.leader.election.interval.ms"],
        max_idle_interval_ms=config["metadata.max.idle.interval.ms"],
        static_min_insync_replicas=config["min.insync.replicas"],
        voter_ids=voter_ids,
        has_authorizer=bool(config["authorizer.class.name"]),
        token_secret=secret,
        token_max_lifetime_ms=config["delegation.token.max.lifetime.ms"],
        token_expiry_ms=config["delegation.token.expiry.time.ms"],
        token_expiry_check_interval_ms=config["delegation.token.expiry.check.interval.ms"],
    )
