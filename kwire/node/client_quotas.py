"""The client quotas of a node, from the metadata that is published to the steps of its requests.

Nothing is attached, and no code of quotas loaded, while nobody has a quota.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kwire.config.node_settings import NodeSettings
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.server.request_steps import RequestSteps

if TYPE_CHECKING:
    from kwire.quota.client_quotas import ClientQuotas
    from kwire.quota.mutations import MutationQuota, MutationQuotas

logger = logging.getLogger(__name__)


class PublishedQuotas:
    """See the module. `quotas` is None until somebody has one."""

    def __init__(self, config: NodeSettings, steps: RequestSteps) -> None:
        self._config = config
        self._steps = steps
        self.quotas: ClientQuotas | None = None
        self._mutations: MutationQuotas | None = None

    def published(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Metadata has changed; quotas act at once."""
        if not delta.client_quotas:
            return
        if self.quotas is None:
            self.quotas = self._made()
            entities = list(image.client_quotas)
        else:
            entities = list(delta.client_quotas)
        for entity in entities:
            for complaint in self.quotas.changed(entity, image.client_quotas.get(entity, {})):
                logger.warning("a client quota is passed over: %s", complaint)
        attached = None if self.quotas.is_empty else self.quotas
        if attached is not self._steps.quotas:
            self._steps.set_throttles(attached)

    def mutation_quota(
        self, principal: str, client_id: str | None, api_key: int, api_version: int
    ) -> MutationQuota | None:
        """What a request to this node's controller pays for partitions from; None where it need
        not."""
        if self.quotas is None or not self.quotas.mutations:
            return None
        from kwire.quota.entities import user_of
        from kwire.quota.mutations import MutationQuotas

        if self._mutations is None:
            self._mutations = MutationQuotas(
                self.quotas.mutations,
                self._config["controller.quota.window.num"],
                self._config["controller.quota.window.size.seconds"] * 1000,
            )
        return self._mutations.of(user_of(principal), client_id, api_key, api_version)

    def _made(self) -> ClientQuotas:
        from kwire.quota.client_quotas import ClientQuotas

        return ClientQuotas(
            self._config["quota.window.num"], self._config["quota.window.size.seconds"] * 1000
        )
