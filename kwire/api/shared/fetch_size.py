"""How large a FetchResponse is, without encoding it: what a consumer's quota counts.

By version, as the protocol's schema of FetchResponse has it. Kafka's quotas count the size that
stands in front as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from kwire.replica.reading import ReadResult

ANSWER_BYTES = [0, 0, 0, 0, 12, 12, 12, 18, 18, 18, 18, 18, *7 * [16]]
"""Of a response without partitions."""
PARTITION_BYTES = [0, 0, 0, 0, 36, *6 * [44], 48, 40, *6 * [55]]
"""What each partition adds to its records: a topic each, without its name."""
ONE_PARTITION_BYTES = [sum(x) for x in zip(ANSWER_BYTES, PARTITION_BYTES, strict=True)]
"""Of a response with one partition, but for its records."""


def response_bytes_of(
    version: int, results: Sequence[ReadResult], refused: int, *, is_full: bool
) -> int:
    """How large the answer will be, but for names and transactions that were aborted. A partition
    without records counts in a full answer alone."""
    response_bytes, found = ANSWER_BYTES[version], refused
    for result in results:
        size_bytes = result.size_bytes
        response_bytes += size_bytes
        found += is_full or size_bytes > 0
    return response_bytes + PARTITION_BYTES[version] * found
