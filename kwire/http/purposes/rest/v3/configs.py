"""Configs of topics, of brokers, and what is set for all brokers of the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import Meta, Struct

from kwire.client.cluster import ANY
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
    node_id = ANY if owner.broker_id < 0 else owner.broker_id
    if owner.broker_id >= 0 and not cluster.knows(node_id):
        await cluster.metadata([])
        if not cluster.knows(node_id):
            raise missing(f"There is no broker {node_id}.")
    result = (await cluster.call(request, node_id)).results[0]
    check(result.error_code, owner.name.rpartition("/")[0] or "cluster", result.error_message)
    return [_shown(links, owner, one) for one in sorted(result.configs, key=_name_of)]


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


# -- of topics


@as_v3
async def topic_list(call: Call[OfClusterTopic, Nothing]) -> Reply:
    """All of a topic."""
    asked = call.parameters
    return await _list(call, asked.cluster_id, of_topic(asked.topic_name))


@as_v3
async def topic_get(call: Call[OfTopicConfig, Nothing]) -> Reply:
    """One of a topic."""
    asked = call.parameters
    return await _get(call, asked.cluster_id, of_topic(asked.topic_name), asked.name)


@as_v3
async def topic_set(call: Call[OfTopicConfig, UpdateConfigRequest]) -> Reply:
    """Set one of a topic."""
    asked = call.parameters
    changes: dict[str, str | None] = {asked.name: call.body.value}
    return await _change(call, asked.cluster_id, of_topic(asked.topic_name), changes)


@as_v3
async def topic_reset(call: Call[OfTopicConfig, Nothing]) -> Reply:
    """Give one of a topic its default."""
    asked = call.parameters
    return await _change(call, asked.cluster_id, of_topic(asked.topic_name), {asked.name: None})


@as_v3
async def topic_alter(call: Call[OfClusterTopic, AlterConfigBatchRequest]) -> Reply:
    """Change some of a topic."""
    asked = call.parameters
    is_tried = bool(call.body.validate_only)
    owner = of_topic(asked.topic_name)
    return await _change(call, asked.cluster_id, owner, _changes(call.body), is_tried)


# -- of a broker


@as_v3
async def broker_list(call: Call[OfBroker, Nothing]) -> Reply:
    """All of a broker."""
    asked = call.parameters
    return await _list(call, asked.cluster_id, of_broker(asked.broker_id))


@as_v3
async def broker_get(call: Call[OfBrokerConfig, Nothing]) -> Reply:
    """One of a broker."""
    asked = call.parameters
    return await _get(call, asked.cluster_id, of_broker(asked.broker_id), asked.name)


@as_v3
async def broker_set(call: Call[OfBrokerConfig, UpdateConfigRequest]) -> Reply:
    """Set one of a broker."""
    asked = call.parameters
    changes: dict[str, str | None] = {asked.name: call.body.value}
    return await _change(call, asked.cluster_id, of_broker(asked.broker_id), changes)


@as_v3
async def broker_reset(call: Call[OfBrokerConfig, Nothing]) -> Reply:
    """Give one of a broker its default."""
    asked = call.parameters
    return await _change(call, asked.cluster_id, of_broker(asked.broker_id), {asked.name: None})


@as_v3
async def broker_alter(call: Call[OfBroker, AlterConfigBatchRequest]) -> Reply:
    """Change some of a broker."""
    asked = call.parameters
    is_tried = bool(call.body.validate_only)
    owner = of_broker(asked.broker_id)
    return await _change(call, asked.cluster_id, owner, _changes(call.body), is_tried)


# -- of all brokers


@as_v3
async def cluster_list(call: Call[OfCluster, Nothing]) -> Reply:
    """What is set for all brokers."""
    return await _list(call, call.parameters.cluster_id, of_cluster())


@as_v3
async def cluster_get(call: Call[OfClusterConfig, Nothing]) -> Reply:
    """One of that."""
    asked = call.parameters
    return await _get(call, asked.cluster_id, of_cluster(), asked.name)


@as_v3
async def cluster_set(call: Call[OfClusterConfig, UpdateConfigRequest]) -> Reply:
    """Set one for all brokers."""
    asked = call.parameters
    changes: dict[str, str | None] = {asked.name: call.body.value}
    return await _change(call, asked.cluster_id, of_cluster(), changes)


@as_v3
async def cluster_reset(call: Call[OfClusterConfig, Nothing]) -> Reply:
    """Set one for all brokers no more."""
    asked = call.parameters
    return await _change(call, asked.cluster_id, of_cluster(), {asked.name: None})


@as_v3
async def cluster_alter(call: Call[OfCluster, AlterConfigBatchRequest]) -> Reply:
    """Change some for all brokers."""
    is_tried = bool(call.body.validate_only)
    return await _change(
        call, call.parameters.cluster_id, of_cluster(), _changes(call.body), is_tried
    )


CHANGED = {204: Answered(None, "It is changed.")}
ALTERED = {204: Answered(None, "All is changed, or could be (`validate_only`).")}
ONE = {200: Answered(ConfigData, "The config.")}
MANY = {200: Answered(ConfigDataList, "The configs.")}


Owned = TypeVar("Owned", bound=Struct)
Named = TypeVar("Named", bound=Struct)


@dataclass(frozen=True)
class _Calls(Generic[Owned, Named]):
    """The five calls of one owner's configs."""

    path: str
    whose: str
    owner: type[Owned]
    named: type[Named]
    lister: Handler[Owned, Nothing]
    getter: Handler[Named, Nothing]
    setter: Handler[Named, UpdateConfigRequest]
    resetter: Handler[Named, Nothing]
    alterer: Handler[Owned, AlterConfigBatchRequest]

    def routes(self) -> list[AnyRoute]:
        """All five."""
        one = self.path + "/{name}"
        return [
            Route(
                "GET",
                self.path,
                self.lister,
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
                self.alterer,
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
                self.getter,
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
                self.setter,
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
                self.resetter,
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
        topic_list,
        topic_get,
        topic_set,
        topic_reset,
        topic_alter,
    )
    of_brokers = _Calls(
        base + "/brokers/{broker_id}/configs",
        "a broker",
        OfBroker,
        OfBrokerConfig,
        broker_list,
        broker_get,
        broker_set,
        broker_reset,
        broker_alter,
    )
    of_all = _Calls(
        base + "/broker-configs",
        "all brokers",
        OfCluster,
        OfClusterConfig,
        cluster_list,
        cluster_get,
        cluster_set,
        cluster_reset,
        cluster_alter,
    )
    return [*of_topics.routes(), *of_brokers.routes(), *of_all.routes()]
