"""Ranges of addresses in ACLs: what cannot be read is said, never raised."""

from __future__ import annotations

import pytest

from kwire.security.acls.binding import AclBinding
from kwire.security.acls.hosts import AddressRange, literal_address, parse_range
from kwire.security.acls.index import AclIndex, faults
from tests.support.acls import acl

DIGITS = 5000
"""More than Python makes a number of."""


@pytest.mark.parametrize("prefix", ["1" * DIGITS, "-" + "1" * DIGITS, "0" * DIGITS + "2147483648"])
def test_a_prefix_length_of_thousands_of_digits_is_no_number(prefix: str) -> None:
    host = f"::1/{prefix}"
    assert parse_range(host) == f"Could not parse [{host}] - invalid prefix length"


def test_zeros_in_front_count_for_nothing() -> None:
    assert parse_range("2001:db8::/" + "0" * DIGITS + "32") == AddressRange(128, 32, 0x20010DB8)


def test_a_stored_acl_with_such_a_host_can_be_published() -> None:
    stored: AclBinding = acl("User:alice", 3)._replace(host="::1/" + "1" * DIGITS)
    index = AclIndex()
    assert index.apply({bytes(16): (None, stored)})
    assert faults(stored) == [f"host {stored.host!r}"]
    assert index.apply({bytes(16): (stored, None)})


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("127.1", "127.0.0.1"),
        ("1.2.3", "1.2.0.3"),
        ("2130706433", "127.0.0.1"),
        ("010.1.2.3", "10.1.2.3"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("[::1]", "0:0:0:0:0:0:0:1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("fe80::1%1", "fe80:0:0:0:0:0:0:1%1"),
        *((name, None) for name in (
            "", "localhost", "4294967296", "1.2.3.256", "1.2.3.4.5", "1..2", "1.2.3.", "0x7f.1",
            "-1", "10.1.2.3 ", "[10.1.2.3]", "[", "[]", "::1]", "::1%lo", "::1/128", "9" * DIGITS,
        )),
    ],
)  # fmt: skip
def test_what_java_reads_as_an_address(text: str, address: str | None) -> None:
    assert literal_address(text) == address


def test_a_range_may_have_its_address_in_brackets() -> None:
    assert parse_range("[2001:db8::]/32") == AddressRange(128, 32, 0x20010DB8)
    assert parse_range("[1.2.3.4]/8") == "Could not parse [[1.2.3.4]/8]"
