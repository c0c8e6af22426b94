"""A handshake in memory: whether settings of TLS get a connection before they are used.

Kafka tries it of the listener between brokers, when it starts and when its stores are replaced.
Source: KIP-226; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

import ssl

from kwire.security.tls.errors import CONFIG, TlsError

ROUNDS_MAX = 16
"""A handshake takes three."""

KAFKA = (
    "Invalid value {} for configuration A client SSLEngine created with the provided settings "
    "can't connect to a server SSLEngine created with those settings."
)


class TrialFailed(TlsError):
    """The two sides would not get a connection."""

    kind = CONFIG

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}: {why}")
        self.kafka = KAFKA.format(f"javax.net.ssl.SSLHandshakeException: {why}")


def check_handshake(server: ssl.SSLContext, client: ssl.SSLContext, what: str) -> None:
    """TrialFailed, which says `what` would not connect and why; the client compares no names."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_side=False),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(ROUNDS_MAX):
        sides = [side for side in sides if not _is_done(side, what)]
        if not sides:
            return
    raise TrialFailed(what, "the handshake does not end")


def _is_done(side: ssl.SSLObject, what: str) -> bool:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    except ssl.SSLCertVerificationError as error:
        raise TrialFailed(what, error.verify_message) from None
    except ssl.SSLError as error:
        raise TrialFailed(what, (error.reason or str(error)).replace("_", " ").lower()) from None
    return True
