"""ACLs: what one says, which fit a filter, what they allow together.

binding.py              one ACL, its numbers, filters
hosts.py                addresses and ranges of addresses
index.py                all ACLs of a cluster, so that few are looked at for a decision
standard_authorizer.py  Kafka's StandardAuthorizer
explanation.py          which rule decides
text.py                 ACLs as people write and read them
"""
