"""One segment and its indexes, and the segments of a log in order."""
