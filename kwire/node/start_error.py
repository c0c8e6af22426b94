"""Why a node does not start."""

from __future__ import annotations


class StartError(Exception):
    """The node cannot start; one line for the user."""
