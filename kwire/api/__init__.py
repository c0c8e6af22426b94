"""One file per API, all of one shape.

    docstring           the versions, how Kafka behaves, and where that is written
    VERSIONS            lowest and highest version
    WAITS_FOR_WRITES    False: it may start before the writes in front of it are answered
    TAKES_TURNS         True: a turn of the loop starts only so many of them
    AUTHORIZATION       what a client needs the right to (`kwire/security/requirements.py`)
    handle              (context, request) -> the response, or a Pending of it
    error_response      the API's shape of an error of the whole request; without it a response with
                        a top-level error code carries it
    denied_response     the same for who lacks a right, where the shape depends on the request
    _helpers            whatever `handle` needs

What several APIs need is in `shared/`, what a handler may use of the node in `context.parts`
(`kwire/server/parts.py`). APIs that are only handed to the controller are in `forwarded.py`.
`kwire/server/dispatch.py` imports a module at the first request for its API.
"""
