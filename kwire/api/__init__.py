"""One file per API: versions and behaviour on top, then validate, authorise, act.

Each module has `VERSIONS` (lowest, highest) and `handle(context, request)`, which returns the
response, a `Pending` of it, or `context.NO_REPLY`. `kwire.server.dispatch` imports a module at the
first request for its API.
"""
