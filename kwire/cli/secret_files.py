"""Files that hold secrets."""

from __future__ import annotations

import os

SECURE_CLIENT = "kwire-client.properties"
"""In a data directory: settings of a client of the broker that `--secure` has made."""


def write_secret(path: str, content: bytes) -> None:
    """Write a file that its owner alone reads; whole, or not at all."""
    part = f"{path}.part"
    try:
        os.unlink(part)  # of an earlier try, or somebody else's who could read what is written
    except FileNotFoundError:
        pass
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    os.replace(part, path)
