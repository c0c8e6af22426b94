"""Requests that the active controller answers, one file per area; `routes.py` says which."""
