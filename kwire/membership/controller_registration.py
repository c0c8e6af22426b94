"""Tells the active controller of this controller: its listeners and features (KIP-919).

Once the metadata allows it (metadata.version 3.7-IV0), and again whenever the metadata holds
another incarnation of this node than this one, until it was accepted.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from kwire.kraft.features import SUPPORTED_FEATURES
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.membership.registration import PROTOCOL_NUMBERS
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kwire.node.node import Node

logger = logging.getLogger(__name__)

RETRY_MS = 100
RETRY_MS_MAX = 10_000


class ControllerRegistration:
    """See the module; `published(image)` is told of every change of the metadata."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._pending: Pending[Any] | None = None
        self._timer: Any = None
        self._failures = 0
        self._is_accepted = False  # but not seen in the metadata yet
        self._closed = False

    def published(self, image: MetadataImage) -> None:
        if self._is_due(image) and self._pending is None and self._timer is None:
            self._send()

    def _is_due(self, image: MetadataImage) -> bool:
        node = self._node
        if self._closed or not image.features.metadata_version.controller_registration:
            return False
        known = image.controllers.get(node.broker_id)
        if known is None or known.incarnation_id != node.incarnation_id:
            return not self._is_accepted
        self._is_accepted = False
        return False

    def _send(self) -> None:
        self._timer = None
        node = self._node
        if not self._is_due(node.image):
            return
        request = m.ControllerRegistrationRequest
        message = request(
            controller_id=node.broker_id,
            incarnation_id=node.incarnation_id,
            zk_migration_ready=False,
            listeners=[
                request.Listener(
                    name=listener.name,
                    host=listener.host,
                    port=listener.port,
                    security_protocol=PROTOCOL_NUMBERS[listener.protocol],
                )
                for listener in node.metadata.advertised
            ],
            features=[
                request.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ],
        )
        self._pending = node.controller_channel.ask(ApiKey.CONTROLLER_REGISTRATION, message)
        self._pending.add_done_callback(self._answered)

    def _answered(self, done: Pending[Any]) -> None:
        self._pending = None
        if self._closed:
            return
        error = done.error()
        code = 0 if error is not None else done.result().error_code
        if error is None and not code:
            self._failures = 0
            self._is_accepted = True
            logger.info("controller %d is registered", self._node.broker_id)
            return
        self._failures += 1
        delay_ms = min(RETRY_MS * 2 ** min(self._failures, 10), RETRY_MS_MAX)
        logger.debug("controller registration failed: %s", error or ErrorCode(code).name)
        self._timer = self._node.loop.call_later(delay_ms / 1000, self._send)

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._pending is not None:
            self._pending.cancel()
