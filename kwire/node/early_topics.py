"""Internal topics that are there before the first client is (`kwire.internal.topics.at.start`).

Kafka creates them for the first request that needs them, which is answered
COORDINATOR_NOT_AVAILABLE. librdkafka asks again after a second.
"""

from __future__ import annotations

import logging

from kwire.config.broker_config import BrokerConfig
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.node.publishing import Publishing
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.server.parts import TopicCreation

logger = logging.getLogger(__name__)

SETTING = "kwire.internal.topics.at.start"


class EarlyTopics:
    """Those that the config names, made by `creation` and known from what is published."""

    def __init__(
        self, config: BrokerConfig, creation: TopicCreation, publishing: Publishing
    ) -> None:
        self._missing: list[str] = config[SETTING]
        self._creation = creation
        self._there: Pending[None] = Pending()
        self._publishing = publishing
        if self._missing:
            publishing.add_last(self._published)

    def made(self) -> Pending[None]:
        """Done once this broker knows them all, or they cannot be created: that is logged, and the
        request that needs them tries again."""
        if not self._missing:
            self._there.complete(None)
        else:
            self._creation.asked(self._missing, None).add_done_callback(self._answered)
        return self._there

    def _answered(self, done: Pending[m.CreateTopicsResponse]) -> None:
        error = done.error()
        refused = [] if error else [one for one in done.result().topics if one.error_code]
        reasons = [one.error_message or f"error {one.error_code}" for one in refused]
        if error is not None or reasons:
            logger.info(
                "internal topics wait for the first request: %s", error or ", ".join(reasons)
            )
            self._there.complete(None)

    def _published(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if self._missing:
            self._missing = [name for name in self._missing if name not in image.topics.by_name]
            if not self._missing:
                followed = self._publishing.followed()
                followed.add_done_callback(lambda _: self._there.complete(None))
