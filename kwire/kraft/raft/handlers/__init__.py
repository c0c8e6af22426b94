"""One file per group of requests: what is answered, and what our own one's response does."""
