"""Topics made through a real client."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kwire.testing.cluster import wait_for

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

CREATE_TIMEOUT_S = 30


def create_topics(client: AdminClient, topics: Mapping[str, int], replicas: int = 3) -> None:
    """Create topics (name -> partitions) with an AdminClient of confluent-kafka, until they are.

    Right after its start librdkafka may fail a request because it drops the connection to the
    address that it began with (_DESTROY_BROKER): nobody knows then whether the request arrived.
    """
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import NewTopic

    def is_created(topic: str, partitions: int) -> bool:
        wanted = NewTopic(topic, partitions, replicas)
        try:
            client.create_topics([wanted])[topic].result(CREATE_TIMEOUT_S)
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.TOPIC_ALREADY_EXISTS:
                return True
            if code == KafkaError._DESTROY_BROKER:
                return False
            raise
        return True

    for topic, partitions in topics.items():
        wait_for(functools.partial(is_created, topic, partitions), f"topic {topic}")
