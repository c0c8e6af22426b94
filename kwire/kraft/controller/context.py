"""What a controller is made with, and what comes with each request."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.authorizer import ANONYMOUS

Authorize = Callable[[int, int, str], bool]
"""(operation, resource type, resource name) -> allowed; Kafka's numbers of AclOperation etc."""


def allow_all(operation: int, resource_type: int, resource_name: str) -> bool:
    """The authorizer of a cluster without one."""
    return True


def no_quota(partitions: int) -> None:
    """The controller mutation quota where none is set."""


def not_controller(active: int | None = None) -> KafkaError:
    """What a controller says that does not lead; `active` is who does, where that is known."""
    if active is None:
        text = "No controller appears to be active."
    else:
        text = f"The active controller appears to be node {active}."
    return KafkaError(ErrorCode.NOT_CONTROLLER, text)


class ConfigRules(Protocol):
    """What the controller must know about configs (kwire/kraft/controller/config_rules.py)."""

    def validate(
        self, resource_type: int, name: str, new: Mapping[str, str], old: Mapping[str, str]
    ) -> None:
        """Raise KafkaError with Kafka's code and message when `new` may not be set."""
        ...

    def is_list(self, resource_type: int, key: str) -> bool:
        """Whether APPEND and SUBTRACT apply to this config."""
        ...

    def default(self, resource_type: int, key: str) -> str | None:
        """The default as text; None where there is none."""
        ...

    def topic_value(
        self,
        key: str,
        topic: Mapping[str, str],
        node: Mapping[str, str],
        cluster: Mapping[str, str],
    ) -> int | float | bool | str | list[str] | None:
        """The effective value of a topic config, typed: topic, node, cluster, static, default.

        Of what is stored, that which this version can use.
        """
        ...

    def topic_entries(
        self, topic: Mapping[str, str], node: Mapping[str, str], cluster: Mapping[str, str]
    ) -> list[TopicConfigEntry]:
        """Every topic config with its effective value, sorted by name."""
        ...

    def quota_keys(self, is_ip: bool) -> Mapping[str, str]:
        """Client quota keys and their types (DOUBLE, LONG, ...) for an entity kind."""
        ...


@dataclass(frozen=True, slots=True)
class TopicConfigEntry:
    """One effective topic config as CreateTopics answers it; `value` None when sensitive."""

    name: str
    value: str | None
    source: int
    is_sensitive: bool = False
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """Settings of the controller, with Kafka's defaults; times in milliseconds."""

    node_id: int
    cluster_id: str
    rules: ConfigRules
    default_replication_factor: int = 1
    num_partitions: int = 1
    delete_topic_enable: bool = True
    session_timeout_ms: int = 9000
    leader_imbalance_check_interval_ms: int | None = 300_000
    unclean_election_interval_ms: int = 300_000
    max_idle_interval_ms: int = 500
    static_min_insync_replicas: int = 1
    supported_features: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    voter_ids: tuple[int, ...] = ()
    has_authorizer: bool = False
    kraft_version: int = 1
    token_secret: str | None = None
    token_max_lifetime_ms: int = 604_800_000
    token_expiry_ms: int = 86_400_000
    token_expiry_check_interval_ms: int = 3_600_000


@dataclass(frozen=True, slots=True)
class KraftUpgrade:
    """The kraft.version that an UpdateFeaturesRequest asks for: raft's to raise, not a record."""

    level: int
    validate_only: bool


@dataclass(slots=True)
class ControllerContext:
    """What accompanies one request.

    `next_offset` is the offset that the first record of the answer will get: a new broker's epoch.
    `apply_partition_quota` raises KafkaError(THROTTLING_QUOTA_EXCEEDED) when the controller
    mutation quota does not allow that many partitions now. `same_process`: the request comes from
    the broker of this very process, which holds the lock of their log directories, so that no
    earlier incarnation of it can be alive. `kraft_version` and `voter_ids` are the quorum's, which
    are not among the metadata; a handler sets `wanted_kraft_version` when the request wants a
    higher one, and the driver then has raft raise it, and fails the request if that cannot be.
    `active_controller` is who leads the quorum, as far as this node knows. `known_hosts` are the
    names of hosts in the request that have an address.
    """

    api_version: int = 0
    principal: str = ANONYMOUS
    client_id: str | None = None
    authorize: Authorize = allow_all
    authorize_quietly: Authorize | None = None
    next_offset: int | None = None
    wall_ms: int = 0
    listener_name: str | None = None
    token_authenticated: bool = False
    forwarded: bool = True
    security_protocol: str = "PLAINTEXT"
    same_process: bool = False
    apply_partition_quota: Callable[[int], None] = no_quota
    kraft_version: int | None = None
    voter_ids: tuple[int, ...] | None = None
    wanted_kraft_version: KraftUpgrade | None = None
    active_controller: int | None = None
    known_hosts: Collection[str] = ()

    def may(self, operation: int, resource_type: int, resource_name: str) -> bool:
        """As `authorize`, where a denial refuses nothing: no audit log is told of it."""
        ask = self.authorize_quietly or self.authorize
        return ask(operation, resource_type, resource_name)
