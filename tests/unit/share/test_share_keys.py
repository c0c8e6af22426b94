"""Keys of share coordinators: what is one, and what is not."""

from __future__ import annotations

import pytest

from kwire.protocol import uuids
from kwire.share.keys import SharePartitionKey, coordinator_key, parse_coordinator_key

ID = bytes(range(16))
TEXT = uuids.to_text(ID)


@pytest.mark.parametrize("group", ["g", "a:b", "a:b:c", " g", "g "])
def test_a_key_is_read_as_it_was_written(group: str) -> None:
    assert parse_coordinator_key(coordinator_key(group, ID, 3)) == SharePartitionKey(group, ID, 3)


@pytest.mark.parametrize(
    "key",
    ["", ":", "::", "g:0", f"g:{TEXT}", f":{TEXT}:0", f" :{TEXT}:0", f"g:{TEXT}:x", "g::0"]
    + [f"g:{TEXT}:2147483648", f"g:{TEXT} :0", "g:AAAA:0", f"g:{TEXT}:", f"g:{TEXT}:--1"],
)  # fmt: skip
def test_what_is_no_key(key: str) -> None:
    assert parse_coordinator_key(key) is None
