"""What a consumer's quota takes a response to be large, beside what the encoder makes of it."""

from __future__ import annotations

import pytest

from kwire.api.fetch import VERSIONS
from kwire.api.shared.fetch_size import ANSWER_BYTES, ONE_PARTITION_BYTES, PARTITION_BYTES
from kwire.protocol import messages as m

SIZE_PREFIX_BYTES = 4
FIRST, LAST = VERSIONS


@pytest.mark.parametrize("version", range(FIRST, LAST + 1))
def test_a_response_is_as_large_as_it_is_taken_to_be(version: int) -> None:
    topic = m.FetchResponse.FetchableTopicResponse
    partition = m.FetchResponse.PartitionData(records=b"", aborted_transactions=None)
    topics = [topic(partitions=[partition]) for _ in range(3)]
    sizes = [
        SIZE_PREFIX_BYTES + len(m.FetchResponse(responses=topics[:count]).encode(version))
        for count in range(4)
    ]
    each = PARTITION_BYTES[version]
    assert sizes == [ANSWER_BYTES[version] + count * each for count in range(4)]
    assert ONE_PARTITION_BYTES[version] == sizes[1]


def test_there_is_a_size_for_every_version() -> None:
    assert len(ANSWER_BYTES) == len(PARTITION_BYTES) == LAST + 1
