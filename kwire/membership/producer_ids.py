"""Producer ids of this broker, from blocks that the controller hands out (KIP-730)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from kwire.membership.asking import AskController
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError


class ProducerIds:
    """Hands out producer ids, each once, asking for a block when the last one is used up.

    Ids of a block that was not used up when the broker stopped are never used.
    """

    def __init__(self, broker_id: int, broker_epoch: Callable[[], int], ask: AskController) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._ask = ask
        self._next = 0
        self._end = 0
        self._waiting: deque[Pending[int]] = deque()
        self._asking = False

    def take(self) -> Pending[int]:
        """The next id. Fails with COORDINATOR_LOAD_IN_PROGRESS (retriable) when no block comes."""
        if self._next < self._end:
            self._next += 1
            return Pending.completed(self._next - 1)
        pending: Pending[int] = Pending()
        self._waiting.append(pending)
        if not self._asking:
            self._ask_for_block()
        return pending

    def _ask_for_block(self) -> None:
        self._asking = True
        request = m.AllocateProducerIdsRequest(
            broker_id=self._broker_id, broker_epoch=self._broker_epoch()
        )
        self._ask(int(ApiKey.ALLOCATE_PRODUCER_IDS), request).add_done_callback(self._answered)

    def _answered(self, pending: Pending[m.AllocateProducerIdsResponse]) -> None:
        self._asking = False
        if pending.error() is not None or pending.result().error_code != 0:
            waiting, self._waiting = self._waiting, deque()
            for waiter in waiting:
                waiter.fail(KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
            return
        block = pending.result()
        self._next = block.producer_id_start
        self._end = block.producer_id_start + block.producer_id_len
        while self._waiting and self._next < self._end:
            self._next += 1
            self._waiting.popleft().complete(self._next - 1)
        if self._waiting:
            self._ask_for_block()
