"""All calls of the API v3."""

from __future__ import annotations

from kwire.http.purposes.rest.route import AnyRoute
from kwire.http.purposes.rest.v3 import acls, clusters, configs, groups, records, topics
from kwire.http.purposes.rest.v3.links import PREFIXES


def _routes(prefix: str) -> list[AnyRoute]:
    return [
        route
        for part in (clusters, topics, configs, records, groups, acls)
        for route in part.routes(prefix)
    ]


ROUTES = _routes(PREFIXES[0])
ALIASES = _routes(PREFIXES[1])
"""The same where Confluent Server has them; not shown in the documentation again."""
