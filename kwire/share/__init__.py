"""Share groups (KIP-932) at the leader of a partition: their state and who keeps it. Pure."""
