"""In whose name a request goes to the controller."""

from __future__ import annotations

from typing import Protocol


class Requester(Protocol):
    """The client that has sent a request, as the controller is told of it."""

    @property
    def correlation_id(self) -> int: ...

    @property
    def client_id(self) -> str | None: ...

    @property
    def api_version(self) -> int: ...

    @property
    def client_host(self) -> str:
        """The client's address as Kafka writes it: `/127.0.0.1`."""
        ...

    @property
    def listener_name(self) -> str: ...

    @property
    def principal(self) -> str: ...

    @property
    def token_authenticated(self) -> bool:
        """Whether a delegation token proved who it is."""
        ...

    @property
    def security_protocol(self) -> str:
        """Of its connection: `SASL_PLAINTEXT`."""
        ...

    @property
    def is_connected(self) -> bool:
        """Whether it is connected to this node: not one whose broker forwards for it."""
        ...

    def authorize(self, operation: int, resource_type: int, resource_name: str) -> bool: ...

    def may(self, operation: int, resource_type: int, resource_name: str) -> bool:
        """As `authorize`, where a denial refuses nothing."""
        ...
