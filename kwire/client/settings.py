"""How a client connects: a value, made once and shared by its connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kwire.network.login import MakeAuthentication

if TYPE_CHECKING:
    import ssl

    from kwire.security.token_login import TokenLogin

CLIENT_ID = "kwire"
FRAME_BYTES_MAX = 256 << 20


class ConnectionSettings(NamedTuple):
    """`bootstrap` is `host:port[,host:port]`. `tls()` gives the context of a connection, `login()`
    a new login of one; both are asked for each connection, so that what is renewed takes effect.
    Times in seconds; `retry_timeout_s` bounds all attempts of one call together."""

    bootstrap: str
    client_id: str = CLIENT_ID
    tls: Callable[[], ssl.SSLContext] | None = None
    check_host_name: bool = True
    """Whether the name that was connected to is sent, and has to be in the certificate."""
    login: MakeAuthentication | None = None
    tokens: TokenLogin | None = None
    """What has the tokens that `login` needs."""
    connect_timeout_s: float = 5.0
    first_timeout_s: float = 15.0
    """For the versions and the login: a busy broker knows them without looking anything up."""
    request_timeout_s: float = 40.0
    retry_timeout_s: float = 20.0
    backoff_min_s: float = 0.05
    backoff_max_s: float = 1.0
    metadata_max_age_s: float = 60.0
    frame_bytes_max: int = FRAME_BYTES_MAX
