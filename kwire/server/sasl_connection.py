"""A connection whose client has to say who it is before anything else (`security/sasl/server.py`).

Until it has, its frames go to the SASL machine and to nobody else, and are bounded by
`sasl.server.max.receive.size`. A client that is refused gets its answer, and the end of the
connection, `connection.failed.authentication.delay.ms` later: nothing is read meanwhile. Where
sessions end, SaslHandshake begins a re-authentication, in its place among the other requests; the
connection of a client whose session has ended is closed at its next request (KIP-368).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from kwire.network.frames import Buffer
from kwire.protocol.errors import KafkaError, MalformedError
from kwire.protocol.structs import Message
from kwire.security.authorizer import ANONYMOUS
from kwire.security.sasl.mechanisms import Identity
from kwire.security.sasl.server import SaslServer
from kwire.server.connection import BrokerConnection
from kwire.server.connection_setup import ConnectionSetup
from kwire.server.context import Disconnect, RequestContext

logger = logging.getLogger(__name__)


class SaslConnection(BrokerConnection):
    """See the module."""

    __slots__ = (
        "_clock",
        "_make_settings",
        "_sasl",
        "_settings",
    )

    def __init__(self, setup: ConnectionSetup[BrokerConnection]) -> None:
        super().__init__(setup)
        assert setup.sasl is not None
        self._make_settings = setup.sasl
        self._settings = setup.sasl()
        self._sasl = SaslServer(self._settings, partial(_error_answer, setup))
        self._clock = setup.parts.clock
        self.frame_bytes_max = min(self._settings.receive_bytes_max, setup.request_bytes_max)
        self.is_trusted = False
        self.set_principal(ANONYMOUS, False)

    def _execute(self, body: memoryview) -> None:
        sasl = self._sasl
        if sasl.is_complete:
            api_key = int.from_bytes(body[:2], "big", signed=True)
            if not sasl.begins_anew(api_key):
                if sasl.session_end_ms is None or not sasl.is_expired(self._clock.wall_ms()):
                    super()._execute(body)
                else:
                    self._settings.counts.expired += 1
                    if self._setup.authentications is not None:
                        self._setup.authentications.expired += 1
                    self._refuse("the client has not authenticated anew in time")
                return
            # A password that was changed or removed meanwhile is good for nothing any more.
            self._settings = sasl.settings = self._make_settings()
        if self._is_held_back(body):
            return  # replies to what came before leave first
        was_authenticated = self.is_authenticated
        step = sasl.receive(body, self._clock.wall_ms())
        if step.failure is not None:
            self._count(was_authenticated, False)
            self._fail(step.failure, step.reply, step.is_delayed)
        elif step.executes:
            super()._execute(body)
        else:
            if step.identity is not None:
                self._count(was_authenticated, True)
                self._authenticated(step.identity, was_authenticated)
            self._emit(step.reply)

    def _count(self, is_again: bool, is_successful: bool) -> None:
        """Of the node and of this listener."""
        self._settings.counts.count(is_again, is_successful)
        if self._setup.authentications is not None:
            self._setup.authentications.count(is_again, is_successful)

    def _authenticated(self, identity: Identity, again: bool) -> None:
        self.frame_bytes_max = self._setup.request_bytes_max
        self.is_trusted = True
        self.token_authenticated = identity.by_token
        self.set_principal(identity.principal, True)
        logger.debug(
            "%s has authenticated%s by %s",
            identity.principal,
            " anew" if again else "",
            self._sasl.mechanism,
        )

    def _fail(self, reason: str, reply: Sequence[Buffer], is_delayed: bool) -> None:
        """Close; where there is an answer it leaves together with the end."""
        if not reason.isprintable():  # names of clients are in some
            reason = ascii(reason)
        where = f"authentication of {self.client_host} on {self.listener_name} failed: {reason}"
        hear = self._setup.steps.authentication_failed
        if hear is not None:
            hear(self.client_host, self.listener_name, self._sasl.mechanism, reason)
        self.stop_cutting()
        self._queue.clear()
        delay_ms = self._settings.failure_delay_ms
        if not is_delayed or delay_ms <= 0:
            self._end(where, reply)
            return
        timer = self._loop.call_later(delay_ms / 1000, self._end, where, reply)
        self.add_close_callback(timer.cancel)

    def _end(self, reason: str, reply: Sequence[Buffer]) -> None:
        if reply:
            self._emit(reply)
        self.close(reason)


def _error_answer(
    setup: ConnectionSetup[BrokerConnection],
    api_key: int,
    version: int,
    body: memoryview,
    error: KafkaError,
) -> Message | None:
    """The shape that an API has for an error of a whole request."""
    try:
        route = setup.dispatcher.route(api_key, version)
        request, _ = route.decode(body, 0, version)
    except MalformedError:
        return None
    context = RequestContext(setup.parts, None, api_key, version, 0, None)
    refused = route.refused(context, request, error)
    return None if isinstance(refused, Disconnect) else refused
