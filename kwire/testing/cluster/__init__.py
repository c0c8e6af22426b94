"""Real brokers for tests: started as processes, killed, paused and started again.

    with Broker() as broker:                          # one broker, its data ends with its process
        client = SomeClient(broker.bootstrap)
        broker.kill(); broker.start()

    with Cluster() as cluster:                        # three nodes, broker and controller each
        cluster.start()
        cluster.bootstrap                             # "127.0.0.1:...,..."
        cluster[2].kill()
        wait_for(lambda: cluster.in_sync(["t"], without=[2]), "the others in sync")
        cluster[2].start(); cluster[2].wait_ready()

    with NodeInThread(tmp_path) as node:              # one node in this process
        node.bootstrap; node.node

What fails to start, or to stop, raises `NodeFailed` with the end of its log; an exception that
leaves a `with` block of a cluster carries the ends of all logs as a note. `logs()` gives those of
everything that runs, for whoever reports a failed test.
"""

from __future__ import annotations

from kwire.testing.cluster.broker import Broker
from kwire.testing.cluster.brokers_command import BrokersCommand
from kwire.testing.cluster.cluster import FAST_SETTINGS, Cluster
from kwire.testing.cluster.in_thread import NodeInThread
from kwire.testing.cluster.node import KwireNode, Node, Place
from kwire.testing.cluster.ports import free_adjacent_ports, free_ports
from kwire.testing.cluster.process import NodeFailed, ServeProcess, logs
from kwire.testing.cluster.waiting import NotInTime, wait_for

__all__ = [
    "FAST_SETTINGS",
    "Broker",
    "BrokersCommand",
    "Cluster",
    "KwireNode",
    "Node",
    "NodeFailed",
    "NodeInThread",
    "NotInTime",
    "Place",
    "ServeProcess",
    "free_adjacent_ports",
    "free_ports",
    "logs",
    "wait_for",
]
