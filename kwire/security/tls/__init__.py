"""TLS of listeners and of connections to other nodes: stores, contexts, who a certificate names."""
