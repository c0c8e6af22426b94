"""Client quotas: what a client may use of a node, and how long it waits for more.

Pure: time comes as an argument. The arithmetic is that of Apache Kafka 4.4, so that a client is
made to wait as long here as there.

    windows         rates over sliding windows and token buckets
    entities        whom a quota is for, and which of several counts
    sensor          one client's rate against its bound
    client_quotas   all quotas of a node: what is set, and the sensors of its clients
"""
