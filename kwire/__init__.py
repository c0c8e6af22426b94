"""kwire: a Kafka broker in Python that speaks Kafka's protocol and keeps Kafka's files."""

__version__ = "0.1.0"
