"""What becomes of one partition when its ISR, replicas or leader are to change.

The one place that elects leaders, keeps eligible leader replicas (KIP-966) and finishes
reassignments; everything else says what it wants with `PartitionChange` and calls `build`. The
order of the steps and their rules are those of Kafka 4.4's PartitionChangeBuilder, so that both
write the same records for the same event.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from kwire.kraft.controller.state import ControllerState
from kwire.kraft.images.topics import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    RECOVERING,
    PartitionImage,
)
from kwire.protocol import messages as m


class Election(IntEnum):
    """Which leader is wanted: the preferred one, any in sync, or any that is alive."""

    PREFERRED = 0
    ONLINE = 1
    UNCLEAN = 2


class PartitionChange:
    """One wanted change; fields start as the partition is and are set before `build`."""

    def __init__(
        self,
        state: ControllerState,
        topic_name: str,
        topic_id: bytes,
        index: int,
        partition: PartitionImage,
        is_acceptable: Callable[[int], bool] | None = None,
        *,
        min_isr: int | None = None,
    ) -> None:
        self._partition = partition
        self._topic_id = topic_id
        self._index = index
        self._accept = state.acceptor(partition, is_acceptable)
        self._gates = state.gates
        self._elr_enabled = state.elr_enabled
        self._min_isr = state.effective_min_isr(topic_name) if min_isr is None else min_isr
        self._default_directory = state.default_directory
        self._directories: dict[int, bytes] | None = None
        self.isr = list(partition.isr)
        self.replicas = list(partition.replicas)
        self.removing = list(partition.removing)
        self.adding = list(partition.adding)
        self.recovery_state = partition.leader_recovery_state
        self.election = Election.ONLINE
        self.unclean_shutdown_replicas: tuple[int, ...] = ()
        self._elr = list(partition.elr)

    @property
    def directories(self) -> dict[int, bytes]:
        """The directory of each replica, to be changed."""
        if self._directories is None:
            self._directories = dict(zip(self._partition.replicas, self._partition.directories))
        return self._directories

    @property
    def _keeps_replicas(self) -> bool:
        return self.replicas == list(self._partition.replicas)

    def build(self) -> tuple[m.PartitionChangeRecord, int] | None:
        """The PartitionChangeRecord and its version, or None when nothing changes."""
        record = m.PartitionChangeRecord(topic_id=self._topic_id, partition_id=self._index)
        partition = self._partition
        self._complete_reassignment()
        self._populate_elr()
        self._elect(record)
        self._bump_epoch_for_lost_replicas(record)
        self._record_elr(record)
        old_isr = list(self._partition.isr)
        may_be_empty = bool(self.isr) or self._elr_enabled
        if record.isr is None and may_be_empty and self.isr != old_isr:
            record.isr = list(self.isr)
        self._bump_epoch_for_shrunk_isr(record)
        self._record_last_known_leader(record)
        self._record_assignment(record)
        if self.recovery_state not in (partition.leader_recovery_state, NO_RECOVERY_CHANGE):
            record.leader_recovery_state = self.recovery_state
        if not record.tagged:
            return None  # no field has been given a value
        return record, self._gates.partition_change_record

    # --- reassignment ----------------------------------------------------------------------

    def _complete_reassignment(self) -> None:
        if not self.removing and not self.adding:
            return
        isr = [replica for replica in self.isr if replica not in self.removing]
        replicas = [replica for replica in self.replicas if replica not in self.removing]
        if not isr or not replicas or any(replica not in isr for replica in self.adding):
            return
        # A smaller replica set must be in sync as a whole, or it would have fewer copies.
        shrinks = len(self.adding) < len(self.removing)
        if shrinks and any(replica not in isr for replica in replicas):
            return
        self.isr, self.replicas, self.removing, self.adding = isr, replicas, [], []

    # --- eligible leader replicas ----------------------------------------------------------

    def _populate_elr(self) -> None:
        if not self._elr_enabled:
            return
        if len(self.isr) >= self._min_isr:
            self._elr = []
            return
        # Kafka 4.4 keeps replicas that a reassignment took away; they could never be elected.
        candidates = sorted({*self._elr, *self._partition.isr} & {*self.replicas})
        self._elr = [
            replica
            for replica in candidates
            if replica not in self.isr and replica not in self.unclean_shutdown_replicas
        ]

    def _record_elr(self, record: m.PartitionChangeRecord) -> None:
        if record.isr is not None or not self._elr_enabled:
            self._elr = []
        if self._elr != list(self._partition.elr):
            record.eligible_leader_replicas = list(self._elr)

    def _record_last_known_leader(self, record: m.PartitionChangeRecord) -> None:
        """The last leader is kept in the last known ELR while a partition has none."""
        if not self._elr_enabled:
            return
        partition = self._partition
        known = partition.last_known_elr
        loses_leader = record.leader == NO_LEADER and partition.leader != NO_LEADER
        if loses_leader and known != (partition.leader,):
            record.last_known_elr = [partition.leader]
            return
        keeps_leader = partition.leader != NO_LEADER and record.leader != NO_LEADER
        if (record.leader >= 0 or keeps_leader) and known:
            record.last_known_elr = []

    # --- leaders ---------------------------------------------------------------------------

    def _is_valid_leader(self, replica: int) -> bool:
        in_sync = replica in self.isr or (not self.isr and replica in self._elr)
        return in_sync and self._accept(replica)

    def _choose_leader(self) -> tuple[int, bool]:
        """(leader, unclean)."""
        preferred = self.election == Election.PREFERRED
        if preferred and self.replicas and self._is_valid_leader(self.replicas[0]):
            return self.replicas[0], False
        if self._is_valid_leader(self._partition.leader):
            return self._partition.leader, False
        for replica in self.replicas:
            if self._is_valid_leader(replica):
                return replica, False
        if self._may_elect_last_known():
            return self._partition.last_known_elr[0], True
        if self.election == Election.UNCLEAN:
            for replica in self.replicas:
                if self._accept(replica):
                    return replica, True
        return NO_LEADER, False

    def _may_elect_last_known(self) -> bool:
        known = self._partition.last_known_elr
        if not self._elr_enabled or self._elr or self.isr or len(known) != 1:
            return False
        return self._accept(known[0])

    def _elect(self, record: m.PartitionChangeRecord) -> None:
        leader, unclean = self._choose_leader()
        if leader == self._partition.leader:
            return
        if leader in self._elr:
            self.isr = [leader]
            self._elr = [replica for replica in self._elr if replica != leader]
        record.leader = leader
        if unclean:
            # Only the new leader is known to have what it has: this may lose records.
            record.isr = [leader]
            if self._partition.leader_recovery_state != RECOVERING:
                record.leader_recovery_state = RECOVERING

    def _bump_epoch_for_lost_replicas(self, record: m.PartitionChangeRecord) -> None:
        if record.leader != NO_LEADER_CHANGE or self._keeps_replicas:
            return
        if any(replica not in self.replicas for replica in self._partition.replicas):
            record.leader = self._partition.leader

    def _bump_epoch_for_shrunk_isr(self, record: m.PartitionChangeRecord) -> None:
        """Before 3.6 brokers needed it (KAFKA-15021)."""
        if not self._gates.leader_epoch_bump_on_isr_shrink:
            return
        if record.leader != NO_LEADER_CHANGE or record.isr is None:
            return
        if any(replica not in record.isr for replica in self._partition.isr):
            record.leader = self._partition.leader

    # --- assignment ------------------------------------------------------------------------

    def _record_assignment(self, record: m.PartitionChangeRecord) -> None:
        partition = self._partition
        if self.replicas and not (self._directories is None and self._keeps_replicas):
            if self._gates.directory_assignment:
                directories = [
                    self.directories[replica]
                    if replica in self.directories
                    else self._default_directory(replica)
                    for replica in self.replicas
                ]
                if directories != list(partition.directories):
                    record.directories = directories
            if self.replicas != list(partition.replicas):
                record.replicas = list(self.replicas)
        if self.removing != list(partition.removing):
            record.removing_replicas = list(self.removing)
        if self.adding != list(partition.adding):
            record.adding_replicas = list(self.adding)
