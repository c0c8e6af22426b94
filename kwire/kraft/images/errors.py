"""What the image refuses."""

from __future__ import annotations


class ImageError(ValueError):
    """A metadata record that cannot be applied: the log is damaged or of a newer Kafka.

    One line. A node that meets it must not go on (DESIGN.md, decision 11).
    """
