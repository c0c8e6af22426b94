"""Message classes: defaults, copies, equality, what cannot be encoded."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kwire.protocol import messages as m
from kwire.protocol.errors import EncodeError, MalformedError, UnsupportedVersionError


def test_fields_that_are_left_out_have_the_defaults_of_the_schema() -> None:
    request = m.FetchRequest()
    assert request.replica_id == -1
    assert request.max_bytes == 0x7FFFFFFF
    assert request.topics == []
    assert request.cluster_id is None
    assert request.replica_state == m.FetchRequest.ReplicaState(replica_id=-1, replica_epoch=-1)
    partition = m.FetchRequest.FetchPartition()
    assert partition.high_watermark == 2**63 - 1
    assert partition.replica_directory_id == bytes(16)
    assert m.MetadataRequest().allow_auto_topic_creation is True
    assert m.ProduceRequest.PartitionProduceData().records is None
    assert m.FetchSnapshotResponse.PartitionSnapshot().unaligned_records == b""


def test_messages_do_not_share_their_defaults() -> None:
    first, second = m.FetchResponse.PartitionData(), m.FetchResponse.PartitionData()
    first.current_leader.leader_id = 5
    first.aborted_transactions.append(m.FetchResponse.AbortedTransaction())
    assert second.current_leader.leader_id == -1
    assert second.aborted_transactions == []
    decoded = m.FetchRequest.decode(m.FetchRequest().encode(4), 4)
    other = m.FetchRequest.decode(m.FetchRequest().encode(4), 4)
    decoded.forgotten_topics_data.append(m.FetchRequest.ForgottenTopic())
    assert other.forgotten_topics_data == []


def test_reading_a_tagged_default_sends_nothing() -> None:
    response = m.ProduceResponse()
    assert response.node_endpoints == []
    plain = m.ProduceResponse().encode(10)
    assert response.encode(10) == plain
    response.node_endpoints.append(m.ProduceResponse.NodeEndpoint(node_id=1, host="a", port=2))
    assert response.encode(10) != plain
    assert m.ProduceResponse.decode(response.encode(10), 10) == response


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'topic_name'"):
        m.FetchRequest(topic_name="a")
    with pytest.raises(TypeError, match="no field topic_name"):
        m.FetchRequest().copy(topic_name="a")
    with pytest.raises(AttributeError):
        m.FetchRequest().topic_name = "a"


def test_there_are_no_other_messages() -> None:
    with pytest.raises(AttributeError, match="no message NoSuchRequest"):
        _ = m.NoSuchRequest
    for name in ("LeaderAndIsrRequest", "Fetch", "x"):
        assert not hasattr(m, name)
    with pytest.raises(KeyError):
        m.request_class(4)
    with pytest.raises(KeyError):
        m.metadata_record_class(6)
    with pytest.raises(KeyError):
        m.coordinator_key_class("group-coordinator", 9)
    with pytest.raises(KeyError):
        m.coordinator_value_class("no-such-module", 0)


def test_lookup_by_key_and_type() -> None:
    assert m.request_class(1) is m.FetchRequest
    assert m.response_class(1) is m.FetchResponse
    assert m.metadata_record_class(2) is m.TopicRecord
    assert m.metadata_record_class(0, "storage") is m.RemoteLogSegmentMetadataRecord
    assert m.coordinator_key_class("group-coordinator", 1) is m.OffsetCommitKey
    assert m.coordinator_value_class("transaction-coordinator", 0) is m.TransactionLogValue


def test_class_attributes() -> None:
    cls = m.InitProducerIdRequest
    assert (cls.API_KEY, cls.NAME, cls.KIND) == (22, "InitProducerIdRequest", "request")
    assert (cls.MIN_VERSION, cls.MAX_VERSION) == (0, 6)
    assert [cls.is_flexible(version) for version in range(4)] == [False, False, True, True]


def test_copies_are_independent_at_the_top_and_keep_tags() -> None:
    topic = m.FetchRequest.FetchTopic(topic="a", unknown_tags=[(9, b"x")])
    copy = topic.copy(topic="b")
    assert (topic.topic, copy.topic) == ("a", "b")
    assert copy.unknown_tags == [(9, b"x")]
    assert topic != copy
    assert topic == copy.copy(topic="a")
    leader = m.FetchResponse.PartitionData(
        current_leader=m.FetchResponse.LeaderIdAndEpoch(leader_id=3)
    )
    assert leader.copy().current_leader.leader_id == 3
    copy = leader.copy()
    copy.current_leader = m.FetchResponse.LeaderIdAndEpoch(leader_id=4)
    assert leader.current_leader.leader_id == 3


def test_decoded_structs_are_instances_of_their_class() -> None:
    request = m.FetchRequest(topics=[m.FetchRequest.FetchTopic(topic="a")])
    decoded = m.FetchRequest.decode(request.encode(12), 12)
    assert isinstance(decoded, m.FetchRequest)
    assert isinstance(decoded.topics[0], m.FetchRequest.FetchTopic)
    assert not isinstance(decoded.topics[0], m.FetchRequest.FetchPartition)
    assert type(decoded.topics[0]).__name__ == "FetchTopic"
    assert decoded == request
    assert decoded.topics[0].copy() == request.topics[0]


def test_structs_of_different_types_are_not_equal() -> None:
    assert m.FetchRequest() != m.FetchResponse()
    assert m.FetchRequest() != 1
    left = m.FetchResponse.LeaderIdAndEpoch()
    assert left != m.ProduceResponse.LeaderIdAndEpoch()


def test_records_are_equal_as_bytes_however_they_are_cut() -> None:
    cls = m.ProduceRequest.PartitionProduceData
    whole = cls(records=b"abcdef")
    assert whole == cls(records=memoryview(b"abcdef"))
    assert whole == cls(records=[b"ab", memoryview(b"cdef")])
    assert whole != cls(records=[b"ab"])
    assert whole != cls(records=None)
    assert cls(records=None) == cls()


def test_repr_names_the_fields_and_cuts_what_is_long() -> None:
    text = repr(m.FetchRequest.FetchTopic(topic="a", unknown_tags=[(1, b"z")]))
    assert text.startswith("FetchRequest.FetchTopic(topic='a', topic_id=")
    assert "unknown_tags=[(1, b'z')]" in text
    assert "<6 bytes>" in repr(m.ProduceRequest.PartitionProduceData(records=memoryview(b"abcdef")))
    many = m.ListOffsetsRequest(topics=[m.ListOffsetsRequest.ListOffsetsTopic()] * 1000)
    assert len(repr(many)) < 5000
    assert "1000 in all" in repr(many)


@pytest.mark.parametrize("version", [-1, 3, 19, 99])
def test_versions_that_a_message_lacks(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="versions 4 to 18"):
        m.FetchRequest().encode(version)
    with pytest.raises(UnsupportedVersionError, match="versions 4 to 18"):
        m.FetchRequest.decode(b"", version)


def test_a_field_that_a_version_lacks_is_dropped_only_when_ignorable() -> None:
    assert m.FetchRequest(rack_id="r").encode(4) == m.FetchRequest().encode(4)
    forgotten = m.FetchRequest(forgotten_topics_data=[m.FetchRequest.ForgottenTopic()])
    with pytest.raises(UnsupportedVersionError, match="forgotten_topics_data is set"):
        forgotten.encode(6)
    partition = m.FetchRequest.FetchPartition(last_fetched_epoch=3)
    topic = m.FetchRequest.FetchTopic(topic="a", partitions=[partition])
    with pytest.raises(UnsupportedVersionError, match="last_fetched_epoch is set"):
        m.FetchRequest(topics=[topic]).encode(11)
    with pytest.raises(UnsupportedVersionError, match="group_instance_id is set"):
        m.HeartbeatRequest(group_instance_id="i").encode(2)
    state = m.FetchRequest.ReplicaState(replica_id=1)
    with pytest.raises(UnsupportedVersionError, match="replica_state is set"):
        m.FetchRequest(replica_state=state).encode(14)


def test_unknown_tags_need_a_flexible_version() -> None:
    request = m.MetadataRequest(unknown_tags=[(7, b"abc")])
    assert m.MetadataRequest.decode(request.encode(9), 9).unknown_tags == [(7, b"abc")]
    with pytest.raises(UnsupportedVersionError):
        request.encode(8)


@pytest.mark.parametrize("tags", [[(3, b""), (3, b"")], [(-1, b"")], [(0, b"clashes")]])
def test_tags_that_cannot_be_sent(tags: list[tuple[int, bytes]]) -> None:
    endpoint = m.ProduceResponse.NodeEndpoint()
    response = m.ProduceResponse(unknown_tags=tags, node_endpoints=[endpoint])
    with pytest.raises(EncodeError):
        response.encode(10)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"session_id": 2**31}, "session_id"),
        ({"session_id": None}, "session_id"),
        ({"session_id": "1"}, "session_id"),
        ({"rack_id": None}, "rack_id"),
        ({"rack_id": 5}, "rack_id"),
        ({"rack_id": "\ud800"}, "rack_id"),
        ({"rack_id": "x" * 32768}, "rack_id"),
        ({"topics": None}, "topics"),
    ],
)
def test_values_that_do_not_fit_are_refused_by_name(change: dict[str, object], named: str) -> None:
    for version in (11, 12):
        with pytest.raises(EncodeError, match=named):
            m.FetchRequest(**change).encode(version)


def test_a_uuid_has_16_bytes() -> None:
    for wrong in (b"", b"x" * 15, b"x" * 17):
        with pytest.raises(EncodeError, match="topic_id"):
            m.TopicRecord(name="a", topic_id=wrong).encode(0)


def test_longest_string() -> None:
    request = m.FetchRequest(rack_id="x" * 32767)
    for version in (11, 12):
        assert m.FetchRequest.decode(request.encode(version), version) == request


def test_a_compact_string_beyond_the_longest_is_malformed() -> None:
    data = m.FindCoordinatorRequest(coordinator_keys=["x" * 32767]).encode(4)
    at = data.index(b"\x80\x80\x02")
    broken = data[:at] + b"\x81\x80\x02x" + data[at + 3 :]
    with pytest.raises(MalformedError):
        m.FindCoordinatorRequest.decode(broken, 4)


def test_importing_compiles_and_reads_nothing() -> None:
    script = (
        "import builtins, sys\n"
        "from kwire.protocol import messages, schema, frame, structs\n"
        "assert not [n for n in vars(messages) if n.endswith(('Request', 'Response', 'Record'))]\n"
        "assert not [n for n in sys.modules if n.startswith('kwire.protocol.messages.')]\n"
        "assert 'kwire.protocol.decoder' not in sys.modules\n"
        "assert 'kwire.protocol.encoder' not in sys.modules\n"
        "request = messages.FetchRequest()\n"
        "assert 'kwire.protocol.messages.api.produce' not in sys.modules\n"
        "assert not request._decoders and not request._encoders\n"
        "request.encode(12)\n"
        "assert list(request._encoders) == [12] and not request._decoders\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_lets_somebody_in_is_in_no_text_about_a_message() -> None:
    secret = b"hunter2"
    shape = m.AlterUserScramCredentialsRequest
    upsertion = shape.ScramCredentialUpsertion(
        name="alice", mechanism=1, iterations=4096, salt=secret, salted_password=secret
    )
    for message in (
        m.SaslAuthenticateRequest(auth_bytes=secret),
        m.SaslAuthenticateResponse(auth_bytes=secret),
        m.CreateDelegationTokenResponse(hmac=secret),
        m.RenewDelegationTokenRequest(hmac=secret),
        m.UserScramCredentialRecord(salt=secret, stored_key=secret, server_key=secret),
        shape(upsertions=[upsertion]),
    ):
        assert "hunter2" not in repr(message)
        assert "[hidden]" in repr(message)
