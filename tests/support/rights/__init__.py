"""What every API answers to who may do nothing, one thing, some things or everything.

users.py                 who there is, and what each may do
world.py                 what an administrator makes before anybody asks
data_requests.py         requests about topics, records, groups and transactions
admin_requests.py        requests that administer topics, groups, brokers and rights
later_requests.py        requests of share groups and streams groups
changes.py               rights that change under a client
controller_requests.py   what only a controller is asked
playing.py               asks a broker all of it for all users, and compares
"""
