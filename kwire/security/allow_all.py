"""The authorizer of a cluster in which every client is a super user.

Kafka's StandardAuthorizer with `super.users=User:ANONYMOUS` and no authentication refuses nobody,
but ACLs can be made, listed and removed. The configuration admits no other authorizer yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kwire.server.context import RequestContext


class AllowAll:
    """Everybody may do everything."""

    def authorize(
        self, context: RequestContext, operation: int, resource_type: int, resource_name: str
    ) -> bool:
        """See `RequestContext.authorize`."""
        return True
