"""Registers this controller with the active one: its listeners and features (KIP-919).

Once the metadata allows it (metadata.version 3.7-IV0), and again whenever the metadata holds
another incarnation of this node than this one, until it was accepted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from kwire.config.listeners import Listener
from kwire.kraft.features import SUPPORTED_FEATURES
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.membership.asking import AskController
from kwire.membership.broker_registration import PROTOCOL_NUMBERS
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)

RETRY_MS = 100
RETRY_MS_MAX = 10_000


class ControllerRegistration:
    """See the module: from `begin` on. `image()` is the published metadata; `published(image)` is
    called at every change of it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        controller_id: int,
        image: Callable[[], MetadataImage],
        ask: AskController,
    ) -> None:
        self._loop = loop
        self._controller_id = controller_id
        self._incarnation_id = b""
        self._listeners: Sequence[Listener] = ()
        self._image = image
        self._ask = ask
        self._pending: Pending[m.ControllerRegistrationResponse] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._failures = 0
        self._is_accepted = False  # but not seen in the metadata yet
        self._begun = False
        self._closed = False

    def begin(self, incarnation_id: bytes, listeners: Sequence[Listener]) -> None:
        """Register this incarnation, reached by these listeners, as soon as metadata allow it."""
        self._begun = True
        self._incarnation_id = incarnation_id
        self._listeners = listeners

    def published(self, image: MetadataImage) -> None:
        if self._is_due(image) and self._pending is None and self._timer is None:
            self._send()

    def _is_due(self, image: MetadataImage) -> bool:
        if not self._begun or self._closed:
            return False
        if not image.features.metadata_version.controller_registration:
            return False
        known = image.controllers.get(self._controller_id)
        if known is None or known.incarnation_id != self._incarnation_id:
            return not self._is_accepted
        self._is_accepted = False
        return False

    def _send(self) -> None:
        self._timer = None
        if not self._is_due(self._image()):
            return
        self._pending = self._ask(ApiKey.CONTROLLER_REGISTRATION, self._request())
        self._pending.add_done_callback(self._answered)

    def _request(self) -> m.ControllerRegistrationRequest:
        request = m.ControllerRegistrationRequest
        return request(
            controller_id=self._controller_id,
            incarnation_id=self._incarnation_id,
            zk_migration_ready=False,
            listeners=[
                request.Listener(
                    name=listener.name,
                    host=listener.host,
                    port=listener.port,
                    security_protocol=PROTOCOL_NUMBERS[listener.protocol],
                )
                for listener in self._listeners
            ],
            features=[
                request.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ],
        )

    def _answered(self, done: Pending[m.ControllerRegistrationResponse]) -> None:
        self._pending = None
        if self._closed:
            return
        error = done.error()
        code = 0 if error is not None else done.result().error_code
        if error is None and not code:
            self._failures = 0
            self._is_accepted = True
            logger.info("controller %d is registered", self._controller_id)
            return
        self._failures += 1
        delay_ms = min(RETRY_MS * 2 ** min(self._failures, 10), RETRY_MS_MAX)
        logger.debug("controller registration failed: %s", error or ErrorCode(code).name)
        self._timer = self._loop.call_later(delay_ms / 1000, self._send)

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._pending is not None:
            self._pending.cancel()
