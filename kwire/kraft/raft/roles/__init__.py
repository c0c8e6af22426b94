"""One file per role: what it remembers, whether it grants a vote, what it does as time passes."""
