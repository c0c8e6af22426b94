"""Addresses of clients and ranges of addresses in ACLs (CIDR notation, from 4.4-IV1).

An address in an ACL is compared as text with the client's, as Java writes it: an IPv6 address with
all of its eight groups (`0:0:0:0:0:0:0:1`), and one that stands for an IPv4 address as that one.
Measured on Apache Kafka 4.4.
"""

from __future__ import annotations

import re
from typing import NamedTuple

RANGE_MARK = "/"
OCTET_MAX = 255
INT_MAX = 2**31 - 1
IPV4_LENGTH_MAX = len("255.255.255.255")
INT_DIGITS = len(str(INT_MAX))
IPV4_MAPPED = 0xFFFF
DECIMAL = re.compile(r"[0-9]+").fullmatch


class AddressRange(NamedTuple):
    """The addresses of `bits` bits (32, 128) whose first `length` bits are `network`."""

    bits: int
    length: int
    network: int


def address_text(client_host: str) -> str:
    """`/::1` of a connection as it stands in ACLs: `0:0:0:0:0:0:0:1`."""
    text = client_host.removeprefix("/")
    if ":" not in text:
        return text
    import ipaddress

    try:
        address = ipaddress.IPv6Address(text.partition("%")[0])
    except ValueError:
        return text
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    number = int(address)
    groups = [f"{number >> shift & 0xFFFF:x}" for shift in range(112, -16, -16)]
    return ":".join(groups) + "".join(text.partition("%")[1:])


def literal_address(text: str) -> str | None:
    """What Java reads as an address without asking anybody, as it writes it; None for a name.

    One to four decimal numbers, of which the last fills what the others leave (`127.1`), or an IPv6
    address, also in brackets; its zone is a number, for a name would have to be looked up.
    """
    inner = _without_brackets(text)
    if ":" not in inner:
        number = _ipv4_number(inner)
        if number is None:
            return None
        return ".".join(str(number >> shift & OCTET_MAX) for shift in (24, 16, 8, 0))
    address, mark, zone = inner.partition("%")
    if (mark and not DECIMAL(zone)) or _ipv6_number(address) is None:
        return None
    return address_text(inner)


def _without_brackets(text: str) -> str:
    is_bracketed = text.startswith("[") and text.endswith("]") and ":" in text
    return text[1:-1] if is_bracketed else text


def _ipv4_number(text: str) -> int | None:
    parts = text.split(".")
    if len(parts) > 4 or len(text) > IPV4_LENGTH_MAX or not all(map(DECIMAL, parts)):
        return None
    *first, last = map(int, parts)
    if any(part > OCTET_MAX for part in first) or last >= 1 << 8 * (4 - len(first)):
        return None
    return sum(part << 24 - 8 * at for at, part in enumerate(first)) + last


def address_number(text: str) -> tuple[int, int] | None:
    """(32 or 128, the address as a number); None for what is no address."""
    if ":" not in text:
        octets = _octets(text)
        if octets is None or max(octets) > OCTET_MAX:
            return None
        return 32, int.from_bytes(bytes(octets), "big")
    number = _ipv6_number(text)
    return None if number is None else (128, number)


def parse_range(host: str) -> AddressRange | str:
    """The range of `10.0.0.0/8`, or what is wrong with it, in Kafka's words."""
    if ":" in host:
        return _ipv6_range(host)
    address, _, prefix = host.partition(RANGE_MARK)
    octets = _octets(address)
    if octets is None or not DECIMAL(prefix) or len(prefix) > 2:
        return f"Could not parse [{host}]"
    length = int(prefix)
    for value, largest in (*((octet, OCTET_MAX) for octet in octets), (length, 32)):
        if value > largest:
            return f"Value [{value}] not in range [0,{largest}]"
    return AddressRange(32, length, int.from_bytes(bytes(octets), "big") >> 32 - length)


def _ipv6_range(host: str) -> AddressRange | str:
    address, _, prefix = host.partition(RANGE_MARK)
    sign = prefix[:1] if prefix[:1] in ("+", "-") else ""
    digits = prefix.removeprefix(sign)
    if not DECIMAL(digits):
        return f"Could not parse [{host}] - invalid prefix length"
    digits = digits.lstrip("0") or "0"
    if len(digits) > INT_DIGITS or int(digits) > INT_MAX:  # Python refuses thousands of digits
        return f"Could not parse [{host}] - invalid prefix length"
    length = int(sign + digits)
    if not 0 <= length <= 128:
        return f"Could not parse [{host}] - prefix length must be between 0 and 128"
    number = _ipv6_number(_without_brackets(address))
    if number is None:
        return f"Could not parse [{address}]"
    if number >> 32 == IPV4_MAPPED:
        return f"Could not parse [{address}] - not an IPv6 address"
    return AddressRange(128, length, number >> 128 - length)


def _octets(text: str) -> list[int] | None:
    """Four numbers of at most three digits; also those that are too large."""
    parts = text.split(".")
    if len(parts) != 4 or not all(DECIMAL(part) and len(part) <= 3 for part in parts):
        return None
    return [int(part) for part in parts]


def _ipv6_number(text: str) -> int | None:
    import ipaddress

    try:
        return int(ipaddress.IPv6Address(text.partition("%")[0]))
    except ValueError:
        return None
