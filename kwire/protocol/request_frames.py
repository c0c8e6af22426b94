"""Where the fields of a request's header lie, for whoever reads a request by its bytes (ADR 55).

| offset | type            | field                                                 |
|--------|-----------------|-------------------------------------------------------|
| 0      | int16           | API key, below 256 for every API that there is        |
| 2      | int16           | API version                                           |
| 4      | int32           | correlation id; of an answer's frame too              |
| 8      | nullable string | client id: int16 size, -1 for none, then its bytes    |

The requests of a client differ in their correlation ids; from the client id on they may be the same
(`SAID`).
"""

from __future__ import annotations

API_KEY = 1
"""The byte that tells one API from another."""
CORRELATION_ID = slice(4, 8)
SAID_START = 8
"""Where the client id begins, and what a client may say again."""
SAID = slice(SAID_START, None)
_CLIENT_ID_START = 10


def client_id_end(body: memoryview) -> int:
    """Where the client id ends in a request that has a whole header."""
    size_bytes = int.from_bytes(body[SAID_START:_CLIENT_ID_START], "big", signed=True)
    return _CLIENT_ID_START + max(0, size_bytes)
