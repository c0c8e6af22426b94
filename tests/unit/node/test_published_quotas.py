"""Quotas of the published metadata are attached to a node's requests, and taken off again."""

from __future__ import annotations

import logging

import pytest

from kwire.config.broker_config import BrokerConfig
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.kraft.images.settings import QuotaEntity, quota_record
from kwire.node.client_quotas import PublishedQuotas
from kwire.server.request_steps import RequestSteps

USER: QuotaEntity = (("user", "u"),)


class World:
    """A published image and who follows it."""

    def __init__(self, **settings: str) -> None:
        config = BrokerConfig.load(
            properties={}, environment={}, overrides=settings, developer=True
        )
        self.steps = RequestSteps()
        self.published = PublishedQuotas(config, self.steps)
        self.image = MetadataImage()

    def put(self, entity: QuotaEntity, key: str, value: float | None) -> None:
        delta = MetadataDelta()
        self.image.replay(quota_record(entity, key, value), delta=delta)
        self.published.published(delta, self.image)

    def bound(self) -> float | None:
        quotas = self.steps.quotas
        rates = None if quotas is None else quotas.client("User:u", "c", 0)
        return None if rates is None or rates.producer is None else rates.producer.bound


def test_nothing_is_attached_before_there_is_a_quota_and_behind_the_last() -> None:
    world = World()
    world.published.published(MetadataDelta(), world.image)
    assert world.steps.quotas is None
    world.put(USER, "producer_byte_rate", 5.0)
    assert world.bound() == 5
    assert world.steps.inputs.has_quotas
    world.put((("user", None),), "producer_byte_rate", 7.0)
    world.put(USER, "producer_byte_rate", None)
    assert world.bound() == 7
    world.put((("user", None),), "producer_byte_rate", None)
    assert world.steps.quotas is None
    assert not world.steps.inputs.has_quotas


def test_windows_are_those_of_the_settings() -> None:
    world = World(**{"quota.window.num": "5", "quota.window.size.seconds": "3"})
    world.put(USER, "request_percentage", 10.0)
    quotas = world.steps.quotas
    assert quotas is not None
    assert (quotas.sample_count, quotas.window_ms) == (5, 3000)


def test_a_record_that_cannot_be_used_is_named_and_changes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    world.put(USER, "producer_byte_rate", 5.0)
    with caplog.at_level(logging.WARNING):
        world.put(USER, "producer_byte_rate", -1.0)
        world.put((("zone", "z"),), "producer_byte_rate", 1.0)
    assert world.bound() == 5
    assert [record.getMessage() for record in caplog.records] == [
        "a client quota is passed over: user 'u': producer_byte_rate is -1.0, not above 0",
        "a client quota is passed over: zone 'z': no such entity",
    ]
