"""Mutants drawn by a seed, and which of them the tests and the simulation find; see run.py."""
