"""`kwire topic`: create, list, describe, alter, delete."""

from __future__ import annotations

from typing import Annotated

import typer

from kwire.cli import operations, output
from kwire.cli.client import Client, Topic
from kwire.cli.options import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    CommandConfig,
    Settings,
    TopicOption,
    Unset,
    all_named,
    changes,
    named,
    pairs,
)
from kwire.cli.output import Json
from kwire.cli.verbs import Verbs
from kwire.client.errors import RequestFailed
from kwire.protocol.errors import ErrorCode

topic_app = typer.Typer(
    cls=Verbs,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Create, list, describe, alter, delete topics.",
)
TopicName = Annotated[str | None, typer.Argument(metavar="TOPIC", show_default=False)]
DEFAULT_SOURCE = 5
INT16_MAX = (1 << 15) - 1
INT32_MAX = (1 << 31) - 1
_SOURCES = {
    1: "topic",
    2: "broker, dynamic",
    3: "cluster, dynamic",
    4: "broker, static",
    DEFAULT_SOURCE: "default",
}


@topic_app.command("create")
def topic_create(
    name: TopicName = None,
    topic: TopicOption = None,
    partitions: Annotated[
        int, typer.Option("--partitions", "-p", max=INT32_MAX, show_default=False)
    ] = -1,
    replication: Annotated[
        int,
        typer.Option(
            "--replication", "--replication-factor", "-r", max=INT16_MAX, show_default=False
        ),
    ] = -1,
    option: Settings = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """Create a topic; partitions and replicas are the broker's defaults unless given."""
    wanted = named(name, topic, "topic")
    with Client(bootstrap, command_config=command_config) as client:
        try:
            operations.create_topic(client, wanted, partitions, replication, pairs(option))
        except RequestFailed as error:
            if not if_not_exists or error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
            output.say(f"{wanted} was there")
            return
    output.say(f"created {wanted}")


@topic_app.command("list")
def topic_list(
    internal: Annotated[bool, typer.Option("--internal", help="Kafka's own topics too.")] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """The topics with their partitions and replicas."""
    with Client(bootstrap, command_config=command_config) as client:
        topics = sorted(client.metadata(None).topics, key=lambda topic: str(topic.name))
    rows = [
        (
            topic.name,
            len(topic.partitions),
            max((len(p.replica_nodes) for p in topic.partitions), default=0),
        )
        for topic in topics
        if internal or not topic.is_internal
    ]
    output.table(("topic", "partitions", "replicas"), rows, as_json=as_json)


@topic_app.command("describe")
def topic_describe(
    name: TopicName = None,
    topic: TopicOption = None,
    all_configs: Annotated[bool, typer.Option("--all", help="Defaults too.")] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """A topic's partitions, offsets and configs."""
    from kwire.protocol import uuids

    wanted = named(name, topic, "topic")
    with Client(bootstrap, command_config=command_config) as client:
        found = client.topic(wanted)
        rows = _partition_rows(client, found)
        configs = [
            (entry.name, entry.value, _SOURCES.get(entry.config_source, ""))
            for entry in operations.topic_configs(client, wanted)
            if all_configs or entry.config_source != DEFAULT_SOURCE
        ]
    columns = ("partition", "leader", "epoch", "replicas", "isr", "first", "next")
    config_columns = ("config", "value", "from")
    if as_json:
        output.say_json(
            {
                "topic": wanted,
                "topic_id": uuids.to_text(found.topic_id),
                "partitions": [output.as_object(columns, row) for row in rows],
                "configs": [output.as_object(config_columns, row) for row in configs],
            }
        )
        return
    output.say(f"{wanted} ({uuids.to_text(found.topic_id)})")
    output.table(columns, rows)
    if configs:
        output.say("")
        output.table(config_columns, configs)


def _partition_rows(client: Client, topic: Topic) -> list[tuple[Json, ...]]:
    first = operations.list_offsets(client, topic, operations.EARLIEST)
    last = operations.list_offsets(client, topic, operations.LATEST)
    return [
        (
            p.partition_index,
            p.leader_id,
            p.leader_epoch,
            list(p.replica_nodes),
            list(p.isr_nodes),
            first[p.partition_index],
            last[p.partition_index],
        )
        for p in sorted(topic.partitions, key=lambda entry: entry.partition_index)
    ]


@topic_app.command("alter")
def topic_alter(
    name: TopicName = None,
    topic: TopicOption = None,
    option: Settings = None,
    unset: Unset = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """Set or unset configs of a topic."""
    wanted = named(name, topic, "topic")
    altered = changes(option, unset)
    with Client(bootstrap, command_config=command_config) as client:
        operations.alter_topic(client, wanted, altered)
    output.say(f"altered {wanted}")


@topic_app.command("delete")
def topic_delete(
    names: Annotated[list[str] | None, typer.Argument(metavar="TOPIC...")] = None,
    topic: TopicOption = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """Delete topics."""
    wanted = all_named(names, topic, "topic")
    with Client(bootstrap, command_config=command_config) as client:
        for name in wanted:
            operations.delete_topic(client, name)
            output.say(f"deleted {name}")
