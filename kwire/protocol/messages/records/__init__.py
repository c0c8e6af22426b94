"""What lives inside records, a module per module of Kafka."""
