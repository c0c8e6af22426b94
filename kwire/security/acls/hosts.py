"""Addresses of clients and ranges of addresses in ACLs (CIDR notation, from 4.4-IV1).

An address in an ACL is compared as text with the client's, as Java writes it: an IPv6 address with
all of its eight groups (`0:0:0:0:0:0:0:1`), and one that stands for an IPv4 address as that one.
Measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import NamedTuple

RANGE_MARK = "/"


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


def address_number(text: str) -> tuple[int, int] | None:
    """(32 or 128, the address as a number); None for what is no address."""
    import ipaddress

    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return address.max_prefixlen, int(address)


def parse_range(host: str) -> AddressRange | str:
    """The range of `10.0.0.0/8`, or what is wrong with it, in Kafka's words."""
    address, _, prefix = host.partition(RANGE_MARK)
    number = address_number(address)
    if number is None or not prefix.isdecimal() or not prefix.isascii():
        return f"Could not parse [{host}]"
    bits, value = number
    length = int(prefix)
    if not 0 <= length <= bits:
        return f"Value [{length}] not in range [0,{bits}]"
    return AddressRange(bits, length, value >> bits - length)
