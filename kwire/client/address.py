"""`host:port` as people write it."""

from __future__ import annotations

from kwire.client.errors import ClientError

DEFAULT_PORT = 9092
PORT_MAX = 65535
PORT_DIGITS_MAX = 5


def parse_address(text: str) -> tuple[str, int]:
    """`host:port`, `[::1]:port` or `host` (port 9092); ClientError."""
    host, colon, port = text.strip().rpartition(":")
    if not colon:
        if port.isascii() and port.isdecimal():
            raise ClientError(f"{text}: expected HOST:PORT; did you mean localhost:{port}?")
        return text.strip(), DEFAULT_PORT
    is_number = port.isascii() and port.isdecimal() and len(port) <= PORT_DIGITS_MAX
    if not (host and is_number and int(port) <= PORT_MAX):
        raise ClientError(f"{text}: expected HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


def parse_addresses(text: str) -> list[tuple[str, int]]:
    """`host:port[,host:port]`; ClientError, also where there is none."""
    found = [parse_address(part) for part in text.split(",") if part.strip()]
    if not found:
        raise ClientError("no bootstrap address")
    return found


def shown(host: str, port: int) -> str:
    """As it is written in messages."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
