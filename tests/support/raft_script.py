"""Runs readable scripts over simulated raft replicas and compares the transcript.

A script is a text of blocks: a line with a command, `----`, the expected transcript, an empty
line. Lines that begin with `#` are comments. Commands:

    cluster IDS [static]            formatted voters; `static` for controller.quorum.voters
    observer ID [auto-join] [asks=IDS]   a node that joins; asks these (all) for the leader
    start [IDS]                     start (again)
    crash IDS                       stop without a word; what is not flushed is lost
    refused LEADER IDS              these are told that the leader's machine refuses connections
    cut A B | heal                  drop what goes from A to B (both ways: `cut A<>B`) | undo all
    run MS                          let time pass, deliver everything
    timeout ID                      move time to this node's election, fire it alone
    deliver [N]                     deliver the N oldest messages (all that are there)
    drop [N]                        lose the N oldest messages
    settle                          deliver until nothing is on the way
    append ID TEXT...               the leader (LEADER: the newest one) appends records
    hold-flush ID | flush ID        keep flushes waiting | finish the oldest one
    snapshot ID | prune ID          take a snapshot | delete the log before the newest one
    add-voter ID via LEADER | remove-voter ID via LEADER | upgrade via LEADER
    resign ID | shutdown ID
    describe ID                     DescribeQuorum
    status | log IDS | state IDS    what the nodes are | their logs | their state machines

Idle Fetch traffic is left out of the transcript unless `show fetch` was said.
"""

from __future__ import annotations

from typing import Any

from kwire.kraft.raft import effects as fx
from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.control_records import ControlType
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol import records
from kwire.protocol.errors import ErrorCode
from tests.support.raft_cluster import (
    CLUSTER_ID,
    InFlight,
    RaftCluster,
    RaftNode,
    directory_of,
    endpoint_of,
)

IDLE = (
    "Fetch nothing",
    "Fetch e",
    "Fetch answer NOT_LEADER_OR_FOLLOWER",
    "Fetch answer FENCED_LEADER_EPOCH",
    "Fetch answer UNKNOWN_LEADER_EPOCH",
)


class NodeJitter:
    """A node's draws depend on its id alone, so that a script knows who times out first."""

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id

    def random_bytes(self, size_bytes: int) -> bytes:
        return bytes(size_bytes)

    def below(self, limit: int) -> int:
        return (self._node_id * 100) % limit


class Script:
    """Executes commands; `lines` collects the transcript of the present one."""

    def __init__(self) -> None:
        self.cluster = RaftCluster()
        self.lines: list[str] = []
        self.show_fetch = False
        self._roles: dict[int, str] = {}
        self.cluster.listeners.append(self._effect)
        self._static = False

    def execute(self, command: str) -> str:
        self.lines = []
        name, *arguments = command.split()
        getattr(self, "do_" + name.replace("-", "_"))(*arguments)
        self._note_roles()
        return "\n".join(self.lines) or "ok"

    # ---- the transcript

    def _say(self, text: str) -> None:
        self.lines.append(text)

    def _note_roles(self) -> None:
        for node in self.cluster.nodes.values():
            now = self._role(node)
            before = self._roles.get(node.id, "down")
            if now != before:
                self._roles[node.id] = now
                self._say(f"{node.id}: {before} -> {now}")

    def _role(self, node: RaftNode) -> str:
        if node.raft is None:
            return "down"
        role = node.raft.role
        text = f"{role.name.value} e{role.epoch}"
        if role.voted is not None and role.name.value in ("Unattached", "Follower"):
            text += f" voted {role.voted.id}"
        if role.name.value == "Follower":
            text += f" of {role.leader_id}"
        return text

    def _effect(self, node: RaftNode, effect: fx.Effect) -> None:
        self._note_roles()
        if isinstance(effect, fx.AppendControl):
            kinds = ", ".join(ControlType(kind).name.lower() for kind, _ in effect.records)
            self._say(f"{node.id}: appends {kinds} at {effect.base_offset}")
        elif isinstance(effect, fx.AppendFetched):
            shapes = [header for _, header in records.iterate_headers(effect.batches)]
            last = shapes[-1].last_offset
            self._say(f"{node.id}: appends {effect.base_offset}..{last} from the leader")
        elif isinstance(effect, fx.TruncateTo):
            self._say(f"{node.id}: truncates to {effect.end_offset}")
        elif isinstance(effect, fx.Commit):
            self._say(f"{node.id}: commits {effect.offset}")
        elif isinstance(effect, fx.LoadSnapshot):
            self._say(f"{node.id}: loads snapshot {effect.snapshot.offset}-{effect.snapshot.epoch}")
        elif isinstance(effect, fx.LeaderChanged) and effect.leader_id == node.id:
            self._say(f"{node.id}: leads epoch {effect.epoch}")

    def _deliver(self, flight: InFlight) -> None:
        dead = self.cluster.nodes.get(flight.target)
        cut = (flight.source, flight.target) in self.cluster.cut
        arrow = f"{flight.source} > {flight.target}"
        text = (
            _describe_response(flight.body)
            if flight.is_response
            else _describe_request(flight.body)
        )
        idle = text is None or text.startswith(IDLE)
        if not idle or self.show_fetch:
            lost = " (lost)" if cut or dead is None or dead.raft is None else ""
            line = f"{arrow} {text}{lost}"
            # Retries against a node that is gone: once is enough.
            if not lost or line not in self.lines:
                self._say(line)
        self.cluster.deliver(flight)
        self._note_roles()

    # ---- commands

    def do_show(self, what: str) -> None:
        assert what == "fetch"
        self.show_fetch = True

    def do_cluster(self, *arguments: str) -> None:
        ids = [int(text) for text in arguments if text.isdecimal()]
        self._static = "static" in arguments
        for node_id in ids:
            self.cluster.add(node_id, voters=ids, static=self._static, random=NodeJitter(node_id))

    def do_observer(self, node_id: str, *options: str) -> None:
        asks = sorted(self.cluster.nodes)
        for option in options:
            if option.startswith("asks="):
                asks = [int(text) for text in option[5:].split(",")]
        self.cluster.add(
            int(node_id),
            bootstrap=asks,
            formatted=False,
            random=NodeJitter(int(node_id)),
            auto_join="auto-join" in options,
            can_be_voter="broker" not in options,
        )

    def do_start(self, *ids: str) -> None:
        for node_id in [int(text) for text in ids] or list(self.cluster.nodes):
            self.cluster.start(node_id)

    def do_crash(self, *ids: str) -> None:
        for node_id in ids:
            self.cluster.crash(int(node_id))

    def do_refused(self, leader_id: str, *ids: str) -> None:
        for node_id in ids:
            node = self.cluster.nodes[int(node_id)]
            assert node.raft is not None
            refused = msg.LeaderRefused(int(leader_id), node.raft.epoch, self.cluster.now_ms)
            node.step(refused, self.cluster.now_ms)
        self.cluster.collect()

    def do_cut(self, *pairs: str) -> None:
        for pair in pairs:
            one, other = (int(text) for text in pair.replace("<>", ">").split(">"))
            self.cluster.cut.add((one, other))
            if "<>" in pair:
                self.cluster.cut.add((other, one))

    def do_heal(self) -> None:
        self.cluster.cut.clear()

    def do_run(self, duration: str) -> None:
        cluster = self.cluster
        end_ms = cluster.now_ms + int(duration)
        self.do_settle()
        while True:
            deadlines = [n.raft.deadline_ms for n in cluster.running() if n.raft is not None]
            next_ms = min(deadlines, default=end_ms)
            if next_ms > end_ms:
                break
            cluster.now_ms = max(cluster.now_ms, next_ms)
            cluster.fire()
            self._note_roles()
            self.do_settle()
        cluster.now_ms = end_ms

    def do_timeout(self, node_id: str) -> None:
        node = self.cluster.nodes[int(node_id)]
        assert node.raft is not None
        role: Any = node.raft.role
        at_ms = role.fetch_by_ms if hasattr(role, "fetch_by_ms") else role.election_at_ms
        self.cluster.now_ms = max(self.cluster.now_ms, at_ms)
        node.step(msg.Tick(), self.cluster.now_ms)
        self.cluster.collect()

    def do_deliver(self, count: str = "") -> None:
        self.cluster.collect()
        batch = list(self.cluster.network)
        for flight in batch[: int(count)] if count else batch:
            self._deliver(flight)

    def do_drop(self, count: str = "") -> None:
        self.cluster.collect()
        keep = len(self.cluster.network) if not count else int(count)
        del self.cluster.network[:keep]

    def do_settle(self) -> None:
        for _ in range(5000):
            self.cluster.collect()
            if not self.cluster.network:
                return
            self._deliver(self.cluster.network[0])
        raise AssertionError("the network never gets quiet")

    def do_append(self, node_id: str, *payloads: str) -> None:
        node = self.cluster.leader() if node_id == "LEADER" else self.cluster.nodes[int(node_id)]
        for payload in payloads:
            offset = node.append(payload.encode(), self.cluster.now_ms)
            self._say(f"{node.id}: appends {payload} at {offset}")
        self.cluster.collect()

    def do_hold_flush(self, node_id: str) -> None:
        self.cluster.nodes[int(node_id)].flush_at_once = False

    def do_flush(self, node_id: str) -> None:
        self.cluster.nodes[int(node_id)].flush(self.cluster.now_ms)
        self.cluster.collect()

    def do_snapshot(self, node_id: str) -> None:
        snapshot = self.cluster.nodes[int(node_id)].take_snapshot(self.cluster.now_ms)
        assert snapshot is not None
        self._say(f"{node_id}: snapshot {snapshot.offset}-{snapshot.epoch}")

    def do_prune(self, node_id: str) -> None:
        node = self.cluster.nodes[int(node_id)]
        assert node.raft is not None
        latest = node.raft.log.latest_snapshot
        assert latest is not None
        node.step(msg.DeletePrefix(latest), self.cluster.now_ms)
        self._say(f"{node_id}: log starts at {node.raft.log.start_offset}")

    def do_add_voter(self, node_id: str, via: str, leader: str) -> None:
        listener = m.AddRaftVoterRequest.Listener
        endpoint = endpoint_of(int(node_id))
        request = m.AddRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            timeout_ms=5000,
            voter_id=int(node_id),
            voter_directory_id=directory_of(int(node_id)),
            listeners=[listener(name=endpoint.name, host=endpoint.host, port=endpoint.port)],
        )
        self._ask(int(leader), request)

    def do_remove_voter(self, node_id: str, via: str, leader: str) -> None:
        request = m.RemoveRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            voter_id=int(node_id),
            voter_directory_id=directory_of(int(node_id)),
        )
        self._ask(int(leader), request)

    def do_upgrade(self, via: str, leader: str) -> None:
        node = self.cluster.nodes[int(leader)]
        assert node.raft is not None
        unanswered: Pending[None] = Pending()
        node.step(msg.UpgradeVersion(node.raft.epoch, 1, False, unanswered), self.cluster.now_ms)
        self.do_settle()
        answer = node.upgrades[-1]
        self._say(f"upgrade: {ErrorCode(answer.code).name} {answer.message or ''}".rstrip())

    def _ask(self, node_id: int, request: Any) -> None:
        self.cluster.client_replies.clear()
        self.cluster.ask(node_id, request)
        self.do_settle()
        self.do_replies()

    def do_replies(self) -> None:
        for _, response in self.cluster.client_replies:
            text = f"client: {ErrorCode(response.error_code).name}"
            message = getattr(response, "error_message", None)
            self._say(f"{text}: {message}" if message else text)
        self.cluster.client_replies.clear()

    def do_resign(self, node_id: str) -> None:
        node = self.cluster.nodes[int(node_id)]
        assert node.raft is not None
        node.step(msg.Resign(node.raft.epoch), self.cluster.now_ms)
        self.cluster.collect()

    def do_shutdown(self, node_id: str) -> None:
        self.cluster.nodes[int(node_id)].step(msg.Shutdown(), self.cluster.now_ms)
        self.cluster.collect()

    def do_describe(self, node_id: str) -> None:
        request = m.DescribeQuorumRequest
        self.cluster.client_replies.clear()
        self.cluster.ask(
            int(node_id),
            request(
                topics=[
                    request.TopicData(
                        topic_name="__cluster_metadata",
                        partitions=[request.PartitionData(partition_index=0)],
                    )
                ]
            ),
        )
        partition = self.cluster.client_replies[-1][1].topics[0].partitions[0]
        if partition.error_code:
            self._say(ErrorCode(partition.error_code).name)
            return
        self._say(
            f"leader {partition.leader_id} epoch {partition.leader_epoch} "
            f"high watermark {partition.high_watermark}"
        )
        for kind in ("current_voters", "observers"):
            for replica in getattr(partition, kind):
                self._say(f"{kind[:-1]} {replica.replica_id} end {replica.log_end_offset}")
        self.cluster.client_replies.clear()

    def do_status(self) -> None:
        for node in self.cluster.nodes.values():
            if node.raft is None:
                self._say(f"{node.id}: down")
                continue
            log = node.raft.log
            self._say(
                f"{node.id}: {self._role(node)} log {log.start_offset}..{log.end_offset} "
                f"hw {log.high_watermark} voters {node.raft.voters.voters.ids}"
            )

    def do_log(self, *ids: str) -> None:
        for node_id in ids:
            node = self.cluster.nodes[int(node_id)]
            parts = []
            for batch in node.disk.batches:
                if batch.control:
                    parts.append(f"{batch.base_offset}@{batch.epoch}:control")
                else:
                    value = records.read_batch(batch.data)[0].value or b""
                    parts.append(f"{batch.base_offset}@{batch.epoch}:{value.decode()}")
            self._say(f"{node_id}: {' '.join(parts)}")

    def do_state(self, *ids: str) -> None:
        for node_id in ids:
            node = self.cluster.nodes[int(node_id)]
            values = [
                (records.read_batch(data)[0].value or b"").decode() for _, _, data in node.state
            ]
            self._say(f"{node_id}: {' '.join(values)}")


def _describe_request(request: Any) -> str | None:
    name: str = type(request).NAME.removesuffix("Request")
    if name == "ApiVersions":
        return name
    if name in ("AddRaftVoter", "RemoveRaftVoter", "UpdateRaftVoter"):
        return f"{name} {request.voter_id}"
    partition = request.topics[0].partitions[0]
    if name == "Vote":
        kind = "PreVote" if partition.pre_vote else "Vote"
        return (
            f"{kind} e{partition.replica_epoch} log {partition.last_offset}"
            f"@{partition.last_offset_epoch}"
        )
    if name == "Fetch":
        return (
            f"Fetch e{partition.current_leader_epoch} from {partition.fetch_offset}"
            f"@{partition.last_fetched_epoch} hw {partition.high_watermark}"
        )
    if name == "FetchSnapshot":
        snapshot = partition.snapshot_id
        return f"FetchSnapshot {snapshot.end_offset}-{snapshot.epoch} at {partition.position}"
    if name == "EndQuorumEpoch":
        successors = [entry.candidate_id for entry in partition.preferred_candidates]
        return f"EndQuorumEpoch e{partition.leader_epoch} successors {successors}"
    return f"{name} e{partition.leader_epoch}"


def _describe_response(response: Any) -> str | None:
    if response is None:
        return None
    name = type(response).NAME.removesuffix("Response")
    if response.error_code:
        return f"{name} answer {ErrorCode(response.error_code).name}"
    if name in ("ApiVersions", "AddRaftVoter", "RemoveRaftVoter", "UpdateRaftVoter"):
        return f"{name} answer"
    topics = response.responses if name == "Fetch" else response.topics
    partition = topics[0].partitions[0]
    if partition.error_code:
        leader = getattr(partition, "current_leader", partition)
        return (
            f"{name} answer {ErrorCode(partition.error_code).name} "
            f"(leader {leader.leader_id} e{leader.leader_epoch})"
        )
    if name == "Vote":
        return "Vote granted" if partition.vote_granted else "Vote refused"
    if name == "Fetch":
        if partition.diverging_epoch.epoch >= 0:
            diverging = partition.diverging_epoch
            return f"Fetch diverging {diverging.end_offset}@{diverging.epoch}"
        if partition.snapshot_id.epoch >= 0:
            snapshot = partition.snapshot_id
            return f"Fetch snapshot {snapshot.end_offset}-{snapshot.epoch}"
        size = len(partition.records or b"")
        return "Fetch records" if size else "Fetch nothing"
    if name == "FetchSnapshot":
        return f"FetchSnapshot {len(partition.unaligned_records)} of {partition.size} bytes"
    return f"{name} answer"


def run_script(text: str) -> tuple[str, str]:
    """(the script with the transcript it produced, the script as it is)."""
    script = Script()
    out: list[str] = []
    lines = text.splitlines()
    index = 0
    while index < len(lines):
        line = lines[index]
        out.append(line)
        index += 1
        if not line or line.startswith("#"):
            continue
        assert index >= len(lines) or lines[index] == "----", f"no ---- after {line!r}"
        index += 1
        while index < len(lines) and lines[index]:
            index += 1
        out.append("----")
        out.append(script.execute(line))
    return "\n".join(out) + "\n", "\n".join(lines) + "\n"
