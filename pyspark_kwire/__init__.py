"""Spark finds this module by its name: `format("kwire-segments")` needs no registration."""

from __future__ import annotations

from kwire.spark.segment_source import DefaultSource

__all__ = ["DefaultSource"]
