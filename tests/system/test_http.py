"""HTTP beside the broker: a process that is started, ended and bounded, whatever it is asked."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import ssl
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kwire.testing.cluster import Broker
from kwire.testing.cluster.process import ServeProcess
from tests.support.wire import WireClient, fetch_values, produce_values

pytest.importorskip("uvicorn")

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 60.0
LISTENER = {"http.listeners": "http://127.0.0.1:0"}


class Http:
    """The HTTP listener of a broker; no process may be left when it ends."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.port = port_of(broker)
        self.seen: list[int] = []

    def get(
        self, path: str, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, object]]:
        """(status, JSON)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        try:
            connection.request("GET", path, headers=headers or {})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()
            self.seen += [pid for pid in children(self.broker.pid) if pid not in self.seen]

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), WAIT_S)

    def process(self) -> int:
        """The HTTP process that runs now."""
        (pid,) = wait_for(lambda: children(self.broker.pid))
        self.seen.append(pid)
        return int(pid)


def port_of(broker: Broker) -> int:
    def lines() -> list[str]:
        text = broker.process.output_text().splitlines()
        return [line for line in text if line.startswith("http on ")]

    return int(wait_for(lines)[0].rpartition(":")[2])


def wait_for(condition):  # type: ignore[no-untyped-def]
    """What it gives, once that is something."""
    end_s = time.monotonic() + WAIT_S
    while not (found := condition()):
        assert time.monotonic() < end_s, "waited in vain"
        time.sleep(0.01)
    return found


def children(pid: int) -> list[int]:
    """The processes that a process has started and that run."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            words = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if entry.isdigit() and words[1] == str(pid) and words[0] != "Z":
            found.append(int(entry))
    return found


def is_gone(pid: int) -> bool:
    """Whether it has ended; whoever inherited it may not have taken its status yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture
def served() -> Iterator[Http]:
    with Broker(options=LISTENER) as broker:
        http = Http(broker)
        yield http
    for pid in http.seen:
        assert wait_for(lambda pid=pid: is_gone(pid))


@pytest.fixture(scope="module")
def shared() -> Iterator[Http]:
    """For tests that leave its process alone."""
    with Broker(options=LISTENER) as broker:
        http = Http(broker)
        with WireClient(broker.bootstrap) as client:
            client.create_topic("t")
        yield http
        pid = http.process()
    assert is_gone(pid)


def works(broker: Broker) -> None:
    with WireClient(broker.bootstrap) as client:
        produce_values(client, "t", 0, [b"x"])
        assert fetch_values(client, "t", 0)[-1:] == [b"x"]


@pytest.fixture
def topic(served: Http) -> None:
    with WireClient(served.broker.bootstrap) as client:
        client.create_topic("t")


def test_nobody_looks_at_it_nothing_runs(served: Http) -> None:
    assert children(served.broker.pid) == []


def test_the_first_connection_starts_one_process_that_ends_with_the_broker(served: Http) -> None:
    assert served.get("/health/live") == (200, {"status": "up", "reasons": []})
    assert served.get("/health/ready") == (200, {"status": "up", "reasons": []})
    assert len(served.seen) == 1
    assert served.broker.stop() == 0
    assert is_gone(served.seen[0])


def test_what_is_not_there(shared: Http) -> None:
    status, told = shared.get("/nothing")
    assert (status, told["error_code"]) == (404, 404)


def test_the_process_ends_with_a_killed_broker(served: Http) -> None:
    served.get("/health/live")
    served.broker.kill()
    assert wait_for(lambda: is_gone(served.seen[0]))


def test_a_stopped_process_ends_with_a_killed_broker(served: Http) -> None:
    served.get("/health/live")
    pid = served.process()
    served.broker.pause()  # it is not to notice
    os.kill(pid, signal.SIGSTOP)
    served.broker.kill()
    assert wait_for(lambda: is_gone(pid))


@pytest.mark.usefixtures("topic")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
def test_a_process_that_goes_is_replaced_and_the_broker_serves_on(
    served: Http, number: int
) -> None:
    served.get("/health/live")
    first = served.process()
    os.kill(first, number)
    works(served.broker)
    assert served.get("/health/live")[0] == 200
    assert wait_for(lambda: is_gone(first))
    assert served.process() != first


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "", "localhost, evil"]
)
def test_another_host_is_refused(shared: Http, host: str) -> None:
    status, told = shared.get("/health/live", {"Host": host})
    assert status == 421
    assert "http.allowed.hosts" in str(told["message"])


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]:80"])
def test_this_machine_by_its_names(shared: Http, host: str) -> None:
    assert shared.get("/health/live", {"Host": host})[0] == 200


def test_no_page_of_another_origin_reads_an_answer(shared: Http) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", shared.port, timeout=WAIT_S)
    connection.request("GET", "/health/live", headers={"Origin": "http://evil.example"})
    response = connection.getresponse()
    names = [name.lower() for name, _ in response.getheaders()]
    assert not [name for name in names if name.startswith("access-control")]
    connection.close()


GARBAGE = [
    b"\x00\x00\x00\x20\x00\x12\x00\x03 a Kafka request",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 TLS",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /%00%ff%fe HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"a" * 100_000,
    b"HEAD / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    bytes(range(256)) * 64,
]


@pytest.mark.parametrize("sent", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_is_answered_with_an_error_or_the_end(shared: Http, sent: bytes) -> None:
    with shared.connect() as connection:
        try:
            connection.sendall(sent)
            answer = connection.recv(65536)
        except ConnectionError:
            answer = b""
    assert answer == b"" or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 505"))
    head, _, body = answer.partition(b"\r\n\r\n")
    if body:
        assert b"content-type: application/json" in head
        assert json.loads(body)["error_code"] in (400, 404, 421, 431, 505)
    assert shared.get("/health/live")[0] == 200


def test_a_request_of_two_ends_is_the_last_of_its_connection(shared: Http) -> None:
    """A proxy in front that goes by the other length takes what follows for the body (request
    smuggling; RFC 9112, 6.1)."""
    hidden = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    body = b"0\r\n\r\n" + hidden
    head = b"POST /health/live HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
    with shared.connect() as connection:
        connection.sendall(b"%sContent-Length: %d\r\n\r\n%s" % (head, len(body), body))
        answer = read_to_end(connection)
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_files_in_the_directory_of_the_broker_are_not_executed(tmp_path: Path) -> None:
    """`python -m` looks there first: an `http.py` that lies about kept the process from starting,
    and one that somebody has put there would run with the broker's rights."""
    for name in ("http", "json", "uvicorn", "kwire"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('executed')\n")
    options = [f"{name}={value}" for name, value in LISTENER.items()]
    process = ServeProcess("broker", environment={"PYTHONPATH": str(ROOT)})
    line = [sys.executable, "-P", "-m", "kwire", "serve", "--ephemeral", "--listen", "127.0.0.1:0"]
    process.start([*line, *(part for one in options for part in ("-o", one))], cwd=tmp_path)
    try:
        process.wait_ready()
        found = wait_for(lambda: re.search(r"^http on \S+:(\d+)$", process.output_text(), re.M))
        connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=WAIT_S)
        connection.request("GET", "/health/live")
        assert connection.getresponse().status == 200
        connection.close()
        process.stop()
        assert "executed" not in process.log_text()
    finally:
        process.close()


@pytest.fixture(scope="module")
def impatient() -> Iterator[Http]:
    """One that waits a second for a client."""
    options = {**LISTENER, "http.request.timeout.ms": "1000"}
    with Broker(options=options) as broker:
        yield Http(broker)


def read_to_end(connection: socket.socket) -> bytes:
    found = b""
    try:
        while piece := connection.recv(65536):
            found += piece
    except ConnectionError:
        pass
    return found


def test_half_a_head_is_not_waited_for(impatient: Http) -> None:
    with impatient.connect() as connection:
        connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: loc")
        assert read_to_end(connection) == b""


def test_a_head_that_trickles_is_not_waited_for(impatient: Http) -> None:
    with impatient.connect() as connection:
        end_s = time.monotonic() + WAIT_S
        connection.settimeout(0.05)
        is_open = True
        while is_open:
            assert time.monotonic() < end_s
            try:
                connection.sendall(b"G")
                is_open = connection.recv(100) != b""
            except TimeoutError:
                continue
            except ConnectionError:
                is_open = False


def test_endless_headers_end(impatient: Http) -> None:
    with impatient.connect() as connection:
        try:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
            for number in range(100_000):
                connection.sendall(b"X-%d: %s\r\n" % (number, b"y" * 100))
        except ConnectionError:
            pass
        else:
            raise AssertionError("10 MB of headers were taken")


def test_half_a_body_is_not_waited_for(impatient: Http) -> None:
    with impatient.connect() as connection:
        connection.sendall(
            b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\na"
        )
        answer = read_to_end(connection)  # no handler reads it: the answer comes all the same
    assert answer.startswith(b"HTTP/1.1 200")


def test_idle_connections_beyond_what_is_held_keep_nobody_out(shared: Http) -> None:
    shared.get("/health/live")
    held = [shared.connect() for _ in range(1000)]
    assert shared.get("/health/live")[0] == 200
    works(shared.broker)
    for connection in held:
        connection.close()


def test_connections_beyond_the_limit_are_closed_the_longest_idle_first() -> None:
    with Broker(options={**LISTENER, "http.connections.max": "20"}) as broker:
        few = Http(broker)
        held = [few.connect() for _ in range(40)]
        assert few.get("/health/live")[0] == 200
        assert read_to_end(held[0]) == b""
        held[-1].sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert held[-1].recv(12) == b"HTTP/1.1 200"
        for connection in held:
            connection.close()


def test_a_port_in_use_is_one_line_at_the_start(tmp_path: Path) -> None:
    from tests.system.test_serve import serve

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        status, told = serve(
            *("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path)),
            *("-o", f"http.listeners=http://127.0.0.1:{port}"),
        )
    assert status == 1
    lines = [line for line in told.splitlines() if line.startswith("kwire:")]
    assert lines == [f"kwire: cannot listen on 127.0.0.1:{port} for HTTP: Address already in use"]


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("http.listeners=http://0.0.0.0:0", "http.unauthenticated.beyond.loopback.enable"),
        ("http.listeners=http://a:1,http://b:2", "two listeners are called http"),
        ("http.serves=nothing", "http.serves"),
        ("http.listener.a.serves=health", "http.listener.NAME.serves"),
    ],
)
def test_a_wrong_setting_is_one_line_at_the_start(setting: str, named: str) -> None:
    from tests.system.test_serve import serve

    status, told = serve("--listen", "127.0.0.1:0", "--ephemeral", "-o", setting)
    assert status == 2
    assert len(told.splitlines()) == 1
    assert named in told


def test_without_configuration_there_is_http_and_no_http_when_told_so() -> None:
    with Broker() as broker:
        assert port_of(broker) >= 8080
    with Broker(arguments=["--no-http"]) as broker:
        assert "http on" not in broker.process.output_text()
    with Broker(properties=alone()) as broker:
        assert "http on" not in broker.process.output_text()


def alone() -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1@127.0.0.1:9093",
    }


def test_https_with_the_settings_of_listeners_with_tls(tmp_path: Path) -> None:
    from tests.support.certificates import Authority, secure_options

    authority = Authority()
    options = secure_options(tmp_path, authority.sign(), authority)
    with Broker(options={**options, "http.listeners": "https://127.0.0.1:0"}) as broker:
        context = ssl.create_default_context(cafile=str(tmp_path / "authority.pem"))
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port_of(broker), timeout=WAIT_S, context=context
        )
        connection.request("GET", "/health/live")
        assert connection.getresponse().status == 200
        connection.close()
        with socket.create_connection(("127.0.0.1", port_of(broker)), WAIT_S) as plain:
            plain.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert not read_to_end(plain).startswith(b"HTTP")
