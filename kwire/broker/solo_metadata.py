"""TEMPORARY single-process metadata without a log, until kraft/driver.py is there."""

from __future__ import annotations

from typing import Any

from kwire.kraft.controller.context import ControllerConfig, ControllerContext
from kwire.kraft.controller.controller import Controller
from kwire.kraft.image import MetadataDelta, MetadataImage
from kwire.pending import Pending


class SoloMetadata:
    def __init__(self, config: ControllerConfig, loop: Any, clock: Any, random: Any, publish: Any) -> None:
        self.controller = Controller(config, random)
        self.image = MetadataImage()
        self.offset = -1
        self.loop = loop
        self.clock = clock
        self.publish = publish
        self.timer: Any = None
        self.stopped = False

    def _now(self) -> int:
        return int(self.loop.time() * 1000)

    def _apply(self, records: Any) -> None:
        if not records:
            return
        delta = MetadataDelta()
        for record, _version in records:
            self.offset += 1
            self.controller.replay(record, self.offset, 1)
            self.image.replay(record, self.offset, 1, delta)
        self.publish(delta, self.image)

    def start(self) -> None:
        self._apply(self.controller.activate(self._now(), 0, 1, None, True))
        self._tick()

    def _tick(self) -> None:
        if self.stopped:
            return
        records = self.controller.expire(self._now(), self.clock.wall_ms(), self.offset + 1)
        self._apply(records)
        self.timer = self.loop.call_later(0.1, self._tick)

    def handle(self, request: Any, context: ControllerContext) -> Pending[Any]:
        context.next_offset = self.offset + 1
        context.wall_ms = self.clock.wall_ms()
        records, response = self.controller.handle(request, context, self._now())
        pending: Pending[Any] = Pending()

        def commit() -> None:
            pending.complete(response)

        self._apply(records)
        self.loop.call_soon(commit)
        return pending

    def stop(self) -> None:
        self.stopped = True
        if self.timer:
            self.timer.cancel()
