"""Usual small requests, answered from their bytes (`kwire/server/plain_requests.py`, ADR 55)."""
