"""The states of a client's authentication on the server's side, as a table.

    HANDSHAKE_OR_VERSIONS   a new connection: ApiVersions or SaslHandshake
    HANDSHAKE               ApiVersions was answered: SaslHandshake only
    TOKENS                  a mechanism was agreed on: SaslAuthenticate
    RAW_TOKENS              the same by SaslHandshake version 0: frames hold nothing but tokens
    AUTHENTICATED           anything but SaslHandshake, which authenticates anew where sessions end
    FAILED                  nothing any more: the connection is closed

What is not in the table leads to FAILED. Source: KIP-43, KIP-152, KIP-368; measured on Apache
Kafka 4.4.
"""

from __future__ import annotations

import enum


class State(enum.Enum):
    """See the module."""

    HANDSHAKE_OR_VERSIONS = enum.auto()
    HANDSHAKE = enum.auto()
    TOKENS = enum.auto()
    RAW_TOKENS = enum.auto()
    AUTHENTICATED = enum.auto()
    FAILED = enum.auto()


class Event(enum.Enum):
    """What a frame of the client turned out to be."""

    VERSIONS = enum.auto()
    """An ApiVersions request that is answered with versions."""
    VERSIONS_REFUSED = enum.auto()
    """One that is answered with an error: of an unknown version, or not well formed."""
    HANDSHAKE = enum.auto()
    RAW_HANDSHAKE = enum.auto()
    """SaslHandshake version 0."""
    TOKEN = enum.auto()
    """A token that the mechanism has an answer to."""
    LAST_TOKEN = enum.auto()
    """The token that proves who the client is."""
    REFUSED = enum.auto()
    """A mechanism or a token that is not accepted."""
    OTHER = enum.auto()
    """Any other request, and what is no request."""


TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.HANDSHAKE_OR_VERSIONS, Event.VERSIONS): State.HANDSHAKE,
    (State.HANDSHAKE_OR_VERSIONS, Event.VERSIONS_REFUSED): State.HANDSHAKE_OR_VERSIONS,
    (State.HANDSHAKE_OR_VERSIONS, Event.HANDSHAKE): State.TOKENS,
    (State.HANDSHAKE_OR_VERSIONS, Event.RAW_HANDSHAKE): State.RAW_TOKENS,
    (State.HANDSHAKE, Event.HANDSHAKE): State.TOKENS,
    (State.HANDSHAKE, Event.RAW_HANDSHAKE): State.RAW_TOKENS,
    (State.TOKENS, Event.TOKEN): State.TOKENS,
    (State.TOKENS, Event.LAST_TOKEN): State.AUTHENTICATED,
    (State.RAW_TOKENS, Event.TOKEN): State.RAW_TOKENS,
    (State.RAW_TOKENS, Event.LAST_TOKEN): State.AUTHENTICATED,
    (State.AUTHENTICATED, Event.HANDSHAKE): State.TOKENS,
    (State.AUTHENTICATED, Event.RAW_HANDSHAKE): State.RAW_TOKENS,
    (State.AUTHENTICATED, Event.VERSIONS): State.AUTHENTICATED,
    (State.AUTHENTICATED, Event.VERSIONS_REFUSED): State.AUTHENTICATED,
    (State.AUTHENTICATED, Event.OTHER): State.AUTHENTICATED,
}


def following(state: State, event: Event) -> State:
    """The state after `event`."""
    return TRANSITIONS.get((state, event), State.FAILED)
