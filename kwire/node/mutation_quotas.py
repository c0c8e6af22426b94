"""What clients pay the active controller for partitions, by the quotas that are published.

No code of quotas is loaded while nobody has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.config.node_settings import NodeSettings
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage

if TYPE_CHECKING:
    from kwire.quota.entities import QuotaTable
    from kwire.quota.mutations import MutationQuota, MutationQuotas

RATE = "controller_mutation_rate"


class PublishedMutationQuotas:
    """See the module."""

    def __init__(self, config: NodeSettings) -> None:
        self._config = config
        self._table: QuotaTable | None = None
        self._quotas: MutationQuotas | None = None

    def published(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Metadata has changed; quotas act at once."""
        changed = [one for one, names in delta.client_quotas.items() if RATE in names]
        if not changed:
            return
        from kwire.quota.client_quotas import is_usable
        from kwire.quota.entities import QuotaTable, table_key
        from kwire.quota.mutations import MutationQuotas

        if self._table is None:
            self._table = QuotaTable()
            self._quotas = MutationQuotas(
                self._table,
                self._config["controller.quota.window.num"],
                self._config["controller.quota.window.size.seconds"] * 1000,
            )
        for entity in changed:
            key = table_key(entity)
            rate = image.client_quotas.get(entity, {}).get(RATE)
            if key is not None and (rate is None or is_usable(rate)):
                self._table.set(key, rate)

    def of(
        self, principal: str, client_id: str | None, api_key: int, api_version: int
    ) -> MutationQuota | None:
        """What a request pays from; None where it need not."""
        if self._quotas is None or not self._table:
            return None
        from kwire.quota.entities import user_of

        return self._quotas.of(user_of(principal), client_id, api_key, api_version)
