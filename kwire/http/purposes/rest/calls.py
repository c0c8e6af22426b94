"""All calls of the API, in the order of the documentation."""

from __future__ import annotations

from kwire.http.purposes.rest import topics
from kwire.http.purposes.rest.route import AnyRoute

ROUTES: list[AnyRoute] = [*topics.ROUTES]
