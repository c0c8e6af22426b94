"""A recorded trace sent to a cluster, and what it answers differently."""
