"""Client telemetry in a node: made when a client first asks, kept up to date by the metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from kwire.clock import Random
from kwire.config.dynamic import RESOURCE_CLIENT_METRICS, DynamicConfig
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.protocol import uuids

if TYPE_CHECKING:
    from kwire.http.questions import Question
    from kwire.http.side import HttpSide
    from kwire.telemetry.instances import ClientInstances
    from kwire.telemetry.kept_pushes import KeptPushes

SIZE_MAX = "telemetry.max.bytes"


class NodeTelemetry:
    """See the module. `http()` is the HTTP side, which reads what clients send."""

    def __init__(
        self, config: DynamicConfig, random: Random, http: Callable[[], HttpSide | None]
    ) -> None:
        self._config = config
        self._random = random
        self._http = http
        self.made_instances: ClientInstances | None = None
        """None before the first client has asked."""
        self.made_pushes: KeptPushes | None = None

    def is_read(self) -> bool:
        """Whether anybody reads what clients send, once the listeners are bound. The listener that
        is there where nothing is configured reads it not: without a receiver in its configuration
        Apache Kafka does not ask its clients either."""
        http = self._http()
        return http is not None and http.is_told_to_serve("metrics")

    @property
    def instances(self) -> ClientInstances:
        """The instances, with the subscriptions of now."""
        if self.made_instances is None:
            from kwire.telemetry.instances import ClientInstances
            from kwire.telemetry.kept_pushes import BYTES_MAX, KeptPushes

            self.made_pushes = KeptPushes(BYTES_MAX if self.is_read() else 0)
            self.made_instances = ClientInstances(
                self._size_max, lambda: uuids.random_uuid(self._random), self.made_pushes
            )
            self._subscribe()
        return self.made_instances

    def published(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Take over what is subscribed."""
        if self.made_instances is not None and any(
            resource_type == RESOURCE_CLIENT_METRICS for resource_type, _ in delta.configs
        ):
            self._subscribe()

    def questions(self, now_ms: Callable[[], int]) -> dict[str, Question]:
        """`pushes` of the HTTP process: what clients have sent since the one with the number
        `after`."""

        def pushes(arguments: Mapping[str, str]) -> Iterator[bytes]:
            if self.made_pushes is not None:
                yield from self.made_pushes.read(int(arguments.get("after", "0")), now_ms())

        return {"pushes": pushes}

    def _subscribe(self) -> None:
        if self.made_instances is not None:
            self.made_instances.subscribe(
                {
                    name: configs
                    for (resource_type, name), configs in self._config.configs.items()
                    if resource_type == RESOURCE_CLIENT_METRICS
                }
            )

    def _size_max(self) -> int:
        return int(self._config[SIZE_MAX])
