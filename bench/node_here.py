"""A node in this process, with one topic, for the price of single requests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from kwire.config import BrokerConfig
from kwire.node.node import Node
from kwire.pending import Pending
from kwire.protocol import messages as m


async def answer_of(pending: Pending[Any]) -> Any:
    """What it completes with."""
    future = asyncio.get_running_loop().create_future()
    pending.add_done_callback(lambda done: future.set_result(done.result()))
    return await future


async def node_with_topic(
    directory: str,
    topic: str,
    partitions: int,
    settings: Mapping[str, str] | None = None,
    options: Sequence[str] | None = None,
) -> Node:
    """Started in an empty directory; `options` are the command line's, name=value."""
    overrides = {
        "log.dirs": directory,
        "listeners": "PLAINTEXT://127.0.0.1:0",
        **(settings or {}),
        **dict(x.split("=", 1) for x in options or ()),
    }
    config = BrokerConfig.load(properties={}, environment={}, overrides=overrides, developer=True)
    node = Node(config, asyncio.get_running_loop())
    await node.start()
    wanted = m.CreateTopicsRequest.CreatableTopic(
        name=topic, num_partitions=partitions, replication_factor=1
    )
    request = m.CreateTopicsRequest(topics=[wanted], timeout_ms=10_000)
    await answer_of(node.controller_channel.forward(request, None))  # type: ignore[arg-type]
    return node
