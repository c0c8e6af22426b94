"""Administration: all of it by one value."""

from __future__ import annotations

from kwire.client.acls import Acls
from kwire.client.cluster import Cluster
from kwire.client.configs import Configs
from kwire.client.groups import Groups
from kwire.client.offsets import Offsets
from kwire.client.topics import Topics
from kwire.client.transactions import Transactions


class Admin:
    """The administration of one cluster, by what is administered."""

    def __init__(self, cluster: Cluster) -> None:
        self.topics = Topics(cluster)
        self.configs = Configs(cluster)
        self.acls = Acls(cluster)
        self.groups = Groups(cluster)
        self.offsets = Offsets(cluster)
        self.transactions = Transactions(cluster)
