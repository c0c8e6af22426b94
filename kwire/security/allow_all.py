"""The authorizer of a cluster in which every client is a super user.

Kafka's StandardAuthorizer with `super.users=User:ANONYMOUS` and no authentication refuses nobody,
but ACLs can be made, listed and removed. The configuration admits no other authorizer yet.
"""

from __future__ import annotations

from kwire.security.authorizer import Requester


class AllowAll:
    """Everybody may do everything."""

    def authorize(
        self, requester: Requester, operation: int, resource_type: int, resource_name: str, /
    ) -> bool:
        """See `Authorizer.authorize`."""
        return True
