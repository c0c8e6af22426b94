"""Transactions against a model: what read_committed shows after restarts, kills and power cuts."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import pytest

from kwire.log.partition.config import LogConfig
from tests.support.data_directories import committed_offsets
from tests.support.logs import World

CONFIG = LogConfig(segment_bytes=1200, index_interval_bytes=200)
PRODUCERS = (1, 2, 3)


class Entry(NamedTuple):
    """A batch: its offsets, its producer (0 for none), and the kind of marker if it is one."""

    first: int
    last: int
    producer_id: int
    marker: str = ""


class Model:
    """The batches that the log holds, and what follows from them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = World(seed, CONFIG)
        self.world.options = {"verify_transactions": False}
        self.world.log.close()
        self.world.open()
        self.entries: list[Entry] = []
        self.flushed = 0

    # -- steps --

    def plain(self) -> None:
        self._note(self.world.append(self.random.randint(1, 4)), 0)

    def transactional(self) -> None:
        producer_id = self.random.choice(PRODUCERS)
        known = self.world.log.producers.entries.get(producer_id)
        sequence = known.last_sequence + 1 if known is not None else 0
        info = self.world.append(
            self.random.randint(1, 4),
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=True,
        )
        self._note(info, producer_id)

    def end(self) -> None:
        producer_id = self.random.choice(PRODUCERS)
        commit = self.random.random() < 0.5
        info = self.world.mark(producer_id, 0, commit=commit)
        self._note(info, producer_id, "commit" if commit else "abort")

    def _note(self, info: Any, producer_id: int, marker: str = "") -> None:
        self.world.scheduler.turn()
        assert info.written.done
        self.entries.append(Entry(info.base_offset, info.last_offset, producer_id, marker))

    def flush(self) -> None:
        self.world.log.flush()
        self.world.scheduler.turn()
        self.flushed = self.world.log.log_end_offset

    def roll(self) -> None:
        self.world.log.roll()
        self.world.scheduler.turn()

    def truncate(self) -> None:
        if self.entries:
            offset = self.random.choice(self.entries).first
            self.world.log.truncate_to(offset)
            self.entries = [e for e in self.entries if e.first < offset]
            self.flushed = min(self.flushed, offset)

    def reopen(self) -> None:
        self.world.reopen()
        self.flushed = self.world.log.log_end_offset

    def kill(self) -> None:
        self.world.kill(recovery_point=self.random.choice([0, None, self.flushed]))

    def power_cut(self) -> None:
        self.world.disk.crash()
        self.world.open(recovery_point=self.random.choice([0, self.flushed]))
        end = self.world.log.log_end_offset
        assert end >= self.flushed
        self.entries = [e for e in self.entries if e.last < end]

    # -- what has to hold --

    def check(self) -> None:
        log = self.world.log
        log.update_high_watermark(log.log_end_offset)
        undecided: dict[int, list[Entry]] = {}
        committed: list[int] = []
        for entry in self.entries:
            if entry.marker:
                ended = undecided.pop(entry.producer_id, [])
                if entry.marker == "commit":
                    committed += [o for e in ended for o in range(e.first, e.last + 1)]
            elif entry.producer_id:
                undecided.setdefault(entry.producer_id, []).append(entry)
            else:
                committed += range(entry.first, entry.last + 1)
        starts = [entries[0].first for entries in undecided.values()]
        stable = min(starts, default=log.log_end_offset)
        assert log.last_stable_offset == stable
        assert committed_offsets(log) == sorted(o for o in committed if o < stable)
        opened = {p.producer_id: p.transaction_first_offset for p in log.active_producers()}
        for producer_id in PRODUCERS:
            expected = undecided.get(producer_id)
            found = opened.get(producer_id, -1)
            assert found == (expected[0].first if expected else -1)


STEPS = (
    ["plain"] * 5
    + ["transactional"] * 12
    + ["end"] * 6
    + ["flush", "roll", "truncate", "reopen", "kill", "power_cut", "check", "check"]
)


@pytest.mark.parametrize("seed", range(60))
def test_random_transactions(seed: int) -> None:
    model = Model(seed)
    history: list[str] = []
    for _ in range(120):
        history.append(model.random.choice(STEPS))
        try:
            getattr(model, history[-1])()
        except Exception as error:
            error.add_note(f"seed {seed}, after {history}")
            raise
    model.check()


def test_the_model_can_fail() -> None:
    model = Model(1)
    model.transactional()
    model.check()
    model.entries[-1] = model.entries[-1]._replace(producer_id=0)
    with pytest.raises(AssertionError):
        model.check()
