"""What `make test` and `make compat-gate` run: groups of tests, shared brokers, the summary."""
