"""One request at a time to each node, with back-off after an error and a time-out."""

from __future__ import annotations

from dataclasses import dataclass

from kwire.clock import Random
from kwire.kraft.raft.messages import RaftRequest
from kwire.kraft.raft.types import Node, value


@dataclass(slots=True)
class _Connection:
    node: Node
    correlation: int | None = None
    sent_at_ms: int = 0
    backoff_until_ms: int = 0


@value
class Outstanding:
    """A request that was sent and not answered."""

    node: Node
    request: RaftRequest


class Requests:
    """What is on its way to whom. Times in milliseconds of the step's `now_ms`."""

    def __init__(
        self,
        bootstrap: tuple[Node, ...],
        random: Random,
        *,
        request_timeout_ms: int,
        retry_backoff_ms: int,
    ) -> None:
        self.bootstrap = bootstrap
        self._random = random
        self._timeout_ms = request_timeout_ms
        self._backoff_ms = retry_backoff_ms
        self._connections: dict[int, _Connection] = {}
        self._outstanding: dict[int, Outstanding] = {}
        self._next_correlation = 0

    def ready_at_ms(self, node: Node, now_ms: int) -> int:
        """When a request may go to the node: `now_ms` or before means now."""
        connection = self._connections.get(node.id)
        if connection is None or connection.node != node:
            return now_ms
        if connection.correlation is not None:
            return connection.sent_at_ms + self._timeout_ms
        return max(now_ms, connection.backoff_until_ms)

    def is_backing_off(self, node: Node, now_ms: int) -> bool:
        connection = self._connections.get(node.id)
        return (
            connection is not None
            and connection.correlation is None
            and connection.backoff_until_ms > now_ms
        )

    def has_timed_out(self, node: Node, now_ms: int) -> bool:
        connection = self._connections.get(node.id)
        return (
            connection is not None
            and connection.correlation is not None
            and now_ms >= connection.sent_at_ms + self._timeout_ms
        )

    def sent(self, node: Node, request: RaftRequest, now_ms: int) -> int:
        """Note a request that goes out; its correlation."""
        self.reset(node.id)
        self._next_correlation += 1
        correlation = self._next_correlation
        self._connections[node.id] = _Connection(node, correlation, now_ms)
        self._outstanding[correlation] = Outstanding(node, request)
        return correlation

    def answered(self, correlation: int) -> Outstanding | None:
        """The request that a response belongs to; None if nobody waits for it any more."""
        outstanding = self._outstanding.pop(correlation, None)
        if outstanding is not None:
            connection = self._connections[outstanding.node.id]
            connection.correlation = None
        return outstanding

    def back_off(self, node: Node, now_ms: int) -> None:
        """The request failed: nothing more to this node for a moment."""
        connection = self._connections.get(node.id)
        if connection is not None and connection.correlation is None:
            connection.backoff_until_ms = now_ms + self._backoff_ms

    def reset(self, node_id: int) -> None:
        """Forget the request to a node; its response will be ignored."""
        connection = self._connections.pop(node_id, None)
        if connection is not None and connection.correlation is not None:
            self._outstanding.pop(connection.correlation, None)

    def reset_all(self) -> None:
        self._connections.clear()
        self._outstanding.clear()

    def ready_to_ask(self, voters: tuple[Node, ...], now_ms: int) -> Node | None:
        """A bootstrap server or voter to ask next, chosen at random; None while any request is
        out."""
        for connection in self._connections.values():
            if (
                connection.correlation is not None
                and now_ms < connection.sent_at_ms + self._timeout_ms
            ):
                return None
        nodes = self._to_ask(voters)
        count = len(nodes)
        start = self._random.below(count) if count else 0
        for index in range(count):
            node = nodes[(start + index) % count]
            if self.ready_at_ms(node, now_ms) <= now_ms:
                return node
        return None

    def _to_ask(self, voters: tuple[Node, ...]) -> tuple[Node, ...]:
        """The bootstrap servers, and the voters that are none of them."""
        known = {(node.host, node.port) for node in self.bootstrap}
        return self.bootstrap + tuple(n for n in voters if (n.host, n.port) not in known)

    def ask_again_at_ms(self, voters: tuple[Node, ...], now_ms: int) -> int:
        """When it is worth while to look for somebody to ask again."""
        earliest = now_ms + self._timeout_ms
        for connection in self._connections.values():
            if connection.correlation is not None:
                earliest = min(earliest, connection.sent_at_ms + self._timeout_ms)
        for node in self._to_ask(voters):
            earliest = min(earliest, max(self.ready_at_ms(node, now_ms), now_ms))
        return max(earliest, now_ms + 1)
