"""Between clients and a cluster: addresses in replies lead back here."""
