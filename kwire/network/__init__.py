"""Framing in both directions, and requests to other nodes. See `connection.py` and `peer.py`."""
