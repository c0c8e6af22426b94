"""Formatting of log directories, as `kafka-storage format`."""
