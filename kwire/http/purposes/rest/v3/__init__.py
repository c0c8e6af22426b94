"""Confluent's REST API v3, as its public OpenAPI document has it, under `/v3` and `/kafka/v3`.

shapes.py    the data, each with its kind, its links and its Kafka resource name
links.py     where things are: URLs below the address that was asked, and resource names
failures.py  Kafka's errors with that API's codes (40403, 40002, 40301, ...)
clusters.py, topics.py, configs.py, records.py, groups.py, acls.py    the calls

Source: `api/v3/openapi.yaml` of confluentinc/kafka-rest. There is one cluster, the broker's own.
"""
