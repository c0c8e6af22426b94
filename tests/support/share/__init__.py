"""Share groups asked by tests: a member without a client library, and conversations."""
