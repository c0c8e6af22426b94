"""The quorum's leader dies and its machine says so: how soon there is another, and false alarms."""

from __future__ import annotations

import itertools

import pytest

from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.roles.follower import Follower
from tests.support.effort import seeds
from tests.support.raft_script import Script
from tests.unit.kraft.test_raft_random import STEPS, Chaos

ALARMS_PER_MILLE = 30
SETTLED = ("cluster 1 2 3", "start", "run 1100", "append 1 a", "run 20")
FETCH_TIMEOUT_MS = 2000


def leads_after_ms(script: Script, limit_ms: int) -> int:
    """How long it takes until one of the nodes leads."""
    for passed_ms in range(0, limit_ms, 10):
        if script.cluster.leaders():
            return passed_ms
        script.execute("run 10")
    raise AssertionError(f"no leader within {limit_ms} ms")


@pytest.mark.parametrize("order", list(itertools.permutations((2, 3))))
@pytest.mark.parametrize("apart_ms", [0, 5, 60, 250])
@pytest.mark.parametrize("behind", [None, 2, 3])
def test_another_leads_long_before_the_fetch_time_out(
    order: tuple[int, int], apart_ms: int, behind: int | None
) -> None:
    """Whoever is told first, and however much later the other one, and whoever has less."""
    script = Script()
    for command in SETTLED:
        script.execute(command)
    if behind is not None:
        script.execute(f"cut 1<>{behind}")
        script.execute("append 1 b")
        script.execute("run 20")
    script.execute("crash 1")
    script.execute(f"refused 1 {order[0]}")
    script.execute(f"run {apart_ms}")
    script.execute(f"refused 1 {order[1]}")
    assert leads_after_ms(script, FETCH_TIMEOUT_MS // 2) < FETCH_TIMEOUT_MS // 2
    leader = script.cluster.leader()
    assert leader.id != behind, "it lacks what is committed"


def test_split_votes_are_soon_followed_by_others() -> None:
    """Both stand in the same moment, and each gets its own vote."""
    script = Script()
    for command in (*SETTLED, "crash 1", "refused 1 2 3"):
        script.execute(command)
    second = script.cluster.nodes[3].raft
    assert second is not None
    assert isinstance(second.role, Follower)
    second.role.fetch_by_ms = script.cluster.now_ms  # as if it were the first in line, too
    script.execute("timeout 3")
    transcript = script.execute("run 10")
    assert "2: Prospective e1 -> Candidate e2" in transcript
    assert "3: Prospective e1 -> Candidate e2" in transcript
    assert not script.cluster.leaders()
    assert leads_after_ms(script, FETCH_TIMEOUT_MS // 2) < FETCH_TIMEOUT_MS // 2


def test_two_voters_can_elect_nobody_and_go_on_when_the_leader_is_back() -> None:
    script = Script()
    for command in ("cluster 1 2", "start", "run 1100", "append 1 a", "run 20", "crash 1"):
        script.execute(command)
    script.execute("refused 1 2")
    script.execute("run 3000")
    assert not script.cluster.leaders()
    raft = script.cluster.nodes[2].raft
    assert raft is not None
    assert raft.epoch == 1, "pre-votes raise no epoch"
    script.execute("start 1")
    script.execute("run 4000")
    assert script.cluster.leaders()


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_voter_that_has_lost_its_leader_is_not_led_until_there_is_one(is_refused: bool) -> None:
    """It knows the last one for as long as nobody else can lead, and says so in what it is told of
    the quorum; whoever asks whether the quorum works must not be told yes."""
    script = Script()
    for command in SETTLED:
        script.execute(command)
    raft = script.cluster.nodes[2].raft
    assert raft is not None
    assert raft.is_led
    for command in ("crash 3", "crash 1", *(["refused 1 2"] if is_refused else [])):
        script.execute(command)
    script.execute(f"run {FETCH_TIMEOUT_MS + 10}")
    for _ in range(100):
        script.execute("run 50")
        assert raft.leader_id == 1
        assert not raft.is_led
    script.execute("start 1")
    script.execute("run 8000")
    assert raft.is_led
    leader = script.cluster.leader()
    assert leader.raft is not None
    assert leader.raft.is_led


def test_news_of_an_older_epoch_or_from_before_the_last_sign_of_life_count_for_nothing() -> None:
    script = Script()
    for command in SETTLED:
        script.execute(command)
    cluster = script.cluster
    raft = cluster.nodes[2].raft
    assert raft is not None
    assert raft.leader_heard is not None
    heard_ms = raft.leader_heard[1]
    for message in (
        msg.LeaderRefused(1, raft.epoch - 1, cluster.now_ms),
        msg.LeaderRefused(3, raft.epoch, cluster.now_ms),
        msg.LeaderRefused(1, raft.epoch, heard_ms - 1),
    ):
        cluster.nodes[2].step(message, cluster.now_ms)
        role = raft.role
        assert isinstance(role, Follower)
        assert not role.leader_refuses
    leader = cluster.nodes[1]
    leader.step(msg.LeaderRefused(1, raft.epoch, cluster.now_ms), cluster.now_ms)
    assert leader.raft is not None
    assert leader.raft.is_leader


class FalseAlarms(Chaos):
    """Followers are told that their leader is gone, at any time and mostly without any truth."""

    def step(self) -> None:
        if self.random.below(1000) < ALARMS_PER_MILLE:
            self._alarm()
        super().step()

    def _alarm(self) -> None:
        followers = [n for n in self.cluster.running() if n.raft and n.raft.leader_id is not None]
        node = self.any_of(followers)
        if node is not None:
            raft, now_ms = node.raft, self.cluster.now_ms
            node.step(msg.LeaderRefused(raft.leader_id, raft.epoch, now_ms), now_ms)


@pytest.mark.parametrize("seed", seeds(24))
def test_false_alarms_break_nothing(seed: int) -> None:
    chaos = FalseAlarms(seed, static=seed % 2 == 0, reconfigure=seed % 3 == 0)
    for _ in range(STEPS):
        chaos.step()
    chaos.recover()
