"""How large a FetchResponse is, without encoding it: what a consumer's quota counts."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from kwire.protocol import messages as m

SIZE_PREFIX_BYTES = 4


def response_bytes(version: int, records_bytes: Sequence[int]) -> int:
    """The size of a response with partitions of so many bytes of records each, one a topic.

    It is that of Apache Kafka 4.4 but for the names of topics, transactions that were aborted and
    sizes that take more than one byte.
    """
    empty, each = _constants(version)
    return SIZE_PREFIX_BYTES + empty + len(records_bytes) * each + sum(records_bytes)


@functools.cache
def _constants(version: int) -> tuple[int, int]:
    """(a response without topics, a topic with one partition)."""
    topic = m.FetchResponse.FetchableTopicResponse
    partition = m.FetchResponse.PartitionData(records=b"", aborted_transactions=None)
    one = m.FetchResponse(responses=[topic(partitions=[partition])])
    empty_bytes = len(m.FetchResponse().encode(version))
    return empty_bytes, len(one.encode(version)) - empty_bytes
