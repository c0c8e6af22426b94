"""Client telemetry (KIP-714): which metrics are asked of which client, and what clients send.

subscriptions.py   subscriptions out of the configs; which of them are for a client
instances.py       client instances: who may ask and send when
kept_pushes.py     what was sent, until the HTTP process has read it
otlp.py            the metrics in what was sent
series.py          what the HTTP process shows of them
"""
