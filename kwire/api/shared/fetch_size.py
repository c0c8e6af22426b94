"""How large a FetchResponse is, without encoding it: what a consumer's quota counts."""

from __future__ import annotations

from kwire.protocol import messages as m

SIZE_PREFIX_BYTES = 4


SIZES: dict[int, tuple[int, int]] = {}
"""What `sizes_without_records` has found, by version."""


def sizes_without_records(version: int) -> tuple[int, int]:
    """(bytes of a response without partitions, bytes that each partition adds to its records).

    A topic each, without its name. Kafka's quotas count the size that stands in front as well.
    """
    topic = m.FetchResponse.FetchableTopicResponse
    partition = m.FetchResponse.PartitionData(records=b"", aborted_transactions=None)
    one = m.FetchResponse(responses=[topic(partitions=[partition])])
    empty_bytes = len(m.FetchResponse().encode(version))
    found = SIZES[version] = SIZE_PREFIX_BYTES + empty_bytes, len(one.encode(version)) - empty_bytes
    return found
