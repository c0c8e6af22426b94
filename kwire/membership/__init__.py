"""A broker in its cluster: registration, heartbeats, what it asks and tells the controller."""
