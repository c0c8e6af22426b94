"""What API handlers may use of the node they run in: a Protocol a concern, `Parts` holds them all.

`context.parts.replicas.partition(topic, index)`, `context.parts.metadata.image`. No handler knows
more of the node than this; `kwire/node/node.py` makes the one `Parts` of a node. What changes over
time (the metadata above all) stays behind its Protocol, so that a handler always sees the newest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from kwire.clock import Clock, Random
    from kwire.config.broker_config import BrokerConfig
    from kwire.config.dynamic import DynamicConfig
    from kwire.coordinator.group.coordinator import GroupCoordinator
    from kwire.coordinator.shard_interface import Loop
    from kwire.coordinator.share.service import ShareCoordinator
    from kwire.coordinator.transaction.service import TransactionCoordinator
    from kwire.coordinator.transaction.verifier import TransactionVerifier
    from kwire.kraft.images.metadata_image import MetadataImage
    from kwire.log.directories.directory import LogDirectory
    from kwire.log.directories.moving import LogMoves
    from kwire.log.directories.shortages import Shortages
    from kwire.log.partition.deferred_checks import CheckLaterError
    from kwire.log.partition.partition_log import PartitionLog
    from kwire.membership.requester import Requester
    from kwire.pending import Answer, Pending
    from kwire.protocol import messages as m
    from kwire.protocol.api_keys import Listener
    from kwire.protocol.errors import ErrorCode
    from kwire.protocol.records.header import BatchHeader, Buffer
    from kwire.protocol.records.validation import CheckedBatch
    from kwire.protocol.structs import Message, Request
    from kwire.replica.delayed_read import ReadContext
    from kwire.replica.partition import Partition
    from kwire.replica.traffic import TopicTraffic
    from kwire.schemas.validation.rules import TopicRules
    from kwire.security.authorizer import Authorizer
    from kwire.server.deadlines import DeadlineHeap
    from kwire.server.described_topics import DescribedTopics
    from kwire.server.fetch_sessions import FetchSessionCache
    from kwire.share.manager import SharePartitionManager
    from kwire.share.persister import Persister
    from kwire.slices import Slices
    from kwire.telemetry.instances import ClientInstances

ResponseT = TypeVar("ResponseT", bound="Message")


class Metadata(Protocol):
    """What the cluster has committed, as this node has published it."""

    @property
    def image(self) -> MetadataImage: ...

    @property
    def cluster_id(self) -> str: ...

    def finalized_features(self) -> dict[str, int]:
        """Feature levels of the cluster, kraft.version among them."""
        ...

    def listener_type(self, listener_name: str) -> Listener: ...

    def advertised_apis(self, listener_name: str) -> list[tuple[int, int, int]]:
        """(API key, lowest, highest version) of what ApiVersions lists, ascending."""
        ...


class Quorum(Protocol):
    """The metadata quorum as this node sees it."""

    @property
    def leader_id(self) -> int | None: ...

    @property
    def is_active(self) -> bool:
        """Whether this node's controller decides."""
        ...

    @property
    def waits_for(self) -> str:
        """What keeps the metadata log from being written, empty for nothing."""
        ...


class Forwarder(Protocol):
    """The way to the active controller."""

    def forward(
        self,
        request: Request[ResponseT],
        requester: Requester | None,
        *,
        api_key: int | None = None,
        version: int | None = None,
    ) -> Pending[ResponseT]:
        """Let the active controller execute a request in the client's name (None: this broker's).
        Fails with KafkaError REQUEST_TIMED_OUT when no controller answers in time."""
        ...


class AskController(Protocol):
    """Lets this node's own controller execute a request."""

    def __call__(
        self, request: Request[ResponseT], requester: Requester | None, version: int | None, /
    ) -> Pending[ResponseT]: ...


class Replicas(Protocol):
    """The partitions that this broker holds."""

    def __iter__(self) -> Iterator[Partition]: ...

    def partition(self, topic: str, index: int) -> Partition | None: ...

    def partition_by_id(self, topic_id: bytes, index: int) -> Partition | None: ...

    @property
    def traffic(self) -> TopicTraffic: ...


class Logs(Protocol):
    """The log directories of this node, and the logs in them."""

    @property
    def directories(self) -> Sequence[LogDirectory]: ...

    @property
    def cordoned(self) -> Sequence[LogDirectory]:
        """Directories that get no new replicas."""
        ...

    @property
    def moves(self) -> LogMoves:
        """Logs on their way from one directory to another."""
        ...

    @property
    def shortages(self) -> Shortages: ...

    def logs(self) -> list[PartitionLog]: ...

    def get(self, topic: str, partition: int, /) -> PartitionLog | None: ...

    def directory_of(self, topic: str, partition: int, /) -> LogDirectory | None: ...

    def logs_in(self, directory: LogDirectory, /) -> list[PartitionLog]: ...

    def checkpoint_log_starts(self, keys: Iterable[tuple[str, int]], /) -> Pending[None]:
        """Done when the starts of these logs are durable."""
        ...


class Coordinators(Protocol):
    """The coordinators of this broker; each is made when it is first asked for."""

    @property
    def groups(self) -> GroupCoordinator: ...

    @property
    def transactions(self) -> TransactionCoordinator: ...

    @property
    def share(self) -> ShareCoordinator:
        """The state of share partitions."""
        ...

    @property
    def persister(self) -> Persister:
        """Keeps the state of share partitions, wherever it is coordinated."""
        ...

    @property
    def verifier(self) -> TransactionVerifier: ...


class Shares(Protocol):
    """The share partitions that this broker leads; made when they are first asked for."""

    @property
    def partitions(self) -> SharePartitionManager: ...


class TopicCreation(Protocol):
    """Creates topics because somebody named them."""

    def create(self, names: Iterable[str], requester: Requester | None, /) -> dict[str, ErrorCode]:
        """Start to create topics; what a client is told of each meanwhile."""
        ...

    def asked(
        self, names: Iterable[str], requester: Requester | None, /
    ) -> Pending[m.CreateTopicsResponse]:
        """Create topics with the configs that a broker gives those of its own making."""
        ...


class ProducerIds(Protocol):
    """Producer ids of this broker's block."""

    def take(self) -> Pending[int]: ...


class LostBrokers(Protocol):
    """Brokers that have just died."""

    def named(self, broker_id: int, now_ms: int, /) -> bool:
        """Whether Metadata still names this fenced broker."""
        ...


class Cordoning(Protocol):
    """Log directories that get no new replicas."""

    def shows(self, path: str, /) -> bool:
        """Whether DescribeLogDirs tells of this directory that it is cordoned."""
        ...


class Health(Protocol):
    """Whether this node is ready for clients."""

    def reasons(self) -> list[tuple[str, str]]:
        """(what, why) of all that keeps it from being ready."""
        ...


class Telemetry(Protocol):
    """The metrics that clients send of themselves."""

    @property
    def instances(self) -> ClientInstances: ...


class SchemaChecks(Protocol):
    """What topics ask of the schemas of records."""

    @property
    def topics(self) -> Mapping[str, TopicRules]:
        """The topics that ask for any."""
        ...

    def check(self, topic: str, records: Buffer, header: BatchHeader, /) -> Answer[None]:
        """None when every record of a batch has the schema that one of these topics asks for.

        Raises, or fails with, KafkaError: InvalidRecordsError with the records at fault,
        REQUEST_TIMED_OUT where schemas cannot be read.
        """
        ...


CheckLater: TypeAlias = "Callable[[CheckLaterError], Pending[CheckedBatch]]"
"""Checks a batch beside the loop."""


class Parts:
    """See the module. `broker_id` is this node's, `listener_name` that of brokers among themselves,
    `config` what the node was started with, `dynamic_config` with what has been changed since."""

    __slots__ = (
        "ask_controller",
        "authorizer",
        "auto_topics",
        "broker_id",
        "check_later",
        "clock",
        "config",
        "coordinators",
        "cordoning",
        "deadlines",
        "described_topics",
        "dynamic_config",
        "fetch_bytes_max",
        "fetch_sessions",
        "forwarder",
        "health",
        "listener_name",
        "logs",
        "loop",
        "lost_brokers",
        "metadata",
        "producer_ids",
        "quorum",
        "random",
        "read_context",
        "replicas",
        "schema_checks",
        "shares",
        "slices",
        "telemetry",
    )

    def __init__(
        self,
        *,
        broker_id: int,
        listener_name: str,
        config: BrokerConfig,
        dynamic_config: DynamicConfig,
        loop: Loop,
        clock: Clock,
        random: Random,
        deadlines: DeadlineHeap,
        described_topics: DescribedTopics,
        slices: Slices,
        metadata: Metadata,
        quorum: Quorum,
        forwarder: Forwarder,
        ask_controller: AskController,
        authorizer: Authorizer | None,
        replicas: Replicas,
        coordinators: Coordinators,
        shares: Shares,
        auto_topics: TopicCreation,
        producer_ids: ProducerIds,
        lost_brokers: LostBrokers,
        cordoning: Cordoning,
        logs: Logs,
        health: Health,
        telemetry: Telemetry,
        schema_checks: SchemaChecks,
        check_later: CheckLater,
        fetch_sessions: FetchSessionCache,
        fetch_bytes_max: int,
        read_context: ReadContext,
    ) -> None:
        self.broker_id = broker_id
        self.listener_name = listener_name
        self.config = config
        self.dynamic_config = dynamic_config
        self.loop = loop
        self.clock = clock
        self.random = random
        self.deadlines = deadlines
        self.described_topics = described_topics
        self.slices = slices
        self.metadata = metadata
        self.quorum = quorum
        self.forwarder = forwarder
        self.ask_controller = ask_controller
        self.authorizer = authorizer
        self.replicas = replicas
        self.coordinators = coordinators
        self.shares = shares
        self.auto_topics = auto_topics
        self.producer_ids = producer_ids
        self.lost_brokers = lost_brokers
        self.cordoning = cordoning
        self.logs = logs
        self.health = health
        self.telemetry = telemetry
        self.schema_checks = schema_checks
        self.check_later = check_later
        self.fetch_sessions = fetch_sessions
        self.fetch_bytes_max = fetch_bytes_max
        self.read_context = read_context
