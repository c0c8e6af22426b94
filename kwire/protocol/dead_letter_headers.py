"""The headers of a dead letter of a share group (KIP-1191). Measured on Apache Kafka 4.4.

__dlq.errors.topic           the topic of the record that was given up
__dlq.errors.partition       its partition, digits
__dlq.errors.offset          its offset, digits
__dlq.errors.group           the share group
__dlq.errors.delivery.count  how often it was delivered, digits
__dlq.errors.message         why it was given up
"""

from __future__ import annotations

TOPIC = "__dlq.errors.topic"
PARTITION = "__dlq.errors.partition"
OFFSET = "__dlq.errors.offset"
GROUP = "__dlq.errors.group"
DELIVERY_COUNT = "__dlq.errors.delivery.count"
MESSAGE = "__dlq.errors.message"
