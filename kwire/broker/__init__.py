"""The broker half of a node: connections, dispatch, waiting requests, API handlers, composition."""
