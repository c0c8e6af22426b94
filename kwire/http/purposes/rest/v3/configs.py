"""Configs of topics, of brokers, and what is set for all brokers of the cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import Meta, Struct

from kwire.client.cluster import ANY, Cluster
from kwire.client.configs import Configs, Resource
from kwire.client.errors import check
from kwire.http.purposes.rest.problems import Problem
from kwire.http.purposes.rest.route import (
    Answered,
    AnyRoute,
    Call,
    Handler,
    Nothing,
    Reply,
    Route,
)
from kwire.http.purposes.rest.v3.failures import as_v3, missing
from kwire.http.purposes.rest.v3.links import B, Links, P, links_of
from kwire.http.purposes.rest.v3.shapes import (
    CONFIGS_MAX,
    BrokerId,
    ClusterId,
    ConfigName,
    ConfigValue,
    ListMetadata,
    Metadata,
    OfBroker,
    OfCluster,
    OfClusterTopic,
    Topic,
)
from kwire.protocol import messages as m

TAG = "v3: configs"
SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
}
DEFAULT = 5
_Described: TypeAlias = "m.DescribeConfigsResponse.DescribeConfigsResourceResult"


class OfTopicConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A config of a topic."""

    cluster_id: ClusterId
    topic_name: Topic
    name: ConfigName


class OfBrokerConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A config of a broker."""

    cluster_id: ClusterId
    broker_id: BrokerId
    name: ConfigName


class OfClusterConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A config of all brokers."""

    cluster_id: ClusterId
    name: ConfigName


class ConfigSynonym(Struct, frozen=True):
    """One of the places that a value may come from; the first that is there counts."""

    name: str
    value: str | None
    source: str


class ConfigData(Struct, frozen=True, omit_defaults=True):
    """A config, of a topic, a broker or all brokers."""

    kind: str
    metadata: Metadata
    cluster_id: str
    name: str
    value: str | None
    is_default: bool
    is_read_only: bool
    is_sensitive: bool
    source: str
    synonyms: list[ConfigSynonym]
    topic_name: str = ""
    broker_id: int = -1
    config_type: str = ""


class ConfigDataList(Struct, frozen=True):
    """Configs."""

    kind: str
    metadata: ListMetadata
    data: list[ConfigData]


class UpdateConfigRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The new value."""

    value: ConfigValue


class ConfigChange(Struct, frozen=True, forbid_unknown_fields=True):
    """A change of one config; SET unless something else is said."""

    name: ConfigName
    value: ConfigValue | None = None
    operation: Literal["SET", "DELETE"] | None = None


class AlterConfigBatchRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Changes, all of them or none."""

    data: Annotated[list[ConfigChange], Meta(max_length=CONFIGS_MAX)]
    validate_only: bool | None = None


class _Owner(NamedTuple):
    """Whose configs: by Kafka's names and by those of the API."""

    resource: Resource
    resource_name: str
    kind: str
    path: tuple[str | int, ...]
    name: str
    topic_name: str = ""
    broker_id: int = -1
    config_type: str = ""


def of_topic(name: str) -> _Owner:
    """Those of a topic."""
    path = ("topics", name, "configs")
    return _Owner(
        Resource.TOPIC, name, "KafkaTopicConfig", path, f"topic={name}/config=", topic_name=name
    )


def of_broker(number: int) -> _Owner:
    """Those of a broker."""
    path = ("brokers", number, "configs")
    name = f"broker={number}/config="
    return _Owner(Resource.BROKER, str(number), "KafkaBrokerConfig", path, name, broker_id=number)


def of_cluster() -> _Owner:
    """What is set for all brokers."""
    path, kind = ("broker-configs",), "KafkaClusterConfig"
    return _Owner(Resource.BROKER, "", kind, path, "broker-config=", config_type="BROKER")


def _shown(links: Links, owner: _Owner, one: _Described) -> ConfigData:
    return ConfigData(
        owner.kind,
        links.metadata(*owner.path, one.name, name=owner.name + one.name),
        links.cluster_id,
        one.name,
        one.value,
        one.config_source == DEFAULT,
        one.read_only,
        one.is_sensitive,
        SOURCES.get(one.config_source, "UNKNOWN"),
        [
            ConfigSynonym(synonym.name, synonym.value, SOURCES.get(synonym.source, "UNKNOWN"))
            for synonym in one.synonyms
        ],
        owner.topic_name,
        owner.broker_id,
        owner.config_type,
    )


async def _found(
    call: Call[P, B], links: Links, owner: _Owner, name: str | None = None
) -> list[ConfigData]:
    kind = m.DescribeConfigsRequest
    request = kind(
        resources=[
            kind.DescribeConfigsResource(
                resource_type=int(owner.resource),
                resource_name=owner.resource_name,
                configuration_keys=None if name is None else [name],
            )
        ],
        include_synonyms=True,
        include_documentation=False,
    )
    cluster = call.client.cluster
    node_id = await _asked(cluster, owner)
    result = (await cluster.call(request, node_id)).results[0]
    check(result.error_code, owner.name.rpartition("/")[0] or "cluster", result.error_message)
    return [_shown(links, owner, one) for one in sorted(result.configs, key=_name_of)]


async def _asked(cluster: Cluster, owner: _Owner) -> int:
    """The node that knows these configs; Problem 404 where there is no such broker."""
    node_id = owner.broker_id
    if node_id < 0:
        return ANY
    if not cluster.knows(node_id):
        await cluster.metadata([])
    if not cluster.knows(node_id):
        raise missing(f"There is no broker {node_id}.")
    return node_id


def _name_of(one: _Described) -> str:
    return one.name


async def _list(call: Call[P, B], cluster_id: str, owner: _Owner) -> Reply:
    links = await links_of(call, cluster_id)
    data = await _found(call, links, owner)
    return Reply(200, ConfigDataList(owner.kind + "List", links.listed(*owner.path), data))


async def _get(call: Call[P, B], cluster_id: str, owner: _Owner, name: str) -> Reply:
    links = await links_of(call, cluster_id)
    for one in await _found(call, links, owner, name):
        if one.name == name:
            return Reply(200, one)
    raise missing(f"There is no config {name}.")


async def _change(
    call: Call[P, B],
    cluster_id: str,
    owner: _Owner,
    changes: dict[str, str | None],
    validate_only: bool = False,
) -> Reply:
    await links_of(call, cluster_id)
    await _asked(call.client.cluster, owner)
    if changes:
        await Configs(call.client.cluster).alter(
            owner.resource, owner.resource_name, changes, validate_only=validate_only
        )
    return Reply(204)


def _changes(asked: AlterConfigBatchRequest) -> dict[str, str | None]:
    changes: dict[str, str | None] = {}
    for at, one in enumerate(asked.data):
        field = f"data[{at}]"
        if one.name in changes:
            raise _wrong(at, f"{field}.name: {one.name} is there already")
        if one.operation == "DELETE":
            changes[one.name] = None
        elif one.value is None:
            raise _wrong(at, f"{field}.value: it is needed to SET")
        else:
            changes[one.name] = one.value
    return changes


def _wrong(at: int, message: str) -> Problem:
    return Problem(400, "invalid_body", message, field=message.partition(":")[0], index=at)


CHANGED = {204: Answered(None, "It is changed.")}
ALTERED = {204: Answered(None, "All is changed, or could be (`validate_only`).")}
ONE = {200: Answered(ConfigData, "The config.")}
MANY = {200: Answered(ConfigDataList, "The configs.")}


Owned = TypeVar("Owned", OfClusterTopic, OfBroker, OfCluster)
Named = TypeVar("Named", OfTopicConfig, OfBrokerConfig, OfClusterConfig)


@dataclass(frozen=True)
class _Calls(Generic[Owned, Named]):
    """The five calls of one owner's configs. `whole` and `one` say whose they are."""

    path: str
    whose: str
    owner: type[Owned]
    named: type[Named]
    whole: Callable[[Owned], _Owner]
    one: Callable[[Named], _Owner]

    def list_all(self) -> Handler[Owned, Nothing]:
        @as_v3
        async def handler(call: Call[Owned, Nothing]) -> Reply:
            asked = call.parameters
            return await _list(call, asked.cluster_id, self.whole(asked))

        return handler

    def alter(self) -> Handler[Owned, AlterConfigBatchRequest]:
        @as_v3
        async def handler(call: Call[Owned, AlterConfigBatchRequest]) -> Reply:
            asked, is_tried = call.parameters, bool(call.body.validate_only)
            changes = _changes(call.body)
            return await _change(call, asked.cluster_id, self.whole(asked), changes, is_tried)

        return handler

    def get(self) -> Handler[Named, Nothing]:
        @as_v3
        async def handler(call: Call[Named, Nothing]) -> Reply:
            asked = call.parameters
            return await _get(call, asked.cluster_id, self.one(asked), asked.name)

        return handler

    def set(self) -> Handler[Named, UpdateConfigRequest]:
        @as_v3
        async def handler(call: Call[Named, UpdateConfigRequest]) -> Reply:
            asked = call.parameters
            changes: dict[str, str | None] = {asked.name: call.body.value}
            return await _change(call, asked.cluster_id, self.one(asked), changes)

        return handler

    def reset(self) -> Handler[Named, Nothing]:
        @as_v3
        async def handler(call: Call[Named, Nothing]) -> Reply:
            asked = call.parameters
            return await _change(call, asked.cluster_id, self.one(asked), {asked.name: None})

        return handler

    def routes(self) -> list[AnyRoute]:
        """All five."""
        one = self.path + "/{name}"
        return [
            Route(
                "GET",
                self.path,
                self.list_all(),
                summary=f"List configs of {self.whose}",
                tag=TAG,
                parameters=self.owner,
                body=Nothing,
                answers=MANY,
                refusals=(404,),
            ),
            Route(
                "POST",
                self.path + ":alter",
                self.alter(),
                summary=f"Change configs of {self.whose}",
                tag=TAG,
                parameters=self.owner,
                body=AlterConfigBatchRequest,
                answers=ALTERED,
                refusals=(404,),
            ),
            Route(
                "GET",
                one,
                self.get(),
                summary=f"Get a config of {self.whose}",
                tag=TAG,
                parameters=self.named,
                body=Nothing,
                answers=ONE,
                refusals=(404,),
            ),
            Route(
                "PUT",
                one,
                self.set(),
                summary=f"Set a config of {self.whose}",
                tag=TAG,
                parameters=self.named,
                body=UpdateConfigRequest,
                answers=CHANGED,
                refusals=(404,),
            ),
            Route(
                "DELETE",
                one,
                self.reset(),
                summary=f"Give a config of {self.whose} its default",
                tag=TAG,
                parameters=self.named,
                body=Nothing,
                answers=CHANGED,
                refusals=(404,),
            ),
        ]


def routes(prefix: str) -> list[AnyRoute]:
    """See the module."""
    base = f"{prefix}/clusters/{{cluster_id}}"
    of_topics = _Calls(
        base + "/topics/{topic_name}/configs",
        "a topic",
        OfClusterTopic,
        OfTopicConfig,
        lambda asked: of_topic(asked.topic_name),
        lambda asked: of_topic(asked.topic_name),
    )
    of_brokers = _Calls(
        base + "/brokers/{broker_id}/configs",
        "a broker",
        OfBroker,
        OfBrokerConfig,
        lambda asked: of_broker(asked.broker_id),
        lambda asked: of_broker(asked.broker_id),
    )
    of_all = _Calls(
        base + "/broker-configs",
        "all brokers",
        OfCluster,
        OfClusterConfig,
        lambda asked: of_cluster(),
        lambda asked: of_cluster(),
    )
    return [*of_topics.routes(), *of_brokers.routes(), *of_all.routes()]
