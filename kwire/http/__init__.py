"""HTTP: what a browser, a monitoring system or a program without a Kafka client asks.

settings.py            the listeners of `http.listeners`, and what each serves
control.py             the frames between a broker and its HTTP process
questions.py, link.py  the broker's side of them: what only the broker knows, answered in slices
side.py                the broker's sockets, and the life of the one process that serves them
child.py               that process (`python -m kwire.http.child`); local.py: its side of the frames
parent.py              a process that ends with its parent
schema_reader.py       the process that reads large schemas, for the registry and at publish
schema_process.py      that process as whoever asks it sees it
callers.py, logins.py  who asks, as the broker knows them; how they log in there
tls.py                 TLS out of the broker's settings; tls_listener.py: a socket with it
server.py, app.py      its connections and their limits; what every request passes
purposes/              what is served, one file a purpose

A broker only listens: the first connection starts the process (ADR 29). What is imported by a
broker is settings, control, questions, link, side and schema_process; nothing of it imports a
library for HTTP.
"""
