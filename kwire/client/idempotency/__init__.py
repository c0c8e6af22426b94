"""Publishing with a key: what is sent again with the same key is kept once (ADR 47).

key_records.py   a record of `__kwire_idempotency_keys`: which key, which body, where it went
known_keys.py    what the records of one partition say, decided transactions only; pure
keeper.py        who decides about the keys of one partition, and when: a state machine; pure
reading.py       the batches of such a partition, with the ends of transactions
writing.py       the topic, the transaction of a group of posts, and taking its writer over
publisher.py     one principal's keys: keepers driven, answers handed out
"""
