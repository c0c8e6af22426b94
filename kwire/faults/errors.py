"""What is wrong about a fault that somebody asks for."""

from __future__ import annotations


class FaultError(ValueError):
    """A fault, selector or option that cannot be right: one line that names it and what is
    accepted."""
