"""How much a node reads at a time of its clients, and how reads of partitions wait."""

from __future__ import annotations

from collections.abc import Callable

from kwire.config.broker_config import BrokerConfig
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.network.buffers import RESERVED_BYTES_MAX
from kwire.node.replication import Replication
from kwire.replica.delayed_read import ReadContext
from kwire.replica.selector import selector
from kwire.server.deadlines import DeadlineHeap


def read_context(
    config: BrokerConfig,
    deadlines: DeadlineHeap,
    replication: Replication,
    image: Callable[[], MetadataImage],
) -> ReadContext:
    """What reads need to know of the node."""
    return ReadContext(
        deadlines,
        lambda topic, index: image().topics.partition(topic, index) is not None,
        selector(config["replica.selector.class"], lambda: image().brokers),
        replication,
    )


def receive_bytes_max(config: BrokerConfig) -> int:
    """queued.max.request.bytes, or kwire's own bound where it is not set."""
    configured: int = config["queued.max.request.bytes"]
    return configured if configured > 0 else RESERVED_BYTES_MAX
