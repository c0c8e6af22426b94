"""The wire format: messages, headers, errors, API keys, record batches. No I/O, no clock."""
