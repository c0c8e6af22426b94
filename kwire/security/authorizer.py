"""What decides whether a principal may do something: the shape of every authorizer."""

from __future__ import annotations

from typing import Protocol


class Requester(Protocol):
    """Who asks, and from where."""

    @property
    def principal(self) -> str:
        """`User:alice`."""
        ...

    @property
    def client_host(self) -> str:
        """The client's address as Kafka writes it: `/127.0.0.1`."""
        ...


class Authorizer(Protocol):
    """Without one everybody may do everything, and ACLs cannot be made."""

    def authorize(
        self, requester: Requester, operation: int, resource_type: int, resource_name: str, /
    ) -> bool:
        """Whether `requester` may do `operation` on the resource (numbers of `acl.py`)."""
        ...

    def authorize_by_resource_type(
        self, requester: Requester, operation: int, resource_type: int, /
    ) -> bool:
        """Whether `requester` may do `operation` on some resource of a type (KIP-679)."""
        ...
