"""Kafka by HTTP and JSON, for programs without a Kafka client (docs/REST.md).

route.py      a call as data: parameters, body, answers, handler
calls.py      all of them; each file of handlers has its own ROUTES
parsing.py    what comes in, strictly
problems.py   what is refused, and Kafka's errors as statuses
endpoint.py   one path: parse, call, answer
clients.py    who asks: connections of a caller, and what it has beyond a request
openapi.py    the document and the page, made of the routes

The routes are served beside `/openapi.json` and `/docs`.
"""

from __future__ import annotations

from starlette.routing import BaseRoute, Route

from kwire.http.purposes.rest.calls import ROUTES
from kwire.http.purposes.rest.clients import Clients
from kwire.http.purposes.rest.documents import Documents
from kwire.http.purposes.rest.endpoint import Endpoint
from kwire.http.purposes.rest.route import AnyRoute
from kwire.http.purposes.rest.v3.calls import ALIASES
from kwire.http.serving import Serving


def routes(serving: Serving) -> list[BaseRoute]:
    """See the module."""
    clients = Clients(serving.anonymous, serving.node_id)
    documents = Documents(ROUTES, serving.schemes)
    by_path: dict[str, list[AnyRoute]] = {}
    for route in (*ROUTES, *ALIASES):
        by_path.setdefault(route.path, []).append(route)
    found: list[BaseRoute] = [
        Route("/openapi.json", documents.openapi, methods=["GET"]),
        Route("/docs", documents.page, methods=["GET"]),
    ]
    for path, of_path in by_path.items():
        one = Route(path, Endpoint(of_path, clients), methods=[each.method for each in of_path])
        assert one.methods is not None
        one.methods.discard("HEAD")  # of what is read by GET nothing may be lost
        found.append(one)
    return found
