"""Who is at the other end of a connection, and what protects it: by the protocol of its listener.

For listeners this node accepts connections of, and for those of other nodes that it connects to.
A node whose listeners are all PLAINTEXT has nothing of it, and imports nothing for it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import ssl
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from kwire.config.broker_config import BrokerConfig
from kwire.config.dynamic import DynamicConfig
from kwire.config.errors import ConfigError
from kwire.config.listener_settings import PREFIX, ListenerSettings, Settings
from kwire.config.listeners import WITH_TLS, Listener
from kwire.config.values import TypedValue, Value
from kwire.network.frames import FrameConnection
from kwire.network.peer import Wrap
from kwire.security.authorizer import ANONYMOUS
from kwire.server.connection import BrokerConnection
from kwire.server.listener import WrapAccepted

if TYPE_CHECKING:
    from kwire.http.questions import Question
    from kwire.security.tls.endpoint import TlsEndpoint
    from kwire.security.tls.principal_mapping import PrincipalMapping
    from kwire.security.tls.settings import SettingOf

logger = logging.getLogger(__name__)

MAPPING_RULES = "ssl.principal.mapping.rules"
FILE_CHECK_S = 5.0


class ListenerSecurity:
    """`open` reads what the settings name, before any listener is bound; `close` ends the watching
    of files."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, config: BrokerConfig, dynamic_config: DynamicConfig
    ) -> None:
        self._loop = loop
        self._config = config
        self._dynamic_config = dynamic_config
        self._endpoints: dict[str, TlsEndpoint] = {}
        self._mapping: PrincipalMapping | None = None
        self._timer: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Read the stores; ConfigError, one line, where one cannot be used."""
        protocols = self._config.protocol_map()
        own = [listener.name for listener in self._config.listeners()]
        dialled = self._dialled()
        names = [name for name in dict.fromkeys((*own, *dialled)) if is_tls(protocols.get(name))]
        if not names:
            return
        from kwire.security.tls.principal_mapping import PrincipalMapping

        try:
            self._mapping = PrincipalMapping(str(self._config[MAPPING_RULES]))
        except ConfigError as error:
            raise ConfigError(f"{MAPPING_RULES}: {error}") from None
        for name in names:
            settings = self._settings_of(self._dynamic_config, name, protocols[name])
            self._endpoints[name] = self._endpoint(name, settings)
        self._dynamic_config.add_listener(self._changed)
        self._dynamic_config.checks.append(self._check)
        self._arm()

    def _dialled(self) -> list[str]:
        """The listeners of other nodes that this one connects to."""
        dialled = self._config.controller_listener_names()[:1]
        if self._config.is_broker:
            dialled.append(self._config.inter_broker_listener_name())
        return dialled

    def _endpoint(self, name: str, settings: SettingOf) -> TlsEndpoint:
        from kwire.security.tls.endpoint import TlsEndpoint

        own = [listener.name for listener in self._config.listeners()]
        try:
            return TlsEndpoint(
                settings,
                serves=name in own,
                dials=name in self._dialled(),
                is_between_brokers=name == self._config.inter_broker_listener_name(),
            )
        except ConfigError as error:
            raise ConfigError(f"listener {name}: {error}") from None

    @staticmethod
    def _settings_of(settings: Settings, name: str, protocol: str) -> SettingOf:
        found = ListenerSettings(settings, name)

        def of(setting: str) -> TypedValue:
            # Who is there is told by SASL: a certificate is asked for where this very listener
            # says so (KIP-684).
            if setting == "ssl.client.auth" and protocol == "SASL_SSL":
                return found(setting) if found.has_own(setting) else "none"
            return found(setting)

        return of

    # -- connections

    def accepted(self, listener: Listener) -> WrapAccepted | None:
        """What stands between the sockets of a listener and its connections; None for nothing."""
        endpoint = self._endpoints.get(listener.name)
        if endpoint is None:
            return None
        is_known = listener.protocol == "SSL"
        return partial(self._accept, endpoint, is_known)

    def _accept(
        self, endpoint: TlsEndpoint, is_known: bool, connection: BrokerConnection
    ) -> asyncio.BaseProtocol:
        from kwire.network.tls_connection import TlsConnection

        return TlsConnection(
            self._loop,
            connection,
            endpoint.server_context(),
            server_side=True,
            established=partial(self._established, connection) if is_known else _nobody,
        )

    def _established(self, connection: BrokerConnection, ssl_object: ssl.SSLObject) -> None:
        """A client is there: who it is, by its certificate."""
        from kwire.security.tls.distinguished_name import subject_of

        certificate = ssl_object.getpeercert(binary_form=True)
        principal: str | None = ANONYMOUS
        if certificate is not None:
            assert self._mapping is not None, "made before the first listener"
            try:
                name = self._mapping.name_of(subject_of(certificate))
            except ValueError:  # signed by somebody who is trusted, and no X.509 all the same
                name = None
            principal = None if name is None else f"User:{name}"
        if principal is None:
            connection.failure = f"no rule of {MAPPING_RULES} fits its certificate"
            connection.close(connection.failure)
        else:
            connection.set_principal(principal, True)

    def dialled(self, listener_name: str) -> Wrap:
        """What stands between this node's connections to a listener of others and their sockets."""
        return partial(self._dial, listener_name)

    def _dial(
        self, listener_name: str, connection: FrameConnection, host: str
    ) -> asyncio.BaseProtocol:
        endpoint = self._endpoints.get(listener_name)
        if endpoint is None:
            return connection
        from kwire.network.tls_connection import TlsConnection

        context = endpoint.client_context()
        return TlsConnection(
            self._loop, connection, context, server_side=False, server_hostname=host
        )

    def questions(self) -> dict[str, Question]:
        """`certificates` of the HTTP process: those of a listener, as JSON."""

        def certificates(arguments: Mapping[str, str]) -> Iterator[bytes]:
            endpoint = self._endpoints.get(arguments.get("listener", ""))
            if endpoint is None:
                raise ValueError("the listener has no TLS")
            shown = [base64.b64encode(one).decode() for one in endpoint.certificates()]
            yield json.dumps(shown).encode()

        return {"certificates": certificates}

    # -- other settings and files

    def _changed(self, changed: Mapping[str, Value]) -> None:
        for name, endpoint in self._endpoints.items():
            own = f"{PREFIX}{name.lower()}.ssl."
            if any(setting.startswith((own, "ssl.")) for setting in changed):
                self._reload(name, endpoint)

    def look_at_files(self) -> None:
        """Take over files that have changed."""
        for name, endpoint in self._endpoints.items():
            if endpoint.files_changed():
                self._reload(name, endpoint)

    def _reload(self, name: str, endpoint: TlsEndpoint) -> None:
        try:
            endpoint.reload()
        except ConfigError as error:
            logger.error(
                "the TLS settings of listener %s cannot be used, those before stay: %s", name, error
            )
        else:
            logger.info("listener %s has new TLS settings", name)

    def _check(self, candidate: Settings) -> None:
        """Whether changed settings can be used; ConfigError in Kafka's words."""
        from kwire.security.tls.errors import TlsError

        protocols = self._config.protocol_map()
        for name, endpoint in self._endpoints.items():
            try:
                endpoint.check(self._settings_of(candidate, name, protocols[name]))
            except TlsError as error:
                raise ConfigError(error.in_kafkas_words()) from None

    def _arm(self) -> None:
        self._timer = self._loop.call_later(FILE_CHECK_S, self._look)

    def _look(self) -> None:
        self.look_at_files()
        self._arm()

    def close(self) -> None:
        """Look at no files any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def is_tls(protocol: str | None) -> bool:
    """Whether a listener of this protocol is encrypted."""
    return protocol in WITH_TLS


def _nobody(ssl_object: ssl.SSLObject) -> None:
    """Nothing is known of a client yet."""
