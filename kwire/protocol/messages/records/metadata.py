"""Generated from `schema/records/metadata.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Struct, Tagged, Tags
from kwire.protocol.uuids import ZERO


class RegisterBrokerRecord(Message):
    """RegisterBrokerRecord, versions 0-4: a metadata record."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "end_points",
        "features",
        "fenced",
        "in_controlled_shutdown",
        "incarnation_id",
        "is_migrating_zk_broker",
        "rack",
    )
    FIELDS = (
        "broker_id",
        "is_migrating_zk_broker",
        "incarnation_id",
        "broker_epoch",
        "end_points",
        "features",
        "rack",
        "fenced",
        "in_controlled_shutdown",
        "log_dirs",
        "cordoned_log_dirs",
    )
    API_KEY = 0
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 4

    class BrokerEndpoint(Struct):
        __slots__ = ("host", "name", "port", "security_protocol")
        FIELDS = ("name", "host", "port", "security_protocol")

        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            security_protocol: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.host = host
            self.port = port
            self.security_protocol = security_protocol
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class BrokerFeature(Struct):
        __slots__ = ("max_supported_version", "min_supported_version", "name")
        FIELDS = ("name", "min_supported_version", "max_supported_version")

        def __init__(
            self,
            *,
            name: str = "",
            min_supported_version: int = 0,
            max_supported_version: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.min_supported_version = min_supported_version
            self.max_supported_version = max_supported_version
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    log_dirs = Tagged["list[bytes]"](maker=list)
    cordoned_log_dirs = Tagged["list[bytes] | None"](None)

    def __init__(
        self,
        *,
        broker_id: int = 0,
        is_migrating_zk_broker: bool = False,
        incarnation_id: bytes = ZERO,
        broker_epoch: int = 0,
        end_points: list[RegisterBrokerRecord.BrokerEndpoint] = UNSET,
        features: list[RegisterBrokerRecord.BrokerFeature] = UNSET,
        rack: str | None = "",
        fenced: bool = True,
        in_controlled_shutdown: bool = False,
        log_dirs: list[bytes] = UNSET,
        cordoned_log_dirs: list[bytes] | None = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.broker_id = broker_id
        self.is_migrating_zk_broker = is_migrating_zk_broker
        self.incarnation_id = incarnation_id
        self.broker_epoch = broker_epoch
        self.end_points = [] if end_points is UNSET else end_points
        self.features = [] if features is UNSET else features
        self.rack = rack
        self.fenced = fenced
        self.in_controlled_shutdown = in_controlled_shutdown
        self._tagged = None
        if log_dirs is not UNSET:
            self.log_dirs = log_dirs
        if cordoned_log_dirs is not UNSET:
            self.cordoned_log_dirs = cordoned_log_dirs
        if unknown_tags:
            self.unknown_tags = unknown_tags


class UnregisterBrokerRecord(Message):
    """UnregisterBrokerRecord, version 0: a metadata record."""

    __slots__ = ("broker_epoch", "broker_id")
    FIELDS = ("broker_id", "broker_epoch")
    API_KEY = 1
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class TopicRecord(Message):
    """TopicRecord, version 0: a metadata record."""

    __slots__ = ("name", "topic_id")
    FIELDS = ("name", "topic_id")
    API_KEY = 2
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO,
        unknown_tags: Tags = (),
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class PartitionRecord(Message):
    """PartitionRecord, versions 0-2: a metadata record."""

    __slots__ = (
        "adding_replicas",
        "directories",
        "isr",
        "leader",
        "leader_epoch",
        "partition_epoch",
        "partition_id",
        "removing_replicas",
        "replicas",
        "topic_id",
    )
    FIELDS = (
        "partition_id",
        "topic_id",
        "replicas",
        "isr",
        "removing_replicas",
        "adding_replicas",
        "leader",
        "leader_recovery_state",
        "leader_epoch",
        "partition_epoch",
        "directories",
        "eligible_leader_replicas",
        "last_known_elr",
    )
    API_KEY = 3
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 2

    leader_recovery_state = Tagged["int"](0)
    eligible_leader_replicas = Tagged["list[int] | None"](None)
    last_known_elr = Tagged["list[int] | None"](None)

    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: bytes = ZERO,
        replicas: list[int] = UNSET,
        isr: list[int] = UNSET,
        removing_replicas: list[int] = UNSET,
        adding_replicas: list[int] = UNSET,
        leader: int = -1,
        leader_epoch: int = -1,
        partition_epoch: int = -1,
        directories: list[bytes] = UNSET,
        leader_recovery_state: int = UNSET,
        eligible_leader_replicas: list[int] | None = UNSET,
        last_known_elr: list[int] | None = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.partition_id = partition_id
        self.topic_id = topic_id
        self.replicas = [] if replicas is UNSET else replicas
        self.isr = [] if isr is UNSET else isr
        self.removing_replicas = [] if removing_replicas is UNSET else removing_replicas
        self.adding_replicas = [] if adding_replicas is UNSET else adding_replicas
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.directories = [] if directories is UNSET else directories
        self._tagged = None
        if leader_recovery_state is not UNSET:
            self.leader_recovery_state = leader_recovery_state
        if eligible_leader_replicas is not UNSET:
            self.eligible_leader_replicas = eligible_leader_replicas
        if last_known_elr is not UNSET:
            self.last_known_elr = last_known_elr
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ConfigRecord(Message):
    """ConfigRecord, version 0: a metadata record."""

    __slots__ = ("name", "resource_name", "resource_type", "value")
    FIELDS = ("resource_type", "resource_name", "name", "value")
    API_KEY = 4
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        name: str = "",
        value: str | None = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.name = name
        self.value = value
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class PartitionChangeRecord(Message):
    """PartitionChangeRecord, versions 0-2: a metadata record."""

    __slots__ = ("partition_id", "topic_id")
    FIELDS = (
        "partition_id",
        "topic_id",
        "isr",
        "leader",
        "replicas",
        "removing_replicas",
        "adding_replicas",
        "leader_recovery_state",
        "directories",
        "eligible_leader_replicas",
        "last_known_elr",
    )
    API_KEY = 5
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 2

    isr = Tagged["list[int] | None"](None)
    leader = Tagged["int"](-2)
    replicas = Tagged["list[int] | None"](None)
    removing_replicas = Tagged["list[int] | None"](None)
    adding_replicas = Tagged["list[int] | None"](None)
    leader_recovery_state = Tagged["int"](-1)
    directories = Tagged["list[bytes] | None"](None)
    eligible_leader_replicas = Tagged["list[int] | None"](None)
    last_known_elr = Tagged["list[int] | None"](None)

    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: bytes = ZERO,
        isr: list[int] | None = UNSET,
        leader: int = UNSET,
        replicas: list[int] | None = UNSET,
        removing_replicas: list[int] | None = UNSET,
        adding_replicas: list[int] | None = UNSET,
        leader_recovery_state: int = UNSET,
        directories: list[bytes] | None = UNSET,
        eligible_leader_replicas: list[int] | None = UNSET,
        last_known_elr: list[int] | None = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.partition_id = partition_id
        self.topic_id = topic_id
        self._tagged = None
        if isr is not UNSET:
            self.isr = isr
        if leader is not UNSET:
            self.leader = leader
        if replicas is not UNSET:
            self.replicas = replicas
        if removing_replicas is not UNSET:
            self.removing_replicas = removing_replicas
        if adding_replicas is not UNSET:
            self.adding_replicas = adding_replicas
        if leader_recovery_state is not UNSET:
            self.leader_recovery_state = leader_recovery_state
        if directories is not UNSET:
            self.directories = directories
        if eligible_leader_replicas is not UNSET:
            self.eligible_leader_replicas = eligible_leader_replicas
        if last_known_elr is not UNSET:
            self.last_known_elr = last_known_elr
        if unknown_tags:
            self.unknown_tags = unknown_tags


class FenceBrokerRecord(Message):
    """FenceBrokerRecord, version 0: a metadata record."""

    __slots__ = ("epoch", "id")
    FIELDS = ("id", "epoch")
    API_KEY = 7
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        id: int = 0,
        epoch: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.id = id
        self.epoch = epoch
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class UnfenceBrokerRecord(Message):
    """UnfenceBrokerRecord, version 0: a metadata record."""

    __slots__ = ("epoch", "id")
    FIELDS = ("id", "epoch")
    API_KEY = 8
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        id: int = 0,
        epoch: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.id = id
        self.epoch = epoch
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class RemoveTopicRecord(Message):
    """RemoveTopicRecord, version 0: a metadata record."""

    __slots__ = ("topic_id",)
    FIELDS = ("topic_id",)
    API_KEY = 9
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO,
        unknown_tags: Tags = (),
    ) -> None:
        self.topic_id = topic_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DelegationTokenRecord(Message):
    """DelegationTokenRecord, version 0: a metadata record."""

    __slots__ = (
        "expiration_timestamp",
        "issue_timestamp",
        "max_timestamp",
        "owner",
        "renewers",
        "requester",
        "token_id",
    )
    FIELDS = (
        "owner",
        "requester",
        "renewers",
        "issue_timestamp",
        "max_timestamp",
        "expiration_timestamp",
        "token_id",
    )
    API_KEY = 10
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        owner: str = "",
        requester: str = "",
        renewers: list[str] = UNSET,
        issue_timestamp: int = 0,
        max_timestamp: int = 0,
        expiration_timestamp: int = 0,
        token_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.owner = owner
        self.requester = requester
        self.renewers = [] if renewers is UNSET else renewers
        self.issue_timestamp = issue_timestamp
        self.max_timestamp = max_timestamp
        self.expiration_timestamp = expiration_timestamp
        self.token_id = token_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class UserScramCredentialRecord(Message):
    """UserScramCredentialRecord, version 0: a metadata record."""

    __slots__ = ("iterations", "mechanism", "name", "salt", "server_key", "stored_key")
    FIELDS = ("name", "mechanism", "salt", "stored_key", "server_key", "iterations")
    API_KEY = 11
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        salt: bytes = b"",
        stored_key: bytes = b"",
        server_key: bytes = b"",
        iterations: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.salt = salt
        self.stored_key = stored_key
        self.server_key = server_key
        self.iterations = iterations
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class FeatureLevelRecord(Message):
    """FeatureLevelRecord, version 0: a metadata record."""

    __slots__ = ("feature_level", "name")
    FIELDS = ("name", "feature_level")
    API_KEY = 12
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        name: str = "",
        feature_level: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.name = name
        self.feature_level = feature_level
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ClientQuotaRecord(Message):
    """ClientQuotaRecord, version 0: a metadata record."""

    __slots__ = ("entity", "key", "remove", "value")
    FIELDS = ("entity", "key", "value", "remove")
    API_KEY = 14
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    class EntityData(Struct):
        __slots__ = ("entity_name", "entity_type")
        FIELDS = ("entity_type", "entity_name")

        def __init__(
            self,
            *,
            entity_type: str = "",
            entity_name: str | None = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.entity_type = entity_type
            self.entity_name = entity_name
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        entity: list[ClientQuotaRecord.EntityData] = UNSET,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
        unknown_tags: Tags = (),
    ) -> None:
        self.entity = [] if entity is UNSET else entity
        self.key = key
        self.value = value
        self.remove = remove
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ProducerIdsRecord(Message):
    """ProducerIdsRecord, version 0: a metadata record."""

    __slots__ = ("broker_epoch", "broker_id", "next_producer_id")
    FIELDS = ("broker_id", "broker_epoch", "next_producer_id")
    API_KEY = 15
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        next_producer_id: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.next_producer_id = next_producer_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class BrokerRegistrationChangeRecord(Message):
    """BrokerRegistrationChangeRecord, versions 0-3: a metadata record."""

    __slots__ = ("broker_epoch", "broker_id")
    FIELDS = (
        "broker_id",
        "broker_epoch",
        "fenced",
        "in_controlled_shutdown",
        "log_dirs",
        "cordoned_log_dirs",
    )
    API_KEY = 17
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 3

    fenced = Tagged["int"](0)
    in_controlled_shutdown = Tagged["int"](0)
    log_dirs = Tagged["list[bytes]"](maker=list)
    cordoned_log_dirs = Tagged["list[bytes] | None"](None)

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = 0,
        fenced: int = UNSET,
        in_controlled_shutdown: int = UNSET,
        log_dirs: list[bytes] = UNSET,
        cordoned_log_dirs: list[bytes] | None = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self._tagged = None
        if fenced is not UNSET:
            self.fenced = fenced
        if in_controlled_shutdown is not UNSET:
            self.in_controlled_shutdown = in_controlled_shutdown
        if log_dirs is not UNSET:
            self.log_dirs = log_dirs
        if cordoned_log_dirs is not UNSET:
            self.cordoned_log_dirs = cordoned_log_dirs
        if unknown_tags:
            self.unknown_tags = unknown_tags


class AccessControlEntryRecord(Message):
    """AccessControlEntryRecord, version 0: a metadata record."""

    __slots__ = (
        "host",
        "id",
        "operation",
        "pattern_type",
        "permission_type",
        "principal",
        "resource_name",
        "resource_type",
    )
    FIELDS = (
        "id",
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )
    API_KEY = 18
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        id: bytes = ZERO,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 0,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.id = id
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class RemoveAccessControlEntryRecord(Message):
    """RemoveAccessControlEntryRecord, version 0: a metadata record."""

    __slots__ = ("id",)
    FIELDS = ("id",)
    API_KEY = 19
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        id: bytes = ZERO,
        unknown_tags: Tags = (),
    ) -> None:
        self.id = id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class NoOpRecord(Message):
    """NoOpRecord, version 0: a metadata record."""

    __slots__ = ()
    API_KEY = 20
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        unknown_tags: Tags = (),
    ) -> None:
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ZkMigrationStateRecord(Message):
    """ZkMigrationStateRecord, version 0: a metadata record."""

    __slots__ = ("zk_migration_state",)
    FIELDS = ("zk_migration_state",)
    API_KEY = 21
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        zk_migration_state: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.zk_migration_state = zk_migration_state
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class RemoveUserScramCredentialRecord(Message):
    """RemoveUserScramCredentialRecord, version 0: a metadata record."""

    __slots__ = ("mechanism", "name")
    FIELDS = ("name", "mechanism")
    API_KEY = 22
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class BeginTransactionRecord(Message):
    """BeginTransactionRecord, version 0: a metadata record."""

    __slots__ = ()
    FIELDS = ("name",)
    API_KEY = 23
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    name = Tagged["str | None"](None)

    def __init__(
        self,
        *,
        name: str | None = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self._tagged = None
        if name is not UNSET:
            self.name = name
        if unknown_tags:
            self.unknown_tags = unknown_tags


class EndTransactionRecord(Message):
    """EndTransactionRecord, version 0: a metadata record."""

    __slots__ = ()
    API_KEY = 24
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        unknown_tags: Tags = (),
    ) -> None:
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class AbortTransactionRecord(Message):
    """AbortTransactionRecord, version 0: a metadata record."""

    __slots__ = ()
    FIELDS = ("reason",)
    API_KEY = 25
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    reason = Tagged["str | None"](None)

    def __init__(
        self,
        *,
        reason: str | None = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self._tagged = None
        if reason is not UNSET:
            self.reason = reason
        if unknown_tags:
            self.unknown_tags = unknown_tags


class RemoveDelegationTokenRecord(Message):
    """RemoveDelegationTokenRecord, version 0: a metadata record."""

    __slots__ = ("token_id",)
    FIELDS = ("token_id",)
    API_KEY = 26
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        token_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.token_id = token_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class RegisterControllerRecord(Message):
    """RegisterControllerRecord, version 0: a metadata record."""

    __slots__ = ("controller_id", "end_points", "features", "incarnation_id", "zk_migration_ready")
    FIELDS = ("controller_id", "incarnation_id", "zk_migration_ready", "end_points", "features")
    API_KEY = 27
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    class ControllerEndpoint(Struct):
        __slots__ = ("host", "name", "port", "security_protocol")
        FIELDS = ("name", "host", "port", "security_protocol")

        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            security_protocol: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.host = host
            self.port = port
            self.security_protocol = security_protocol
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class ControllerFeature(Struct):
        __slots__ = ("max_supported_version", "min_supported_version", "name")
        FIELDS = ("name", "min_supported_version", "max_supported_version")

        def __init__(
            self,
            *,
            name: str = "",
            min_supported_version: int = 0,
            max_supported_version: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.min_supported_version = min_supported_version
            self.max_supported_version = max_supported_version
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        controller_id: int = 0,
        incarnation_id: bytes = ZERO,
        zk_migration_ready: bool = False,
        end_points: list[RegisterControllerRecord.ControllerEndpoint] = UNSET,
        features: list[RegisterControllerRecord.ControllerFeature] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.controller_id = controller_id
        self.incarnation_id = incarnation_id
        self.zk_migration_ready = zk_migration_ready
        self.end_points = [] if end_points is UNSET else end_points
        self.features = [] if features is UNSET else features
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ClearElrRecord(Message):
    """ClearElrRecord, version 0: a metadata record."""

    __slots__ = ("topic_name",)
    FIELDS = ("topic_name",)
    API_KEY = 28
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        topic_name: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.topic_name = topic_name
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class UnregisterControllerRecord(Message):
    """UnregisterControllerRecord, version 0: a metadata record."""

    __slots__ = ("controller_id",)
    FIELDS = ("controller_id",)
    API_KEY = 29
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        controller_id: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.controller_id = controller_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
