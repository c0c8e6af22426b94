"""Partition logs in Kafka's files: the only package that touches them (DESIGN.md, decision 1)."""
