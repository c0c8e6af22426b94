"""The log cleaner."""
