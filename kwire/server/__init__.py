"""Listeners, connections, dispatch, and the steps that every request passes."""
