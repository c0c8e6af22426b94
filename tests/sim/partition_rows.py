"""Rows of events (see constructed.py) of one partition: who leads, who is in sync, who is cut off.

Each row makes a topic of its own, with its replicas in an order that it chooses (elections go by
that order), and writes to it itself. The names a, b, c in the rows are replicas in that order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from tests.sim.checkers import UNCLEAN
from tests.sim.client import Retry
from tests.sim.cluster import BROKER_PORT, CONTROLLER_PORT, IDS
from tests.sim.constructed import LATENCY_S, NotThere, Row, run_row
from tests.sim.offsets import NOTHING, OffsetLedger
from tests.sim.workload import Actor

if TYPE_CHECKING:
    from tests.sim.faults import Faults

QUICK_ISR = {"replica.lag.time.max.ms": "1000", "broker.session.timeout.ms": "9000"}
"""A replica is out of the ISR long before its broker is fenced."""
QUICK_FENCES = {"replica.lag.time.max.ms": "1000", "broker.session.timeout.ms": "2000"}
GROUP = "row-group"
OPERATOR = "operator of the row"
SOON_S = 1.0


class Scene:
    """One partition on nodes a, b, c, and its writer."""

    def __init__(self, row: Row, replicas: tuple[int, ...], prefix: str = "row") -> None:
        self.row = row
        self.faults, self.cluster = row.faults, row.cluster
        self.replicas = replicas
        number = self.faults.counts[SCENES] = self.faults.counts.get(SCENES, 0) + 1
        self.topic = f"{prefix}-{number}"
        self.writer = row.actor(f"writer-{number}")
        self.sent = 0

    # -- what there is

    def image(self, node_id: int) -> Any:
        """The partition in a node's eyes, None where it is not known."""
        node = self.cluster.nodes.get(node_id)
        topic = None if node is None else node.image.topics.by_name.get(self.topic)
        return None if topic is None else topic.partitions.get(0)

    def partition(self, node_id: int) -> Any:
        node = self.cluster.nodes.get(node_id)
        return None if node is None else node.replicas.partition(self.topic, 0)

    def end(self, node_id: int) -> int:
        partition = self.partition(node_id)
        return -1 if partition is None else int(partition.log.log_end_offset)

    def isr_at(self, node_id: int, *isr: int) -> Callable[[], bool]:
        """Whether a node knows of that ISR."""

        def is_so() -> bool:
            image = self.image(node_id)
            return image is not None and sorted(image.isr) == sorted(isr)

        return is_so

    def leads(self, node_id: int) -> bool:
        partition = self.partition(node_id)
        return partition is not None and partition.is_leader

    # -- what is done

    async def begin(self, configs: dict[str, str] | None = None) -> None:
        """The topic is there, in sync, led by its first replica, and has a record."""
        request = m.CreateTopicsRequest
        topic = request.CreatableTopic(
            name=self.topic,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                request.CreatableReplicaAssignment(
                    partition_index=0, broker_ids=list(self.replicas)
                )
            ],
            configs=[
                request.CreatableTopicConfig(name=key, value=value)
                for key, value in (configs or {}).items()
            ],
        )
        client = self.writer.client
        while True:
            try:
                answer = await client.ask(
                    client.any_broker(), request(topics=[topic], timeout_ms=3000), 7, 5.0
                )
                if answer.topics[0].error_code in (0, ErrorCode.TOPIC_ALREADY_EXISTS):
                    break
            except Retry:
                pass
            await client.pause()
        first = self.replicas[0]
        await self.row.until(lambda: self.leads(first) and all(self.isr_at(i, *IDS)() for i in IDS))
        await self.write(first)

    def batch_of(self, count: int, **options: Any) -> tuple[bytes, list[bytes]]:
        """The next records; written or not, their numbers are gone."""
        values = [
            b"%s:%d:%s" % (self.writer.name.encode(), self.sent + i, b"z" * 20)
            for i in range(count)
        ]
        self.sent += count
        return self.writer.batch(values, **options), values

    async def send(self, node_id: int, records: bytes, acks: int, timeout_s: float = 3.0) -> Any:
        """One attempt at that node; (error code, base offset), or Retry."""
        request = self.writer._request(self.topic, 0, records)
        request.acks = acks
        answer = await self.writer.client.ask((f"n{node_id}", BROKER_PORT), request, 9, timeout_s)
        partition = answer.responses[0].partition_responses[0]
        return int(partition.error_code), int(partition.base_offset)

    async def write(self, node_id: int, count: int = 1) -> None:
        """Records that are acknowledged by acks=all."""
        records, values = self.batch_of(count)
        try:
            code, base = await self.send(node_id, records, -1)
        except Retry:
            raise NotThere from None
        if code:
            raise NotThere
        if not self.topic.startswith(UNCLEAN):
            self.writer.acknowledged(self.topic, 0, base, values)

    async def append(self, node_id: int, count: int = 1) -> None:
        """Records that a leader has, and perhaps nobody else."""
        for _ in range(5):
            try:
                if (await self.send(node_id, self.batch_of(count)[0], 1))[0] == 0:
                    return
            except Retry:
                pass
            await self.writer.client.pause()
        raise NotThere

    async def append_until(self, node_id: int, condition: Callable[[], bool]) -> None:
        """Whoever does not get them is out of sync in the end."""
        for _ in range(40):
            if condition():
                return
            await self.append(node_id)
            await asyncio.sleep(0.2)
        raise NotThere

    async def lead(self, node_id: int) -> None:
        """Its first replica leads again."""
        request = m.ElectLeadersRequest
        message = request(
            election_type=0,
            topic_partitions=[request.TopicPartitions(topic=self.topic, partitions=[0])],
            timeout_ms=3000,
        )
        for _ in range(20):
            if self.leads(node_id):
                return
            try:
                await self.writer.client.ask(self.writer.client.any_broker(), message, 2)
            except Retry:
                pass
            await asyncio.sleep(0.2)
        raise NotThere

    def cut(self, one: int, other: int) -> None:
        self.row.cut(one, other, BROKER_PORT)

    def join(self, one: int, other: int) -> None:
        self.row.join(one, other, BROKER_PORT)


SCENES = "partitions of rows"


def _controller(row: Row) -> int:
    node = row.cluster.active_controller()
    if node is None:
        raise NotThere
    return int(node.broker_id)


def _others(*node_ids: int) -> list[int]:
    return [node_id for node_id in IDS if node_id not in node_ids]


async def _isr_answer_lost(row: Row) -> None:
    """The controller lets a replica in, its leader does not hear so, and the replica gets nothing
    any more: what the leader commits it must have all the same."""
    controller = _controller(row)
    a, other = _others(controller)
    scene = Scene(row, (a, controller, other))
    await scene.begin()
    scene.cut(a, other)
    await scene.append_until(a, scene.isr_at(controller, a, controller))
    await row.until(lambda: len(scene.partition(a).state.isr) == 2)
    row.faults.network.block(f"n{controller}", f"n{a}", CONTROLLER_PORT)
    scene.join(a, other)
    await row.until(scene.isr_at(controller, *IDS))
    scene.cut(a, other)
    if other in scene.partition(a).state.isr:
        raise NotThere
    for _ in range(12):
        await scene.append(a)
        await asyncio.sleep(0.2)


async def _offset_that_nobody_has(row: Row) -> None:
    """The coordinator of a group is cut off, has a commit that nobody else gets, is asked for the
    offset, and is replaced."""
    faults, cluster = row.faults, row.cluster
    asker, committer = row.actor(OPERATOR), row.actor(OPERATOR)
    ledger = row.faults.ledgers.setdefault(GROUP, OffsetLedger(f"{GROUP}/plain-0"))
    tenure = ledger.acquired()
    await _commit_offset(row, committer, ledger, tenure)
    address = await _coordinator(row, committer)
    old = int(address[0][1:])
    others = _others(old)
    if not faults.may_kill(old):
        raise NotThere
    for other in others:
        row.cut(old, other, BROKER_PORT)
    await asyncio.sleep(4 * LATENCY_S[1])
    loop = asyncio.get_running_loop()
    lonely = loop.create_task(_commit_offset(row, committer, ledger, tenure, address))
    await asyncio.sleep(4 * LATENCY_S[1])
    await _fetch_offset(row, asker, ledger, address)
    cluster.kill(old)
    try:
        await lonely
        for _ in range(60):
            asker.client.forget_coordinator(0, GROUP)
            try:
                found = await asker.client.coordinator(0, GROUP)
                if found != address and await _fetch_offset(row, asker, ledger, found):
                    break
            except Retry:
                pass
            await asker.client.pause(0.2)
    finally:
        for other in others:
            row.join(old, other, BROKER_PORT)
        cluster.start(old)
    await row.until(cluster.is_in_sync)


async def _coordinator(row: Row, actor: Actor) -> tuple[str, int]:
    for _ in range(50):
        try:
            return await actor.client.coordinator(0, GROUP)
        except Retry:
            await actor.client.pause()
    raise NotThere


async def _commit_offset(
    row: Row,
    actor: Actor,
    ledger: OffsetLedger,
    tenure: int,
    address: tuple[str, int] | None = None,
) -> None:
    """Commit one more than ever before, until it is answered; with `address` once, there."""
    request = m.OffsetCommitRequest
    while True:
        offset = len(ledger.attempts) + ledger.tick()
        message = request(
            group_id=GROUP,
            generation_id_or_member_epoch=-1,
            topics=[
                request.OffsetCommitRequestTopic(
                    name="plain",
                    partitions=[
                        request.OffsetCommitRequestPartition(
                            partition_index=0, committed_offset=offset
                        )
                    ],
                )
            ],
        )
        where = address or await _coordinator(row, actor)
        attempt = ledger.begin(offset, tenure)
        try:
            answer = await actor.client.ask(where, message, 8, SOON_S)
        except Retry:
            answer = None
        code = None if answer is None else answer.topics[0].partitions[0].error_code
        ledger.end(attempt, True if code == 0 else None)
        if code == 0 or address is not None:
            return
        actor.client.forget_coordinator(0, GROUP)
        await actor.client.pause()


async def _fetch_offset(
    row: Row, actor: Actor, ledger: OffsetLedger, address: tuple[str, int]
) -> bool:
    """Ask once; whether an answer came, which is what it may be."""
    request = m.OffsetFetchRequest
    topic = request.OffsetFetchRequestTopic(name="plain", partition_indexes=[0])
    asked = ledger.tick()
    try:
        message = request(group_id=GROUP, topics=[topic], require_stable=True)
        answer = await actor.client.ask(address, message, 7, SOON_S)
    except Retry:
        return False
    if answer.error_code:
        return False
    partition = answer.topics[0].partitions[0]
    if partition.error_code:
        return False
    offset = int(partition.committed_offset)
    row.faults.checkers._guarded(ledger.check, max(offset, NOTHING), asked, OPERATOR)
    return True


async def _tail_sent_again(row: Row) -> None:
    """A leader has batches of a producer that nobody has, cuts them off when it is back, and leads
    when the producer sends them again."""
    faults, cluster = row.faults, row.cluster
    a = faults.node()
    scene = Scene(row, (a, *_others(a)))
    if not faults.may_kill(a):
        raise NotThere
    await scene.begin()
    producer_id, epoch = await _producer_id(scene)
    owner = {"producer_id": producer_id, "producer_epoch": epoch}
    batches = [scene.batch_of(1, **owner, base_sequence=sequence) for sequence in range(3)]
    await _acknowledged(scene, a, *batches[0])
    for other in _others(a):
        scene.cut(a, other)
    try:
        for records, _ in batches[1:]:
            if (await scene.send(a, records, 1))[0]:
                raise NotThere
    except Retry:
        raise NotThere from None
    cluster.kill(a)
    try:
        await row.until(lambda: any(map(scene.leads, _others(a))))
        newer = next(node_id for node_id in _others(a) if scene.leads(node_id))
        await _acknowledged(scene, newer, *batches[1])
    finally:
        for other in _others(a):
            scene.join(a, other)
        cluster.start(a)
    await row.until(cluster.is_in_sync)
    await scene.lead(a)
    records, values = batches[2]
    scene.writer.name = f"other {scene.writer.name}"
    await scene.append(a, 3)  # beyond where the batch was
    await _acknowledged(scene, a, records, values)


async def _producer_id(scene: Scene) -> tuple[int, int]:
    request = m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1)
    client = scene.writer.client
    for _ in range(50):
        try:
            answer = await client.ask(client.any_broker(), request, 4)
            if answer.error_code == 0:
                return answer.producer_id, answer.producer_epoch
        except Retry:
            pass
        await client.pause()
    raise NotThere


async def _acknowledged(scene: Scene, node_id: int, records: bytes, values: list[bytes]) -> None:
    for _ in range(20):
        try:
            code, base = await scene.send(node_id, records, -1)
        except Retry:
            code, base = -1, -1
        if code == 0:
            scene.writer.acknowledged(scene.topic, 0, base, values)
            return
        await scene.writer.client.pause()
    raise NotThere


async def _earlier_life_in_sync(row: Row) -> None:
    """A leader's wish to let a replica in is held back, and arrives when the replica has lost what
    it had and lives anew (KIP-903)."""
    faults = row.faults
    controller = _controller(row)
    a, other = _others(controller)
    scene = Scene(row, (a, controller, other))
    if not faults.may_lose(other):
        raise NotThere
    await scene.begin()
    scene.cut(a, other)
    await scene.append_until(a, scene.isr_at(controller, a, controller))
    await row.until(lambda: len(scene.partition(a).state.isr) == 2)
    release = _hold_back_wishes(row, a)
    try:
        scene.join(a, other)
        await row.until(lambda: other in (scene.partition(a).state.pending_isr or ()))
        for _ in range(3):
            await scene.write(a)
        scene.cut(a, other)
        await _lives_anew(row, controller, other)
    finally:
        release()
    await asyncio.sleep(SOON_S)


def _hold_back_wishes(row: Row, node_id: int) -> Callable[[], None]:
    """What a broker asks with AlterPartition is under way until the function is called. Its
    heartbeats are not, as by Kafka's other connection."""
    changes = row.cluster.nodes[node_id].replicas.isr_changes
    loop = row.cluster.hosts[node_id].loop
    ask = changes._ask
    held: list[tuple[Any, Any, Pending[Any]]] = []

    def hold(api_key: Any, request: Any) -> Pending[Any]:
        held.append((api_key, request, Pending()))
        return held[-1][2]

    def send() -> None:
        for api_key, request, answer in held:
            asked = ask(api_key, request)
            asked.add_done_callback(lambda done, answer=answer: _hand_on(done, answer))

    def release() -> None:
        changes._ask = ask
        loop.call_soon(send)

    changes._ask = hold
    return release


def _hand_on(done: Pending[Any], answer: Pending[Any]) -> None:
    error = done.error()
    if error is None:
        answer.complete(done.result())
    else:
        answer.fail(error)


async def _two_tails(row: Row) -> None:
    """Two leaders one after the other have tails that nobody else has, and the first, whose tail
    is of an epoch that the second has less of, leads again (KIP-279)."""
    controller = _controller(row)
    a, b = _others(controller)
    scene = Scene(row, (a, b, controller))
    await scene.begin()
    for one, other in ((a, b), (a, controller), (b, controller)):
        scene.cut(one, other)
    await scene.append_until(a, scene.isr_at(controller, a))
    await scene.append(a, 4)
    for other in (b, controller):
        row.cut(a, other)
    await row.until(lambda: scene.leads(b))
    for other in (b, controller):
        row.join(a, other)
    await row.until(lambda: _is_active(row, controller, a) and _is_active(row, a, a))
    await scene.append(b, 2)
    for other in (a, controller):
        row.cut(b, other)
    await row.until(lambda: scene.leads(a))
    for one, other in ((a, b), (a, controller), (b, controller)):
        scene.join(one, other)
    for other in (a, controller):
        row.join(b, other)
    try:
        await row.until(row.cluster.is_in_sync)
    except NotThere:
        row.faults.checkers.fail(
            f"{scene.topic}: n{b} does not get in sync with n{a}, which leads anew"
        )


def _is_active(row: Row, node_id: int, broker_id: int) -> bool:
    node = row.cluster.nodes.get(node_id)
    broker = None if node is None else node.image.brokers.get(broker_id)
    return broker is not None and broker.is_active


async def _unclean_leader(row: Row) -> None:
    """A leader alone in its ISR is fenced, a replica that lacks what it has committed leads, and
    the first one follows it."""
    controller = _controller(row)
    a, b = _others(controller)
    scene = Scene(row, (a, b, controller), UNCLEAN)
    configs = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    await scene.begin(configs)
    for other in (b, controller):
        scene.cut(a, other)
    await scene.append_until(a, scene.isr_at(controller, a))
    await row.until(lambda: scene.partition(a).state.high_watermark == scene.end(a))
    for other in (b, controller):
        row.cut(a, other)
    await row.until(lambda: scene.leads(b) or scene.leads(controller))
    for other in (b, controller):
        row.join(a, other)
        scene.join(a, other)
    await row.until(row.cluster.is_in_sync)


async def _eligible_leader_lost(row: Row) -> None:
    """A leader is alone in its ISR, an eligible leader loses what it had not synced and is back,
    and the leader is fenced."""
    controller = _controller(row)
    a, b = _others(controller)
    scene = Scene(row, (a, b, controller))
    if not row.faults.may_lose(b):
        raise NotThere
    await scene.begin()
    for one, other in ((a, b), (a, controller), (b, controller)):
        scene.cut(one, other)
    await scene.append_until(a, scene.isr_at(controller, a))
    await _lives_anew(row, controller, b)
    for other in (b, controller):
        row.cut(a, other)
    await row.until(lambda: scene.leads(b) or scene.leads(controller))
    for one, other in ((a, b), (a, controller), (b, controller)):
        scene.join(one, other)
    for other in (b, controller):
        row.join(a, other)
    await row.until(row.cluster.is_in_sync)


async def _lives_anew(row: Row, controller: int, node_id: int) -> None:
    """A node loses power, starts and is unfenced in its new life."""
    cluster = row.cluster
    epoch = cluster.nodes[controller].image.brokers[node_id].epoch
    cluster.kill(node_id, power_loss=True)
    cluster.start(node_id)

    def is_back() -> bool:
        node = cluster.nodes.get(controller)
        broker = None if node is None else node.image.brokers.get(node_id)
        return broker is not None and broker.epoch != epoch and broker.is_active

    await row.until(is_back)


async def _late_wish(row: Row) -> None:
    """A leader's wish for an ISR comes once more by another way, when that ISR has become another
    and again another."""
    controller = _controller(row)
    a, b = _others(controller)
    scene = Scene(row, (a, b, controller))
    await scene.begin()
    before = scene.image(controller)
    epochs = {i: row.cluster.nodes[controller].image.brokers[i].epoch for i in IDS}
    scene.cut(a, controller)
    await scene.append_until(a, scene.isr_at(controller, a, b))
    scene.join(a, controller)
    await row.until(scene.isr_at(controller, *IDS))
    scene.cut(a, b)
    await scene.append_until(a, scene.isr_at(controller, a, controller))
    await scene.write(a)
    request = m.AlterPartitionRequest
    partition = request.PartitionData(
        partition_index=0,
        leader_epoch=before.leader_epoch,
        new_isr_with_epochs=[
            request.BrokerState(broker_id=i, broker_epoch=epochs[i]) for i in (a, b)
        ],
        partition_epoch=before.partition_epoch,
    )
    node = row.cluster.nodes[controller]
    topic_id = node.image.topics.by_name[scene.topic].topic_id
    late = request(
        broker_id=a,
        broker_epoch=epochs[a],
        topics=[request.TopicData(topic_id=topic_id, partitions=[partition])],
    )
    try:
        await scene.writer.client.ask((f"n{controller}", CONTROLLER_PORT), late, 3)
    except Retry:
        raise NotThere from None
    await asyncio.sleep(SOON_S)


def _row(steps: Callable[[Row], Awaitable[None]]) -> Callable[[Faults], Awaitable[None]]:
    async def act(faults: Faults) -> None:
        await run_row(faults, steps)

    return act


ROW_KINDS: dict[str, Callable[[Faults], Awaitable[None]]] = {
    "ISR answer lost": _row(_isr_answer_lost),
    "offset that nobody has": _row(_offset_that_nobody_has),
    "tail sent again": _row(_tail_sent_again),
    "earlier life in sync": _row(_earlier_life_in_sync),
    "two tails": _row(_two_tails),
    "unclean leader": _row(_unclean_leader),
    "late wish": _row(_late_wish),
    "eligible leader lost": _row(_eligible_leader_lost),
}
"""By the kind of fault that a plan names."""
