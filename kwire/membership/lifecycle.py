"""The broker's life in the cluster: registration, heartbeats, fencing, controlled shutdown.

    state       leaves it when
    REGISTERING the controller accepted the registration                  -> FENCED
    FENCED      it has caught up, its logs are loaded and the controller
                unfenced it                                               -> RUNNING
    RUNNING     the controller fenced it                                  -> FENCED
                its epoch is not the controller's any more                -> REGISTERING
                it wants to stop                                          -> STOPPING
    STOPPING    the controller lets it go, or the time is over            -> STOPPED

Source: KIP-631; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Callable
from typing import TypeVar

from kwire.membership.asking import AskController
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.structs import Request

logger = logging.getLogger(__name__)

Response = TypeVar("Response", "m.BrokerRegistrationResponse", "m.BrokerHeartbeatResponse")

START_MS = 5
RETRY_MS = 50
RETRY_MS_MAX = 1000
FATAL = (
    ErrorCode.INCONSISTENT_CLUSTER_ID,
    ErrorCode.INVALID_REGISTRATION,
    ErrorCode.UNSUPPORTED_VERSION,
)


class State(enum.Enum):
    """See the module."""

    NEW = "not started"
    REGISTERING = "registering"
    FENCED = "fenced"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"


class BrokerLifecycle:
    """Keeps this broker registered.

    `registration()` is the request of the next registration, `image_offset()` how far the published
    metadata is, `followed_offset()` how far this broker does what it says, `cordoned()` the ids of
    the log directories that get no new replicas, None where the controller knows of no such. A
    directory that fails and is not reported within `directory_failure_ms` ends the broker:
    `on_fatal(why)`, as a registration that can never succeed does. One that `goes_on` takes up the
    registration of an incarnation that never ended: it asks to be served only when its logs are
    loaded, and is not fenced meanwhile.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        broker_id: int,
        ask: AskController,
        registration: Callable[[], m.BrokerRegistrationRequest],
        image_offset: Callable[[], int],
        heartbeat_interval_ms: int,
        on_fatal: Callable[[str], None],
        election_ms: int = 0,
        waits_for_logs: bool = False,
        cordoned: Callable[[], list[bytes] | None] = lambda: None,
        followed_offset: Callable[[], int] | None = None,
        directory_failure_ms: int = 30_000,
        goes_on: bool = False,
    ) -> None:
        self._election_ms = election_ms
        self._goes_on = goes_on
        self.state = State.NEW
        self.epoch = -1
        self.caught_up: Pending[None] = Pending()  # our registration is in the published metadata
        self.started: Pending[None] = Pending()  # first time unfenced
        self.stopped: Pending[None] = Pending()
        self._loop = loop
        self._made_s = loop.time()
        self._broker_id = broker_id
        self._ask = ask
        self._registration = registration
        self._image_offset = image_offset
        self._followed_offset = followed_offset or image_offset
        self._interval_ms = heartbeat_interval_ms
        self._on_fatal = on_fatal
        self._timer: asyncio.TimerHandle | None = None
        self._failures = 0
        self._asking: (
            Pending[m.BrokerRegistrationResponse] | Pending[m.BrokerHeartbeatResponse] | None
        ) = None
        self._retry: Callable[[], None] | None = None
        self._is_ready = not waits_for_logs
        self._heard_s = 0.0
        self._offline_directories: list[bytes] = []
        self._reported_offline: list[bytes] = []
        self._ever_reported: set[bytes] = set()
        self._directory_failure_ms = directory_failure_ms
        self._cordoned = cordoned
        self._has_news = False

    @property
    def is_caught_up(self) -> bool:
        """Whether the published metadata holds our own registration."""
        return self.epoch >= 0 and self._image_offset() >= self.epoch

    @property
    def uptime_ms(self) -> int:
        """For how long there has been this broker."""
        return int((self._loop.time() - self._made_s) * 1000)

    @property
    def silence_ms(self) -> int:
        """How long no controller has accepted anything."""
        return int((self._loop.time() - self._heard_s) * 1000)

    def start(self) -> None:
        """Register, and stay registered."""
        self._register()

    def image_published(self) -> None:
        """The published metadata moved: a fenced broker may be ready now."""
        if self.state is State.FENCED and self.is_caught_up:
            self.caught_up.complete(None)
            if self._is_ready and self._asking is None:
                self._heartbeat()

    def ready_to_serve(self) -> None:
        """The logs are loaded: the controller may unfence us."""
        self._is_ready = True
        if self.state is State.FENCED and self._asking is None:
            self._heartbeat()

    def directories_failed(self, directory_ids: list[bytes]) -> None:
        """These log directories are offline until this broker is started again.

        One that fails while others may be led here is reported in time, or the broker ends: whoever
        waits for its partitions gets another leader then. Those that failed before the start are
        not led by anybody here yet.
        """
        if self.epoch >= 0:
            for failed in directory_ids:
                if failed not in self._offline_directories:
                    self._loop.call_later(
                        self._directory_failure_ms / 1000, self._check_reported, failed
                    )
        self._offline_directories = directory_ids
        self.directories_changed()

    def _check_reported(self, directory_id: bytes) -> None:
        if directory_id not in self._ever_reported and not self._is_ending():
            self._on_fatal(
                f"no controller was told within {self._directory_failure_ms} ms that the log "
                f"directory {uuids.to_text(directory_id)} has failed (log.dir.failure.timeout.ms)"
            )

    def _is_ending(self) -> bool:
        return self.state in (State.STOPPING, State.STOPPED)

    def directories_changed(self) -> None:
        """There is news of the log directories: the next heartbeat is due at once."""
        self._has_news = self._asking is not None
        if self.state in (State.FENCED, State.RUNNING):
            self._heartbeat()

    def controller_changed(self) -> None:
        """Whoever we asked does not answer for the cluster any more: ask the new one at once."""
        retry = self._retry
        if retry is None or self.state in (State.NEW, State.STOPPED):
            return
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None
        self._failures = 0
        self._later(0, retry)

    def begin_shutdown(self) -> Pending[None]:
        """Give up leaderships; the result comes when the controller lets us go."""
        if self.state in (State.NEW, State.REGISTERING):
            self.close()
            self.stopped.complete(None)
        elif self.state is not State.STOPPED:
            self.state = State.STOPPING
            self._heartbeat()
        return self.stopped

    def close(self) -> None:
        """No more heartbeats."""
        self.state = State.STOPPED
        self._cancel_timer()
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    # -- registration

    def _register(self) -> None:
        self.state = State.REGISTERING
        self._retry = self._register
        self._send(ApiKey.BROKER_REGISTRATION, self._registration(), self._registered)

    def _registered(self, response: m.BrokerRegistrationResponse) -> None:
        self.epoch = response.broker_epoch
        self.state = State.FENCED
        self._reported_offline = []
        logger.info("broker %d is registered at epoch %d", self._broker_id, self.epoch)
        if self.is_caught_up:
            self.caught_up.complete(None)
        if self._is_ready or not self._goes_on:
            self._heartbeat()

    # -- heartbeats

    def _heartbeat(self) -> None:
        if self._asking is not None or self.state is State.STOPPED:
            return  # the next one follows its answer
        self._cancel_timer()
        self._retry = self._heartbeat
        offline = self._offline_directories
        # Of one that is unfenced and loses a directory at once the controller would let what is in
        # that directory be led here: it decides both on what was before.
        may_serve = self.is_caught_up and self._is_ready and offline == self._reported_offline
        request = m.BrokerHeartbeatRequest(
            broker_id=self._broker_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._followed_offset(),
            want_fence=self.state is State.FENCED and not may_serve,
            want_shut_down=self.state is State.STOPPING,
            offline_log_dirs=offline,
            cordoned_log_dirs=self._cordoned() if self.is_caught_up else None,
        )
        self._send(ApiKey.BROKER_HEARTBEAT, request, lambda heard: self._heard(heard, offline))

    def _heard(self, response: m.BrokerHeartbeatResponse, offline: list[bytes]) -> None:
        news = self._has_news or offline != self._reported_offline
        self._has_news, self._reported_offline = False, offline
        self._ever_reported.update(offline)
        if self.state is State.STOPPING:
            if response.should_shut_down:
                self.close()
                self.stopped.complete(None)
                return
            self._later(RETRY_MS, self._heartbeat)
            return
        was = self.state
        self.state = State.FENCED if response.is_fenced else State.RUNNING
        if self.state is State.RUNNING and was is not State.RUNNING:
            logger.info("broker %d is unfenced", self._broker_id)
            self.started.complete(None)
        elif self.state is State.FENCED and was is State.RUNNING:
            logger.warning("broker %d was fenced by the controller", self._broker_id)
        starting = self.state is State.FENCED and not self.started.done
        soon = news or (starting and self.is_caught_up and self._is_ready)
        self._later(START_MS if soon else self._interval_ms, self._heartbeat)

    # -- asking

    def _send(
        self, api_key: int, request: Request[Response], accept: Callable[[Response], None]
    ) -> None:
        pending = self._ask(int(api_key), request)
        self._asking = pending
        pending.add_done_callback(lambda done: self._answered(done, accept))

    def _answered(self, done: Pending[Response], accept: Callable[[Response], None]) -> None:
        self._asking = None
        if self.state is State.STOPPED:
            return
        error = done.error()
        code: int
        if error is None:
            response = done.result()
            code = response.error_code
            if code == 0:
                self._failures = 0
                self._heard_s = self._loop.time()
                accept(response)
                return
        else:
            code = int(error.code) if isinstance(error, KafkaError) else -1
        self._refused(ErrorCode(code), error)

    def _refused(self, code: ErrorCode, error: Exception | None) -> None:
        retry: Callable[[], None]
        if self.state is State.REGISTERING:
            if code in FATAL:
                self._on_fatal(f"the controller refused the registration: {code.name}")
                return
            retry = self._register
        elif code in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED):
            if self.state is State.STOPPING:
                self.close()
                self.stopped.complete(None)
                return
            retry = self._register
        else:
            retry = self._heartbeat
        if self.state is State.STOPPING and self._is_given_up():
            # As it is when a whole cluster stops: the last nodes have no quorum.
            logger.info("no controller lets us go; stopping all the same")
            self.close()
            self.stopped.complete(None)
            return
        delay_ms = min(RETRY_MS * 2 ** min(self._failures, 10), RETRY_MS_MAX)
        self._failures += 1
        if self._failures > 3 and self.state is not State.STOPPING:
            logger.warning("no controller accepts us yet: %s", error or code.name)
        self._later(delay_ms, retry)

    def _is_given_up(self) -> bool:
        """Whether no controller was heard for longer than an election takes."""
        return self.silence_ms > 2 * self._interval_ms + self._election_ms

    def _later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        self._cancel_timer()
        self._timer = self._loop.call_later(delay_ms / 1000, callback)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
