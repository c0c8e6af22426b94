"""Snapshots of the metadata log: their content and files, when one is due, and who takes it."""
