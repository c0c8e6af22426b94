"""Dead letters of share groups: what they are, and their originals sent once more."""
