"""SASL, both sides, as pure state machines: bytes in, bytes out. Time and chance are arguments.

    states.py       the states of a server's connection and what leads from one to the next: a table
    server.py       one connection on the server's side: frames in, replies and an identity out
    mechanisms.py   what a mechanism is; plain.py, scram.py are mechanisms
    jaas.py         JAAS text, in which Kafka's settings name users and passwords
    settings.py     what a listener's settings say about all of this

Sockets, delays and the closing of connections are `kwire/server/sasl_connection.py`'s.
"""
