"""Faults on command: which requests they meet, what is done to them, and how an error looks.

Pure (ADR 40): rules and requests in, what is to be done out. `kinds.py` is the one list of faults.
"""
