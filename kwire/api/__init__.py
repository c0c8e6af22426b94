"""One file per API: versions and behaviour on top, then what it requires, then what it does.

Each module has `VERSIONS` (lowest, highest), `AUTHORIZATION` (`kwire/security/requirements.py`)
and `handle(context, request)`, which returns the response, a `Pending` of it, or
`context.NO_REPLY`. `kwire.server.dispatch` imports a module at the first request for its API.
"""
