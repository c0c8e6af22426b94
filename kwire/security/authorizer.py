"""What decides whether a principal may do something: the shape of every authorizer."""

from __future__ import annotations

from typing import Protocol

ANONYMOUS = "User:ANONYMOUS"
"""Who has not said who they are."""


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


class DenialListener(Protocol):
    """Hears of every denial that refuses something."""

    def denied(
        self, requester: Requester, operation: int, resource_type: int, resource_name: str, /
    ) -> None: ...


class AuditedAuthorizer:
    """Decides as `unaudited` does, and tells of denials."""

    def __init__(self, unaudited: Authorizer, listener: DenialListener) -> None:
        self.unaudited = unaudited
        self._listener = listener

    def authorize(
        self, requester: Requester, operation: int, resource_type: int, resource_name: str, /
    ) -> bool:
        """See `Authorizer.authorize`."""
        if self.unaudited.authorize(requester, operation, resource_type, resource_name):
            return True
        self._listener.denied(requester, operation, resource_type, resource_name)
        return False

    def authorize_by_resource_type(
        self, requester: Requester, operation: int, resource_type: int, /
    ) -> bool:
        """See `Authorizer.authorize_by_resource_type`."""
        if self.unaudited.authorize_by_resource_type(requester, operation, resource_type):
            return True
        self._listener.denied(requester, operation, resource_type, "")
        return False


def audited(authorizer: Authorizer | None, listener: DenialListener | None) -> Authorizer | None:
    """An authorizer whose denials are told, where there is one and somebody listens."""
    if authorizer is None or listener is None:
        return authorizer
    return AuditedAuthorizer(authorizer, listener)


def unaudited(authorizer: Authorizer) -> Authorizer:
    """The same without an audit: for what is asked only to leave something out of an answer, or
    where another right does as well."""
    return authorizer.unaudited if type(authorizer) is AuditedAuthorizer else authorizer
