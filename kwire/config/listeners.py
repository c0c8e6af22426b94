"""Listeners: names, addresses and protocols out of `listeners` and its relatives.

Rules and wording as Kafka's (`NAME://host:port`, an empty host is every interface, names are
upper-cased, ports and names are unique). An advertised address may not be a wildcard; one without
a host, and without `advertised.listeners` a listener on every interface, is this host's name.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import NamedTuple

from kwire.config.checks import is_number, split_host_port
from kwire.config.errors import ConfigError

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
WITH_TLS = ("SSL", "SASL_SSL")
WITH_SASL = ("SASL_PLAINTEXT", "SASL_SSL")
CLIENT_PROTOCOL = "security.protocol"
"""The setting of a client that names one of them."""


def is_loopback(host: str) -> bool:
    """Whether a name or address is this machine's alone. A name that only begins like an address,
    as 127.0.0.1.example, is anybody's."""
    if host in LOCAL_HOSTS:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Listener(NamedTuple):
    """One listener: its name, security protocol, host ("" is every interface) and port."""

    name: str
    protocol: str
    host: str
    port: int

    @property
    def has_sasl(self) -> bool:
        """Whether clients authenticate by SASL."""
        return self.protocol in WITH_SASL

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def is_wildcard(host: str) -> bool:
    """Whether a host means every interface: none, 0.0.0.0, or :: in any of its spellings."""
    return host in ("", "0.0.0.0") or (":" in host and not host.strip("0:"))


def parse_protocol_map(text: str) -> dict[str, str]:
    """`NAME:PROTOCOL,...` -> mapping, the last of a name counts; ConfigError for anything else."""
    result: dict[str, str] = {}
    setting = "listener.security.protocol.map"
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = entry.rpartition(":")
        name = name.strip().upper()
        if not colon or not name or protocol.strip().upper() not in PROTOCOLS:
            raise ConfigError(
                f"Invalid value {entry} for configuration {setting}: "
                f"expected NAME:PROTOCOL with PROTOCOL one of {', '.join(PROTOCOLS)}"
            )
        result[name] = protocol.strip().upper()
    return result


def parse_listeners(setting: str, entries: list[str], protocols: dict[str, str]) -> list[Listener]:
    """The listeners of a `listeners` or `advertised.listeners` value; ConfigError if malformed."""
    result: list[Listener] = []
    for entry in entries:
        result.append(_parse_listener(setting, entry, protocols))
    names = [listener.name for listener in result]
    if len(dict.fromkeys(names)) != len(names):
        raise ConfigError(
            f"Invalid value {','.join(entries)} for configuration {setting}: "
            "Each listener must have a different name"
        )
    return result


def _parse_listener(setting: str, entry: str, protocols: dict[str, str]) -> Listener:
    name, separator, address = entry.partition("://")
    host, colon, port_text = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        separator = ""
    if not (separator and colon and is_number(port_text)):
        raise ConfigError(
            f"Invalid value {entry} for configuration {setting}: "
            "expected NAME://HOST:PORT, such as PLAINTEXT://localhost:9092"
        )
    port = int(port_text)
    if port > 65535:
        raise ConfigError(
            f"Invalid value {entry} for configuration {setting}: port out of range: {port}"
        )
    name = name.strip().upper()
    protocol = protocols.get(name)
    if protocol is None:
        raise ConfigError(
            f"Invalid value {entry} for configuration {setting}: no security protocol for "
            f"listener {name} in listener.security.protocol.map"
        )
    return Listener(name, protocol, host, port)


def check_ports(listeners: list[Listener]) -> None:
    """One listener a port, except one on an IPv4 and one on an IPv6 address; 0 is any port."""
    by_port: dict[int, list[Listener]] = {}
    for listener in listeners:
        if listener.port != 0:
            by_port.setdefault(listener.port, []).append(listener)
    for sharing in by_port.values():
        if len(sharing) == 1:
            continue
        families = [":" in listener.host for listener in sharing]
        if len(sharing) > 2 or families[0] == families[1]:
            raise ConfigError(
                f"Invalid value {','.join(map(str, listeners))} for configuration listeners: "
                "Each listener must have a different port unless exactly one has an IPv4 and "
                "the other an IPv6 address"
            )


def is_at(listener: Listener, server: str) -> bool:
    """Whether `server` (host:port) is certainly this listener: its own host, or this machine's."""
    address = split_host_port(server)
    if address is None or address[1] != listener.port:
        return False
    host = address[0]
    if is_wildcard(listener.host) or listener.host in LOCAL_HOSTS:
        return host in LOCAL_HOSTS
    return host == listener.host


def default_advertised(listeners: list[Listener], host_name: Callable[[], str]) -> list[Listener]:
    """What is advertised when nothing says so: the listener, or this host's name for all."""
    return [
        listener._replace(host=host_name()) if is_wildcard(listener.host) else listener
        for listener in listeners
    ]


def with_hosts(listeners: list[Listener], host_name: Callable[[], str]) -> list[Listener]:
    """This host's name where a listener names none."""
    return [
        listener if listener.host else listener._replace(host=host_name()) for listener in listeners
    ]


def shares_port(listener: Listener, listeners: list[Listener]) -> bool:
    """Whether another one has its port: each is then of one family, see `check_ports`."""
    return listener.port != 0 and any(
        other.port == listener.port and other.name != listener.name for other in listeners
    )
