"""All calls of the API, in the order of the documentation."""

from __future__ import annotations

from kwire.http.purposes.rest import groups, instances, messages, queues, tail, topics, transactions
from kwire.http.purposes.rest.route import AnyRoute
from kwire.http.purposes.rest.v3 import calls as v3

ROUTES: list[AnyRoute] = [
    *messages.ROUTES,
    *tail.ROUTES,
    *queues.ROUTES,
    *topics.ROUTES,
    *groups.ROUTES,
    *transactions.ROUTES,
    *instances.ROUTES,
    *v3.ROUTES,
]
