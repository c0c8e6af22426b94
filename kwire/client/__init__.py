"""A typed asyncio client of a Kafka cluster, kwire's or another, on kwire's own protocol package.

errors.py        what goes wrong, one line each
address.py       host:port as people write it
settings.py      how to connect: addresses, times, TLS, a login
properties.py    the same out of Kafka's client properties
strangers.py     who answers at an address that is no broker's
connection.py    one connection: versions, login, requests and their answers
cluster.py       connections by node; metadata, leaders and coordinators, found anew when they move
retries.py       when to ask again, and how long to wait
producer.py      records in, each once: batches by partition, acknowledged by all
shared_producer.py   the same for many who send at once
fetching.py      records out: where to read, what an application sees of it
offsets.py       offsets of partitions and of groups, lag
heartbeats.py    a member of a group whose coordinator assigns: joining, heartbeats, leaving
membership.py    such a member of a consumer group (KIP-848): what it is assigned
classic_membership.py, assignors.py   a member of a classic group, and how its leader assigns
consumer.py      membership, fetching and commits together
share_membership.py, share_session.py, share_consumer.py    the same for a share group: a queue
topics.py, configs.py, acls.py, groups.py, transactions.py    administration; admin.py has all of it

It uses the loop's own interface only, and runs on the simulated loop too. The command line uses it
by `kwire/cli/client.py`, which waits for each answer.
"""
