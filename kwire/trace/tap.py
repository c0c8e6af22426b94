"""What a broker shows of its own connections: `kwire serve --trace`.

Logins are not shown: their frames are no requests to a handler. A response is shown when it is
made; those of writes that wait for replicas may be made in another order than they are sent in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kwire.protocol.structs import Message
from kwire.trace.dialogues import Asked, Dialogue
from kwire.trace.recorder import Recorder


class Connection(Protocol):
    """A client's connection, as a handler sees it."""

    @property
    def client_host(self) -> str: ...

    @property
    def client_port(self) -> int: ...

    @property
    def listener_name(self) -> str: ...

    def add_close_callback(self, callback: Callable[[], None]) -> None: ...


class Context(Protocol):
    """The request that is executed (`kwire/server/context.py`)."""

    @property
    def connection(self) -> Connection | None: ...


class BrokerTap:
    """Shows a recorder what a broker is asked and answers (`kwire/server/tap.py`)."""

    def __init__(self, recorder: Recorder, broker: Callable[[str], str]) -> None:
        self._recorder = recorder
        self._broker = broker
        self._dialogues: dict[Connection, Dialogue] = {}
        self._asked: dict[Context, tuple[Dialogue, Asked]] = {}

    def arrived(self, context: Context, body: memoryview) -> None:
        """A request has come."""
        if context.connection is None:
            return
        dialogue = self._dialogue(context.connection)
        asked = dialogue.parsed(body, self._recorder.now_ms())
        # The message is not needed any more, and would keep the memory that it was received in.
        self._asked[context] = dialogue, asked._replace(message=None)
        self._recorder.happened(asked.event)

    def answered(self, context: Context, response: object, size_bytes: int) -> None:
        """It is answered, or will never be."""
        found = self._asked.pop(context, None)
        if found is None or not isinstance(response, Message):
            return
        dialogue, asked = found
        now_ms = self._recorder.now_ms()
        event = dialogue.reply_event(asked, asked.version, response, size_bytes, now_ms)
        self._recorder.happened(event)

    def _dialogue(self, connection: Connection) -> Dialogue:
        dialogue = self._dialogues.get(connection)
        if dialogue is None:
            client = f"{connection.client_host.removeprefix('/')}:{connection.client_port}"
            number = self._recorder.opened(client, self._broker(connection.listener_name))
            dialogue = self._dialogues[connection] = Dialogue(number, self._recorder.kept_bytes)
            connection.add_close_callback(lambda: self._closed(connection))
        return dialogue

    def _closed(self, connection: Connection) -> None:
        dialogue = self._dialogues.pop(connection)
        gone = [
            (context, asked)
            for context, (of, asked) in self._asked.items()
            if of.connection == dialogue.connection
        ]
        for context, _ in gone:
            del self._asked[context]
        self._recorder.closed(dialogue.connection, [asked.event.api for _, asked in gone])
