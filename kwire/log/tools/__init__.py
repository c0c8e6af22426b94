"""Looking at the files of a data directory without a broker."""
