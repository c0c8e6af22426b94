"""Why directories are not formatted."""

from __future__ import annotations


class FormatError(ValueError):
    """The directories cannot be formatted as asked; one line."""


class FeatureError(FormatError):
    """A feature or a level that there is not: the command line is wrong."""
