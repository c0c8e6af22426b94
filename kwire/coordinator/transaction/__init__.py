"""The transaction coordinator: shards over `__transaction_state`, and the markers of an end."""
