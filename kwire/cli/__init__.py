"""The `kwire` command. `main.py` is all that `kwire serve` imports of it."""
