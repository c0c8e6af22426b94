"""The TLS of one listener: its contexts now, and how they are replaced while it runs."""

from __future__ import annotations

import os
import ssl

from kwire.security.tls.compatibility import check_replacement
from kwire.security.tls.contexts import Material, client_context, server_context
from kwire.security.tls.settings import SettingOf, TlsSettings
from kwire.security.tls.trial import TrialFailed, check_handshake

FileStamp = tuple[int, int, int] | None


class _Made:
    """Contexts with what they were made of."""

    __slots__ = ("client", "material", "server", "settings")

    def __init__(self, settings: TlsSettings, serves: bool, dials: bool) -> None:
        self.settings = settings
        self.material = Material.load(settings)
        self.server = server_context(settings, self.material) if serves else None
        self.client = client_context(settings, self.material) if dials else None

    def unnamed_client(self) -> ssl.SSLContext:
        """The other side of a trial: one that compares no names."""
        return client_context(self.settings._replace(endpoint_identification=""), self.material)

    def check_what_is_shown(self) -> None:
        """TrialFailed where even who trusts the certificates would not take them."""
        settings = self.settings._replace(client_auth="none", endpoint_identification="")
        shown = [entry.chain[0] for entry in self.material.keys]
        check_handshake(
            server_context(settings, self.material),
            client_context(settings, Material([], shown)),
            "clients cannot connect to what takes its place",
        )


class TlsEndpoint:
    """`server_context` is for accepted connections, `client_context` for those that this node opens
    to the same listener of others; `serves` and `dials` say which there are. Connections that exist
    keep what they were made with.

    `is_between_brokers`: nodes connect to each other by it with stores like these, so the two sides
    have to get a connection. What takes the place of a certificate must not have expired.

    `setting(name)` gives the listener's settings as they are now. Raises TlsError when they cannot
    be used; after a `reload` that raises nothing has changed.
    """

    def __init__(
        self,
        setting: SettingOf,
        *,
        serves: bool = True,
        dials: bool = True,
        is_between_brokers: bool = False,
    ) -> None:
        self._setting = setting
        self._serves = serves
        self._dials = dials
        self._tries = serves and is_between_brokers
        settings = TlsSettings.read(setting)
        self._stamps = _stamps(settings)
        self._made = _Made(settings, serves, dials)
        if self._tries:
            _check(self._made, self._made, "brokers with these stores cannot connect to each other")

    def server_context(self) -> ssl.SSLContext:
        """For the next connection that is accepted."""
        assert self._made.server is not None, "of a listener of this node"
        return self._made.server

    def client_context(self) -> ssl.SSLContext:
        """For the next connection that is opened."""
        assert self._made.client is not None, "of a listener that this node connects to"
        return self._made.client

    def certificates(self) -> list[bytes]:
        """Those that this node shows, and those that signed them, as far as it has them; DER."""
        return [one for entry in self._made.material.keys for one in entry.chain]

    def check(self, setting: SettingOf) -> None:
        """Whether other settings could be taken over; TlsError.

        The same settings can, whatever has become of their files: a bad file keeps nobody from
        changing something else.
        """
        settings = TlsSettings.read(setting)
        if settings == self._made.settings:
            return
        self._checked(settings, setting)

    def _checked(self, settings: TlsSettings, setting: SettingOf) -> _Made:
        made = _Made(settings, self._serves, self._dials)
        if self._serves:
            self._try(made)
            check_replacement(
                self._made.material,
                made.material,
                allow_dn_changes=bool(setting("ssl.allow.dn.changes")),
                allow_san_changes=bool(setting("ssl.allow.san.changes")),
            )
        return made

    def _try(self, made: _Made) -> None:
        """What is new has to be of use, and of use to those who have what was there before."""
        made.check_what_is_shown()
        if not self._tries:
            return
        _check(made, made, "brokers with these stores cannot connect to each other")
        try:
            _check(self._made, self._made, "")
        except TrialFailed:
            return  # what was there before has expired
        _check(made, self._made, "brokers with the stores before cannot connect to these")
        _check(self._made, made, "brokers with these stores cannot connect to those before")

    def files_changed(self) -> bool:
        """Whether a file is another one than when it was last looked at."""
        return _stamps(self._made.settings) != self._stamps

    def reload(self) -> None:
        """Take the settings and files over as they are now; TlsError, then the old ones stay."""
        settings = TlsSettings.read(self._setting)
        self._stamps = _stamps(settings)  # a bad file is looked at once
        self._made = self._checked(settings, self._setting)


def _check(server: _Made, client: _Made, what: str) -> None:
    assert server.server is not None
    check_handshake(server.server, client.unnamed_client(), what)


def _stamps(settings: TlsSettings) -> tuple[FileStamp, ...]:
    return tuple(
        _stamp(location)
        for location in (settings.key_store.location, settings.trust_store.location)
    )


def _stamp(path: str | None) -> FileStamp:
    if path is None:
        return None
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
