"""The composition root: one node of its parts."""
