"""The developer settings: what `kwire serve` applies when no `--config` is given.

One node that is broker and controller, able to hold the internal topics alone and quick to
answer the first consumer. DescribeConfigs shows them as static settings, `kwire configs` lists
them, and any other source of settings wins over them. With `--config`, none of them applies.
"""

from __future__ import annotations

DEVELOPER_SETTINGS: dict[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://localhost:9092",
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
