"""Partitions as this node sees them: leader and follower state, and the manager that runs them."""
