"""One connection: requests and their replies, SASL."""

from __future__ import annotations

import ssl as _ssl

from tests.support.frames import Closed, FrameSocket, WireError, frame, parse_hostport
from tests.wire.codec import DEFAULT_CLIENT, Obj, decode_response, encode_request
from tests.wire.scram import Scram

__all__ = ["Closed", "Conn", "frame", "parse_hostport"]


class Conn(FrameSocket):
    """One TCP (or TLS) connection.  `send` asks and waits; `post` only asks; `recv` reads the next reply in order."""

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str | None = DEFAULT_CLIENT,
        timeout: float = 30.0,
        tls: _ssl.SSLContext | bool | None = None,
        sasl=None,
    ):
        super().__init__(bootstrap, timeout, tls)
        self.client_id = client_id
        self.corr = 0
        self.pending: list[tuple[int, object, int]] = []
        if sasl:
            self.sasl(*sasl)

    # -- message level
    def post(
        self, api, version: int, body=None, client_id=..., header_tags=None, expect_reply=True, **kw
    ) -> int:
        """Send without waiting. Returns the correlation id. Use expect_reply=False for acks=0 and the like."""
        self.corr += 1
        corr = self.corr
        self.send_frame(
            encode_request(
                api,
                version,
                corr,
                self.client_id if client_id is ... else client_id,
                body,
                header_tags,
                **kw,
            )
        )
        if expect_reply:
            self.pending.append((corr, api, version))
        return corr

    def recv(self, timeout: float | None = None) -> Obj:
        """The reply to the oldest request still open on this connection."""
        corr, api, version = self.pending[0]
        payload = self.recv_frame(timeout)
        self.pending.pop(0)
        got, obj = decode_response(api, version, payload)
        if got != corr:
            raise WireError(f"{api} v{version}: correlation id {got}, expected {corr}")
        return obj

    def recv_as(self, api, version: int, timeout: float | None = None) -> tuple[int, Obj]:
        """(correlation id, reply) of the next frame, for requests that were sent as bytes."""
        return decode_response(api, version, self.recv_frame(timeout))

    def send(self, api, version: int, body=None, timeout: float | None = None, **kw) -> Obj:
        assert not self.pending, "send() with replies outstanding; use post()/recv()"
        self.post(api, version, body, **kw)
        return self.recv(timeout)

    def versions(self) -> dict[int, tuple[int, int]]:
        r = self.send("api_versions", 0)
        assert r.error_code == 0
        return {k.api_key: (k.min_version, k.max_version) for k in r.api_keys}

    # -- SASL
    def sasl(self, mechanism: str, user: str, password: str):
        """Log in with SaslHandshake v1 + SaslAuthenticate v2; raises WireError when refused."""
        r = self.send("sasl_handshake", 1, mechanism=mechanism)
        if r.error_code:
            raise WireError(f"SaslHandshake: error {r.error_code}, mechanisms {r.mechanisms}")
        if mechanism == "PLAIN":
            r = self.send("sasl_authenticate", 2, auth_bytes=f"\0{user}\0{password}".encode())
            if r.error_code:
                raise WireError(f"SaslAuthenticate: error {r.error_code} {r.error_message}")
            return r
        s = Scram(mechanism, user, password)
        r = self.send("sasl_authenticate", 2, auth_bytes=s.first())
        if r.error_code:
            raise WireError(f"SaslAuthenticate 1: error {r.error_code} {r.error_message}")
        r = self.send("sasl_authenticate", 2, auth_bytes=s.final(r.auth_bytes))
        if r.error_code:
            raise WireError(f"SaslAuthenticate 2: error {r.error_code} {r.error_message}")
        s.verify(r.auth_bytes)
        return r
