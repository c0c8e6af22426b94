"""What happens is told in words: scenes of real frames, each with its sentences."""

from __future__ import annotations

from kwire.protocol import messages as m
from kwire.protocol import records
from kwire.protocol.errors import ErrorCode
from kwire.protocol.frame import encode_request, encode_response
from kwire.protocol.records import Record
from kwire.protocol.structs import Message, Request
from kwire.trace.bounded import BoundedMap
from kwire.trace.dialogues import Dialogue
from kwire.trace.events import CLOSE, OPEN, Event
from kwire.trace.explaining import Explainer

ORDERS = bytes(range(16))


class Scene:
    """Clients and brokers that say what the test wants; `told` are the sentences."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.ms = 0.0
        self._explainer = Explainer()
        self._dialogues: dict[tuple[str, str], Dialogue] = {}
        self._number = 0

    def _event(self, event: Event) -> None:
        told = self._explainer.event(event)
        self.told += [f"{each.who}: {each.text}" for each in told]

    def dialogue(self, client: str, broker: str) -> Dialogue:
        key = client, broker
        if key not in self._dialogues:
            self._dialogues[key] = made = Dialogue(len(self._dialogues) + 1)
            self._event(Event(OPEN, self.ms, made.connection, "127.0.0.1:5000", broker))
        return self._dialogues[key]

    def ask(self, client: str, request: Request[Message], version: int, broker: str = "b1") -> int:
        self._number += 1
        parts = encode_request(request.API_KEY, version, self._number, client, request)
        frame = b"".join(bytes(part) for part in parts)[4:]
        self._event(self.dialogue(client, broker).asks(frame, self.ms).event)
        return self._number

    def answer(
        self, client: str, number: int, response: Message, version: int, broker: str = "b1"
    ) -> None:
        assert response.API_KEY is not None
        parts = encode_response(response.API_KEY, version, number, response)
        frame = b"".join(bytes(part) for part in parts)[4:]
        self._event(self.dialogue(client, broker).answers(frame, self.ms).event)

    def both(
        self,
        client: str,
        request: Request[Message],
        response: Message,
        version: int,
        broker: str = "b1",
        took_ms: float = 1.0,
    ) -> None:
        number = self.ask(client, request, version, broker)
        self.ms += took_ms
        self.answer(client, number, response, version, broker)

    def close(self, client: str, note: str, broker: str = "b1") -> None:
        self._event(Event(CLOSE, self.ms, self.dialogue(client, broker).connection, note=note))

    def last(self, count: int = 1) -> list[str]:
        return self.told[-count:]


def metadata(leader: int) -> m.MetadataResponse:
    kind = m.MetadataResponse
    partition = kind.MetadataResponsePartition(partition_index=0, leader_id=leader)
    topic = kind.MetadataResponseTopic(name="orders", topic_id=ORDERS, partitions=[partition])
    return kind(topics=[topic])


def produce(sequence: int = -1, producer_id: int = -1, epoch: int = -1) -> m.ProduceRequest:
    batch = records.build_batch(
        [Record(value=b"v")] * 2,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    kind = m.ProduceRequest
    partition = kind.PartitionProduceData(index=0, records=bytes(batch))
    topic = kind.TopicProduceData(topic_id=ORDERS, partition_data=[partition])
    return kind(acks=-1, topic_data=[topic])


def produced(code: int = 0) -> m.ProduceResponse:
    kind = m.ProduceResponse
    partition = kind.PartitionProduceResponse(index=0, error_code=code)
    topic = kind.TopicProduceResponse(topic_id=ORDERS, partition_responses=[partition])
    return kind(responses=[topic])


def test_a_leader_that_moved_the_metadata_and_the_retry() -> None:
    scene = Scene()
    scene.both("p", m.MetadataRequest(topics=None), metadata(1), 12)
    refused = produced(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    for _ in range(3):
        scene.both("p", produce(), refused, 13)
    scene.both("p", m.MetadataRequest(topics=None), metadata(2), 12)
    scene.ms += 5
    scene.both("p", produce(), produced(), 13, "b2")
    assert scene.told == [
        "p: Produce of orders-0 at b1 is answered with NOT_LEADER_OR_FOLLOWER: this broker does "
        "not lead the partition; it asks for metadata and sends it again to the leader of then",
        "p: metadata: orders-0 is led by broker 2; it was broker 1",
        "p: Produce of orders-0 succeeds at b2, 9 ms after it was refused "
        "(NOT_LEADER_OR_FOLLOWER, 3 times)",
    ]


def test_a_batch_that_is_sent_again_says_why() -> None:
    scene = Scene()
    scene.both("p", m.MetadataRequest(topics=None), metadata(1), 12)
    scene.ask("p", produce(5, 9, 0), 13)
    scene.ms += 30
    scene.close("p", "1 requests without a reply: Produce")
    assert scene.last() == [
        "p: the connection to b1 ends: 1 requests without a reply: Produce; whether they are done "
        "nobody knows"
    ]
    scene.both("p", produce(5, 9, 0), produced(), 13, "b2")
    assert scene.last() == [
        "p: sends 2 records of orders-0 again (sequence 5), 30 ms after the first time: "
        "no reply to it was seen"
    ]
    scene.both("p", produce(5, 9, 0), produced(), 13, "b2")
    assert scene.last()[0].endswith("it had been written")


def initialised(epoch: int) -> m.InitProducerIdResponse:
    return m.InitProducerIdResponse(producer_id=9, producer_epoch=epoch)


def test_a_fenced_producer_is_told_by_whom() -> None:
    scene = Scene()
    request = m.InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000)
    scene.both("old", request, initialised(0), 5)
    scene.both("new", request, initialised(1), 5)
    assert scene.last() == [
        "new: takes transactional id tx: producer id 9 at epoch 1; old, whose epoch 0 is fenced "
        "from now on"
    ]
    scene.ms += 100
    end = m.EndTxnRequest(transactional_id="tx", producer_id=9, producer_epoch=0, committed=True)
    scene.both("old", end, m.EndTxnResponse(error_code=ErrorCode.PRODUCER_FENCED), 4)
    assert scene.last(2) == [
        "old: commits the transaction of tx",
        "old: is fenced (EndTxn): producer id 9 at epoch 0 is out of date; new has it at epoch 1 "
        "with transactional id tx since 101 ms",
    ]


def test_a_producer_is_fenced_by_its_batches_too() -> None:
    scene = Scene()
    request = m.InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000)
    scene.both("new", request, initialised(3), 5)
    scene.both("p", m.MetadataRequest(topics=None), metadata(1), 12)
    scene.both("old", produce(0, 9, 2), produced(ErrorCode.INVALID_PRODUCER_EPOCH), 13)
    assert scene.last()[0].startswith("old: is fenced (Produce): producer id 9 at epoch 2")


def joining(member_id: str = "", topics: tuple[str, ...] = ("orders",)) -> m.JoinGroupRequest:
    data = m.ConsumerProtocolSubscription(topics=list(topics)).encode(1)
    protocol = m.JoinGroupRequest.JoinGroupRequestProtocol(
        name="range", metadata=b"\x00\x01" + data
    )
    return m.JoinGroupRequest(
        group_id="g", session_timeout_ms=10_000, member_id=member_id, protocols=[protocol]
    )


def joined(generation: int, member_id: str, *members: str) -> m.JoinGroupResponse:
    kind = m.JoinGroupResponse
    rows = [kind.JoinGroupResponseMember(member_id=each) for each in members]
    return kind(generation_id=generation, protocol_name="range", member_id=member_id, members=rows)


def heartbeat(member_id: str) -> m.HeartbeatRequest:
    return m.HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)


def assigned(*topics: str) -> m.SyncGroupResponse:
    shape = m.ConsumerProtocolAssignment.TopicPartition
    rows = [shape(topic=each, partitions=[0]) for each in topics]
    data = m.ConsumerProtocolAssignment(assigned_partitions=rows).encode(1)
    return m.SyncGroupResponse(assignment=b"\x00\x01" + data)


def led_by_c1() -> Scene:
    scene = Scene()
    scene.both("c1", joining(), m.JoinGroupResponse(error_code=79, member_id="m1"), 7)
    scene.both("c1", joining("m1"), joined(1, "m1", "m1"), 7)
    sync = m.SyncGroupRequest(group_id="g", generation_id=1, member_id="m1")
    scene.both("c1", sync, assigned("orders"), 4)
    return scene


def test_a_group_begins() -> None:
    assert led_by_c1().told == [
        "c1: group g rebalances: c1 joins",
        "c1: gets an id as a member of group g first (KIP-394), and joins with it",
        "c1: leads group g at generation 1: 1 members, assignor range; its JoinGroup waited 1 ms "
        "for the others",
        "c1: gets of group g: orders-0",
    ]


def test_a_second_member_makes_the_group_rebalance() -> None:
    scene = led_by_c1()
    scene.ask("c2", joining(), 4)
    scene.ms += 20
    again = m.HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    scene.both("c1", heartbeat("m1"), again, 4)
    assert scene.last(2) == [
        "c2: group g rebalances: c2 joins",
        "c1: is told by Heartbeat that group g rebalances, as c2 joins 21 ms before; it joins anew",
    ]


def test_a_changed_subscription_makes_the_group_rebalance() -> None:
    scene = led_by_c1()
    scene.ask("c1", joining("m1", ("orders", "bills")), 7)
    assert scene.last() == ["c1: group g rebalances: c1 subscribes to other topics"]


def test_an_expired_session() -> None:
    scene = led_by_c1()
    scene.both("c1", heartbeat("m1"), m.HeartbeatResponse(), 4)
    scene.ms += 12_000
    lost = m.HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    scene.both("c1", heartbeat("m1"), lost, 4)
    assert scene.last() == [
        "c1: is no member of group g any more (UNKNOWN_MEMBER_ID of Heartbeat): its session has "
        "expired: nothing was heard of it for 12000 ms, its session timeout is 10000 ms"
    ]


def test_a_member_that_had_left() -> None:
    scene = led_by_c1()
    leaving = m.LeaveGroupRequest.MemberIdentity(member_id="m1", reason="shutdown")
    leave = m.LeaveGroupRequest(group_id="g", members=[leaving])
    scene.both("c1", leave, m.LeaveGroupResponse(), 5)
    assert scene.last() == ["c1: leaves group g: shutdown"]
    lost = m.HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    scene.both("c1", heartbeat("m1"), lost, 4)
    assert scene.last()[0].endswith(": it had left")


def test_members_who_did_not_come_back_are_named() -> None:
    scene = led_by_c1()
    number = scene.ask("c2", joining("m2"), 7)
    two = joined(2, "m1", "m1", "m2")
    scene.both("c1", joining("m1"), two, 7)
    scene.answer("c2", number, joined(2, "m2"), 7)
    scene.both("c1", joining("m1"), joined(3, "m1", "m1"), 7)
    assert "1 members, without c2" in scene.last()[0]


def consumer_heartbeat(epoch: int, member_id: str = "m1") -> m.ConsumerGroupHeartbeatRequest:
    topics = ["orders"] if epoch == 0 else None
    return m.ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=member_id, member_epoch=epoch, subscribed_topic_names=topics
    )


def at_epoch(epoch: int, member_id: str = "m1", code: int = 0) -> m.ConsumerGroupHeartbeatResponse:
    return m.ConsumerGroupHeartbeatResponse(
        member_id=member_id, member_epoch=epoch, error_code=code
    )


def test_a_group_of_the_new_protocol_rebalances() -> None:
    scene = Scene()
    scene.both("c1", consumer_heartbeat(0), at_epoch(1), 1)
    scene.both("c2", consumer_heartbeat(0, "m2"), at_epoch(2, "m2"), 1)
    scene.both("c1", consumer_heartbeat(1), at_epoch(2), 1)
    assert scene.told == [
        "c1: joins group g",
        "c1: is in group g at epoch 1",
        "c2: joins group g",
        "c2: is in group g at epoch 2",
        "c1: is in group g at epoch 2, as c2 joins 1 ms before",
    ]
    fenced = at_epoch(0, "", ErrorCode.FENCED_MEMBER_EPOCH)
    scene.both("c1", consumer_heartbeat(1), fenced, 1)
    assert scene.last()[0].startswith("c1: is no member of group g any more (FENCED_MEMBER_EPOCH")


def test_a_coordinator_that_has_moved() -> None:
    scene = Scene()
    find = m.FindCoordinatorRequest(coordinator_keys=["g"])

    def found(node: int) -> m.FindCoordinatorResponse:
        row = m.FindCoordinatorResponse.Coordinator(key="g", node_id=node, host="h", port=1)
        return m.FindCoordinatorResponse(coordinators=[row])

    scene.both("c1", find, found(1), 4)
    moved = m.HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)
    scene.both("c1", heartbeat("m1"), moved, 4)
    scene.both("c1", find, found(2), 4)
    scene.both("c1", heartbeat("m1"), m.HeartbeatResponse(), 4, "b2")
    assert scene.told == [
        "c1: Heartbeat of group g at b1 is answered with NOT_COORDINATOR: this broker coordinates "
        "it no more; it asks for the coordinator and sends it again there",
        "c1: the coordinator of group g has moved: it is broker 2, it was broker 1",
        "c1: Heartbeat of group g succeeds at b2, 2 ms after it was refused "
        "(NOT_COORDINATOR, once)",
    ]


def test_a_fetch_session_that_the_broker_has_dropped() -> None:
    scene = Scene()
    lost = m.FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    scene.both("c1", m.FetchRequest(session_id=5, session_epoch=2), lost, 12)
    assert "it begins another with a full Fetch" in scene.last()[0]


def test_throttling_is_told_once_a_second() -> None:
    scene = Scene()
    slow = m.FetchResponse(throttle_time_ms=300)
    for _ in range(4):
        scene.both("c1", m.FetchRequest(), slow, 12, took_ms=400)
    throttled = "c1: waits 300 ms, as its quota is used up (told by Fetch)"
    assert scene.told == [throttled, throttled]


def test_what_is_not_known_is_passed_over_and_said() -> None:
    scene = Scene()
    frame = b"\x07\xd0\x00\x01\x00\x00\x00\x05\x00\x01xrest"
    scene._event(scene.dialogue("x", "b1").asks(frame, 0.0).event)
    assert scene.told == ["x: a request, 15 bytes passed through as bytes: API 2000 is not known"]


def test_memory_is_bounded() -> None:
    kept: BoundedMap[int, int] = BoundedMap(3)
    for number in range(10):
        kept.put(number, number)
    kept.put(8, 80)
    kept.put(10, 10)
    assert kept.keys() == [9, 8, 10]


# -- dialogues


def test_a_login_without_headers_is_counted_and_not_looked_at() -> None:
    dialogue = Dialogue(1)
    handshake = m.SaslHandshakeRequest(mechanism="SCRAM-SHA-256")
    frame = b"".join(encode_request(17, 0, 1, "c", handshake))[4:]
    dialogue.asks(frame, 0.0)
    dialogue.answers(b"".join(encode_response(17, 0, 1, m.SaslHandshakeResponse()))[4:], 0.0)
    for token in (b"n,,n=user,r=nonce", b"c=biws,p=proof"):
        asked = dialogue.asks(token, 1.0)
        assert asked.message is None
        assert "token" in asked.event.note
        assert dialogue.answers(b"r=server", 1.0).message is None
    after = b"".join(encode_request(12, 4, 2, "c", heartbeat("m")))[4:]
    assert dialogue.asks(after, 2.0).message == heartbeat("m")


def test_a_produce_without_acks_waits_for_no_reply() -> None:
    dialogue = Dialogue(1)
    request = m.ProduceRequest(acks=0)
    dialogue.asks(b"".join(encode_request(0, 9, 1, "c", request))[4:], 0.0)
    assert dialogue.unanswered == []


def test_a_reply_that_belongs_to_no_request_ends_the_dialogue() -> None:
    dialogue = Dialogue(1)
    dialogue.asks(b"".join(encode_request(12, 4, 1, "c", heartbeat("m")))[4:], 0.0)
    answered = dialogue.answers(b"\x00\x00\x00\x63rest", 1.0)
    assert answered.message is None
    assert dialogue.is_lost
    assert dialogue.asks(b"anything", 2.0).message is None
