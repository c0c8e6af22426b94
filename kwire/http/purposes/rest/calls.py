"""All calls of the API, in the order of the documentation."""

from __future__ import annotations

from kwire.http.purposes.rest import messages, queues, topics
from kwire.http.purposes.rest.route import AnyRoute

ROUTES: list[AnyRoute] = [*messages.ROUTES, *queues.ROUTES, *topics.ROUTES]
