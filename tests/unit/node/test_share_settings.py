"""The settings of share groups: made once, and anew when what they are made of has changed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kwire.config.broker_config import BrokerConfig
from kwire.config.dynamic import RESOURCE_GROUP, DynamicConfig
from kwire.node.group_configs import GroupConfigs
from kwire.node.shares import Shares

LOCK = "share.record.lock.duration.ms"
DEAD_LETTERS = "errors.deadletterqueue.topic.name"


class World:
    """The configs of a broker and its groups."""

    def __init__(self) -> None:
        config = BrokerConfig.load(properties={}, environment={}, overrides={}, developer=True)
        self.dynamic = DynamicConfig(config)
        self.configs = GroupConfigs(self.dynamic)
        self.finalized = {"share.version": 2}
        features = SimpleNamespace(finalized=self.finalized)
        nothing: Any = None
        metadata: Any = SimpleNamespace(image=SimpleNamespace(features=features))
        replicas: Any = SimpleNamespace(add_listener=lambda listener: None)
        self.shares = Shares(
            nothing,
            nothing,
            config,
            self.dynamic,
            self.configs,
            nothing,
            replicas,
            lambda: nothing,
            metadata,
            nothing,
            nothing,
            nothing,
        )
        self.settings = self.shares.partitions.settings

    def alter(self, group_id: str, **texts: str) -> None:
        overrides = {name.replace("_", "."): text for name, text in texts.items()}
        self.dynamic.update({(RESOURCE_GROUP, group_id): overrides})
        self.configs.changed()


def test_groups_without_configs_share_their_settings() -> None:
    world = World()
    assert world.settings("a") is world.settings("b")
    world.alter("b", share_record_lock_duration_ms="20000")
    assert world.settings("a").lock_duration_ms == 30_000
    assert world.settings("b").lock_duration_ms == 20_000
    assert world.settings("b") is world.settings("b")


def test_changed_configs_and_features_make_settings_anew() -> None:
    world = World()
    assert not world.settings("a").has_dead_letters
    world.alter("a", errors_deadletterqueue_topic_name="dead")
    assert world.settings("a").has_dead_letters
    world.finalized["share.version"] = 1
    assert not world.settings("a").has_dead_letters
    world.finalized["share.version"] = 2
    world.alter("a")
    assert not world.settings("a").has_dead_letters
