"""How large a FetchResponse is, without encoding it: what a consumer's quota counts.

By version, as the protocol's schema of FetchResponse has it. Kafka's quotas count the size that
stands in front as well.
"""

from __future__ import annotations

ANSWER_BYTES = [0, 0, 0, 0, 12, 12, 12, 18, 18, 18, 18, 18, *7 * [16]]
"""Of a response without partitions."""
PARTITION_BYTES = [0, 0, 0, 0, 36, *6 * [44], 48, 40, *6 * [55]]
"""What each partition adds to its records: a topic each, without its name."""
ONE_PARTITION_BYTES = [sum(x) for x in zip(ANSWER_BYTES, PARTITION_BYTES, strict=True)]
"""Of a response with one partition, but for its records."""
