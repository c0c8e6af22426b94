"""What an error says, and what clients do about it, in words."""

from __future__ import annotations

METADATA = "it asks for metadata and sends it again to the leader of then"
COORDINATOR = "it asks for the coordinator and sends it again there"
AGAIN = "it asks again after a while"
ENDS = "sending it again does not help: the application is told"
REJOINS = "it joins the group anew"

WORDS: dict[str, tuple[str, str]] = {
    "NOT_LEADER_OR_FOLLOWER": ("this broker does not lead the partition", METADATA),
    "LEADER_NOT_AVAILABLE": ("the partition has no leader", METADATA),
    "FENCED_LEADER_EPOCH": ("the client knows an older leader than there is", METADATA),
    "UNKNOWN_LEADER_EPOCH": ("the client knows a newer leader than this broker", METADATA),
    "REPLICA_NOT_AVAILABLE": ("this broker has no replica of the partition", METADATA),
    "UNKNOWN_TOPIC_OR_PARTITION": ("the broker knows no such partition", METADATA),
    "UNKNOWN_TOPIC_ID": (
        "no topic has this id: it was deleted, or made anew, or the broker does not know it yet",
        METADATA,
    ),
    "INCONSISTENT_TOPIC_ID": ("the topic was made anew", METADATA),
    "KAFKA_STORAGE_ERROR": ("the broker cannot use the disk of the partition", METADATA),
    "OFFSET_OUT_OF_RANGE": (
        "the partition does not hold this offset: deleted by retention, or not written yet",
        "it begins where auto.offset.reset says, or tells the application",
    ),
    "OFFSET_NOT_AVAILABLE": ("a new leader does not know its high watermark yet", AGAIN),
    "NOT_COORDINATOR": ("this broker coordinates it no more", COORDINATOR),
    "COORDINATOR_NOT_AVAILABLE": ("there is no coordinator (yet)", COORDINATOR),
    "COORDINATOR_LOAD_IN_PROGRESS": ("the coordinator is still reading its log", AGAIN),
    "NOT_CONTROLLER": ("this node is not the active controller", METADATA),
    "REQUEST_TIMED_OUT": ("it was not done in the time that the client gave", AGAIN),
    "NOT_ENOUGH_REPLICAS": (
        "fewer replicas are in sync than min.insync.replicas asks for; nothing was written",
        AGAIN,
    ),
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": (
        "it was written, but fewer replicas are in sync than min.insync.replicas asks for",
        "it sends it again; without idempotence the records are doubled",
    ),
    "CORRUPT_MESSAGE": ("the checksum of a batch does not fit", AGAIN),
    "MESSAGE_TOO_LARGE": (
        "a batch is larger than max.message.bytes of the topic",
        "some clients split the batch, others tell the application",
    ),
    "RECORD_LIST_TOO_LARGE": ("the batches are larger than a segment", ENDS),
    "INVALID_RECORD": ("the broker does not accept a record, such as one without a key", ENDS),
    "OUT_OF_ORDER_SEQUENCE_NUMBER": (
        "batches before this one have not arrived",
        "it sends what is missing first, or tells the application where that is lost",
    ),
    "DUPLICATE_SEQUENCE_NUMBER": ("this batch was written already", "it counts as written"),
    "UNKNOWN_PRODUCER_ID": ("the broker has forgotten this producer", "it gets a new epoch"),
    "INVALID_PRODUCER_EPOCH": ("a producer with a newer epoch has taken over", ENDS),
    "PRODUCER_FENCED": ("a producer with a newer epoch has taken over", ENDS),
    "INVALID_PRODUCER_ID_MAPPING": (
        "the transactional id has another producer id, or was forgotten (expired)",
        ENDS,
    ),
    "INVALID_TXN_STATE": ("the transaction is not in a state for this", ENDS),
    "CONCURRENT_TRANSACTIONS": ("the transaction before is still being completed", AGAIN),
    "TRANSACTION_ABORTABLE": (
        "this transaction cannot be committed",
        "the application aborts it and begins another",
    ),
    "UNSTABLE_OFFSET_COMMIT": ("a transaction with offsets of the group is still open", AGAIN),
    "REBALANCE_IN_PROGRESS": ("the group rebalances", REJOINS),
    "ILLEGAL_GENERATION": ("the group has gone on without this member", REJOINS),
    "UNKNOWN_MEMBER_ID": ("the group does not know this member", REJOINS),
    "MEMBER_ID_REQUIRED": ("who joins gets an id first (KIP-394)", "it joins again with this id"),
    "FENCED_INSTANCE_ID": ("another member has taken its group.instance.id", ENDS),
    "FENCED_MEMBER_EPOCH": (
        "the coordinator knows another epoch of this member, or has removed it",
        "it gives up its partitions and joins the group anew",
    ),
    "UNRELEASED_INSTANCE_ID": ("a member with this group.instance.id is still there", ENDS),
    "STALE_MEMBER_EPOCH": ("the member has got a new epoch meanwhile", AGAIN),
    "INCONSISTENT_GROUP_PROTOCOL": ("its assignors or kind are not those of the group", ENDS),
    "GROUP_MAX_SIZE_REACHED": ("the group has group.max.size members", ENDS),
    "FETCH_SESSION_ID_NOT_FOUND": (
        "the broker has dropped the fetch session, to make room or as it was started anew",
        "it begins another with a full Fetch",
    ),
    "INVALID_FETCH_SESSION_EPOCH": (
        "a Fetch of the session was lost",
        "it begins another session with a full Fetch",
    ),
    "FETCH_SESSION_TOPIC_ID_ERROR": (
        "the session was begun with names of topics in the place of ids",
        "it begins another session with a full Fetch",
    ),
    "SHARE_SESSION_NOT_FOUND": ("the broker has dropped the share session", "it begins another"),
    "INVALID_SHARE_SESSION_EPOCH": ("a ShareFetch of the session was lost", "it begins another"),
    "INVALID_RECORD_STATE": (
        "the records are not acquired by this member any more: their lock has run out",
        "they are delivered again, to any member",
    ),
    "SASL_AUTHENTICATION_FAILED": ("the login is not right", ENDS),
    "UNSUPPORTED_SASL_MECHANISM": ("the broker does not offer this mechanism", ENDS),
    "ILLEGAL_SASL_STATE": ("this listener asks for no login, or for another step of it", ENDS),
    "TOPIC_AUTHORIZATION_FAILED": ("the client has no right on the topic", ENDS),
    "GROUP_AUTHORIZATION_FAILED": ("the client has no right on the group", ENDS),
    "CLUSTER_AUTHORIZATION_FAILED": ("the client has no right on the cluster", ENDS),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": ("the client has no right on this id", ENDS),
    "UNSUPPORTED_VERSION": ("the broker does not have this version", "it takes a lower one"),
    "THROTTLING_QUOTA_EXCEEDED": ("a quota of changes is used up", AGAIN),
    "TOPIC_ALREADY_EXISTS": ("there is such a topic", ENDS),
    "POLICY_VIOLATION": ("a policy of the cluster forbids it", ENDS),
    "REBOOTSTRAP_REQUIRED": ("the cluster knows no broker here", "it begins at its bootstrap"),
    "UNKNOWN_SERVER_ERROR": ("a fault of the broker's; its log tells more", ENDS),
}


def words_of(error: str) -> tuple[str, str]:
    """(what it says, what a client does); of one without words, nothing."""
    return WORDS.get(error, ("", ""))
