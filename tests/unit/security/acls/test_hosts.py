"""Ranges of addresses in ACLs: what cannot be read is said, never raised."""

from __future__ import annotations

import pytest

from kwire.security.acls.binding import AclBinding
from kwire.security.acls.hosts import AddressRange, parse_range
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
