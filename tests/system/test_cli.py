"""The commands against a broker process, as a user types them; what goes wrong is one line."""

from __future__ import annotations

import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from kwire import __version__
from kwire.cli import app, client
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.records.partitioner import partition_of
from kwire.testing.cluster import Broker
from tests.support.group_scripts import OverTcp

TIMEOUT_S = 60


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


class Command:
    """Runs `kwire ...` against one broker."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def __call__(self, *arguments: str, stdin: str = "", status: int = 0) -> str:
        """Standard output; the exit status must be `status`."""
        finished = self.run(*arguments, stdin=stdin)
        assert finished.returncode == status, finished.stderr
        return finished.stdout

    def error(self, *arguments: str, stdin: str = "") -> str:
        """The one line on stderr of a command that fails."""
        finished = self.run(*arguments, stdin=stdin)
        assert finished.returncode == 1
        assert finished.stdout == ""
        assert finished.stderr.startswith("kwire: ")
        assert finished.stderr.count("\n") == 1
        return finished.stderr

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "kwire", *arguments, "--bootstrap", self.bootstrap],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )


@pytest.fixture
def kwire(broker: Broker) -> Command:
    return Command(broker.bootstrap)


def rows(output: str) -> list[list[str]]:
    return [line.split("\t") for line in output.splitlines()]


def test_info_tells_of_the_cluster(kwire: Command) -> None:
    told = kwire("info")
    assert f"broker      1 at 127.0.0.1:{kwire.bootstrap.rsplit(':', 1)[1]}" in told
    assert "feature     metadata.version" in told
    assert "status      up" in told
    assert kwire("info", "--quiet") == ""


def test_no_broker_is_one_line_and_a_failure() -> None:
    line = Command("127.0.0.1:1").error("info")
    assert "127.0.0.1:1" in line


def test_quiet_says_nothing_of_a_broker_that_is_not_there() -> None:
    finished = Command("127.0.0.1:1").run("info", "--quiet")
    assert (finished.returncode, finished.stdout, finished.stderr) == (1, "", "")


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:99999", "127.0.0.1:", ":9092", "127.0.0.1:x", f"127.0.0.1:{'0' * 5000}1"],
)
def test_what_is_no_address_is_named(address: str) -> None:
    assert Command(address).error("info") == f"kwire: {address}: expected HOST:PORT\n"


def test_what_is_not_there_is_told_in_the_same_words(kwire: Command) -> None:
    for command in ("describe", "delete"):
        assert kwire.error("topic", command, "nowhere") == "kwire: topic nowhere: not found\n"
        assert kwire.error("group", command, "nobody") == "kwire: group nobody: not found\n"
    assert kwire.error("consume", "nowhere") == "kwire: topic nowhere: not found\n"


def test_topic_from_creation_to_deletion(kwire: Command) -> None:
    created = kwire("topic", "create", "life", "-p", "3", "-o", "retention.ms=100000")
    assert created == "created life\n"
    assert "already exists" in kwire.error("topic", "create", "life")
    assert kwire("topic", "create", "life", "--if-not-exists") == "life was there\n"
    assert ["life", "3", "1"] in rows(kwire("topic", "list"))
    described = rows(kwire("topic", "describe", "life"))
    assert described[0][0].startswith("life (")
    assert ["2", "1", "0", "1", "1", "0", "0"] in described
    assert ["retention.ms", "100000", "topic"] in described
    kwire("topic", "alter", "life", "-o", "flush.ms=5", "--unset", "retention.ms")
    described = rows(kwire("topic", "describe", "life"))
    assert ["flush.ms", "5", "topic"] in described
    assert not [row for row in described if row[0] == "retention.ms"]
    assert kwire("topic", "delete", "life") == "deleted life\n"
    assert "life" in kwire.error("topic", "describe", "life")


def test_wrong_config_of_a_topic_is_told_in_kafkas_words(kwire: Command) -> None:
    line = kwire.error("topic", "create", "wrong", "-o", "retention.ms=soon")
    assert "Invalid value soon for configuration retention.ms" in line


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_come_back_as_they_were_sent(kwire: Command, codec: str) -> None:
    topic = f"lines-{codec}"
    lines = "".join(f"line {number}\n" for number in range(1200))
    kwire("produce", topic, "-z", codec, stdin=lines)
    assert kwire("consume", topic) == lines


def test_keys_partitions_and_positions(kwire: Command) -> None:
    kwire("topic", "create", "keyed", "-p", "2")
    kwire("produce", "keyed", "-K", "=", "-p", "1", stdin="a=1\nb=2\nno key\n")
    assert rows(kwire("consume", "keyed", "--keys", "--offsets")) == [
        ["1:0", "a", "1"],
        ["1:1", "b", "2"],
        ["1:2", "", "no key"],
    ]
    assert kwire("consume", "keyed", "-p", "0") == ""
    assert "no partition 7" in kwire.error("consume", "keyed", "-p", "7")
    assert "no partition 7" in kwire.error("produce", "keyed", "-p", "7", stdin="x\n")


def test_reading_a_topic_that_is_not_there_does_not_create_it(kwire: Command) -> None:
    assert "topic mistyped" in kwire.error("consume", "mistyped")
    assert "mistyped" not in kwire("topic", "list")


def test_a_share_group_is_described_reset_and_deleted(kwire: Command) -> None:
    kwire("produce", "shared", stdin="1\n2\n3\n")
    broker = OverTcp(kwire.bootstrap)
    shape = m.AlterShareGroupOffsetsRequest
    begin = shape.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=1)
    topic = shape.AlterShareGroupOffsetsRequestTopic(topic_name="shared", partitions=[begin])
    deadline = time.monotonic() + 60
    while True:  # until there is a coordinator
        find = m.FindCoordinatorRequest(coordinator_keys=["workers"])
        broker.post("a", "FindCoordinator", 4, find)
        broker.receive("a")
        broker.post("a", "AlterShareGroupOffsets", 0, shape(group_id="workers", topics=[topic]))
        if not broker.receive("a").error_code:
            break
        assert time.monotonic() < deadline
    broker.close()
    assert ["workers", "share", "Empty"] in rows(kwire("group", "list"))
    told = rows(kwire("group", "describe", "workers"))
    assert told == [
        ["workers: share group, Empty, 0 members"],
        ["topic", "partition", "start", "lag"],
        ["shared", "0", "1", "2"],
    ]
    reset = ("group", "reset-offsets", "workers", "-t", "shared", "--to", "latest")
    assert rows(kwire(*reset)) == [["topic", "partition", "start"], ["shared", "0", "3"]]
    as_json = json.loads(kwire("group", "describe", "workers", "--json"))
    assert (as_json["type"], as_json["offsets"][0]["lag"]) == ("share", 0)
    assert kwire("group", "delete", "workers") == "deleted workers\n"
    assert "not found" in kwire.error("group", "describe", "workers")


def test_group_goes_on_where_it_stopped_until_it_is_reset(kwire: Command) -> None:
    kwire("produce", "grouped", stdin="1\n2\n3\n")
    assert kwire("consume", "grouped", "-g", "readers", "-c", "2") == "1\n2\n"
    assert kwire("consume", "grouped", "-g", "readers") == "3\n"
    assert kwire("consume", "grouped", "-g", "readers") == ""
    assert ["readers", "classic", "Empty"] in rows(kwire("group", "list"))
    assert ["grouped", "0", "3", "3", "0"] in rows(kwire("group", "describe", "readers"))
    reset = kwire("group", "reset-offsets", "readers", "-t", "grouped", "--to", "1")
    assert rows(reset) == [["topic", "partition", "committed"], ["grouped", "0", "1"]]
    assert kwire("consume", "grouped", "-g", "readers") == "2\n3\n"
    kwire("group", "reset-offsets", "readers", "-t", "grouped", "--to", "earliest")
    kwire("group", "reset-offsets", "readers", "-t", "grouped", "--to", "@0")
    assert ["grouped", "0", "0", "3", "3"] in rows(kwire("group", "describe", "readers"))
    line = kwire.error("group", "reset-offsets", "readers", "-t", "grouped", "--to", "soon")
    assert "soon" in line
    assert kwire("group", "delete", "readers") == "deleted readers\n"
    assert "not found" in kwire.error("group", "describe", "readers")


def test_kafkas_spellings_are_taken_beside_ours(broker: Broker, kwire: Command) -> None:
    def run(*arguments: str, stdin: str = "") -> str:
        line = [sys.executable, "-m", "kwire", *arguments]
        line += ["--bootstrap-server", broker.bootstrap]
        done = subprocess.run(
            line, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(
        *("topic", "create", "--topic", "spelt", "--partitions", "2"),
        *("--replication-factor", "1", "--config", "retention.ms=100000"),
    )
    assert ["retention.ms", "100000", "topic"] in rows(run("topic", "describe", "--topic", "spelt"))
    run("topic", "alter", "--topic", "spelt", "--delete-config", "retention.ms")
    run(
        *("produce", "--topic", "spelt", "--compression-codec", "gzip"),
        *("--property", "parse.key=true", "--property", "key.separator=:"),
        stdin="a:1\na:2\n",
    )
    consumed = run(
        *("consume", "--topic", "spelt", "--from-beginning", "--max-messages", "1"),
        *("--group", "spellers", "--isolation-level", "read_committed"),
        *("--property", "print.key=true", "--property", "key.separator=:"),
    )
    assert consumed == "a:1\n"
    assert "spelt" in run("group", "describe", "--group", "spellers")
    reset = ("group", "reset-offsets", "--group", "spellers", "--topic", "spelt")
    run(*reset, "--to-latest", "--execute")
    assert run("consume", "--topic", "spelt", "--group", "spellers") == ""
    run(*reset, "--to-earliest", "--dry-run")
    assert run("consume", "--topic", "spelt", "--group", "spellers") == "", "a dry run"
    run(*reset, "--to-datetime", "2020-01-01T00:00:00", "--execute")
    assert run("consume", "--topic", "spelt", "--group", "spellers") == "1\n2\n"
    run("group", "delete", "--group", "spellers")
    run("topic", "delete", "--topic", "spelt")


def test_every_listing_has_json(kwire: Command) -> None:
    kwire("topic", "create", "listed", "-p", "2", "-o", "retention.ms=100000")
    kwire("produce", "listed", "-p", "1", stdin="x\n")
    kwire("consume", "listed", "-g", "listeners")
    topics = [json.loads(line) for line in kwire("topic", "list", "--json").splitlines()]
    assert {"topic": "listed", "partitions": 2, "replicas": 1} in topics
    told = json.loads(kwire("topic", "describe", "listed", "--json"))
    assert len(uuids.from_text(told["topic_id"])) == 16
    assert told["partitions"][1] == {
        "partition": 1, "leader": 1, "epoch": 0, "replicas": [1], "isr": [1], "first": 0, "next": 1,
    }  # fmt: skip
    assert {"config": "retention.ms", "value": "100000", "from": "topic"} in told["configs"]
    groups = [json.loads(line) for line in kwire("group", "list", "--json").splitlines()]
    assert {"group": "listeners", "type": "classic", "state": "Empty"} in groups
    told = json.loads(kwire("group", "describe", "listeners", "--json"))
    assert (told["state"], told["members"]) == ("Empty", [])
    assert {"topic": "listed", "partition": 1, "committed": 1, "end": 1, "lag": 0} in told[
        "offsets"
    ]
    reset = kwire(
        "group", "reset-offsets", "listeners", "-t", "listed", "--to", "-1", "--json"
    ).splitlines()
    assert json.loads(reset[1]) == {"topic": "listed", "partition": 1, "committed": 0}
    told = json.loads(kwire("info", "--json"))
    assert told["brokers"][0]["port"] == int(kwire.bootstrap.rsplit(":", 1)[1])
    assert told["features"]["metadata.version"] > 0


def test_a_listing_in_a_pipe_has_its_header(kwire: Command) -> None:
    """It was lost, and nobody could tell which column is which."""
    assert rows(kwire("topic", "list"))[0] == ["topic", "partitions", "replicas"]
    assert rows(kwire("group", "list"))[0] == ["group", "type", "state"]


RECORDS = [
    {
        "key": "k",
        "value": "v",
        "headers": [["h", "1"], ["n", None]],
        "timestamp": 5,
        "partition": 1,
    },
    {"key": None, "value": None, "headers": [], "timestamp": 6, "partition": 1},
    {"key": {"base64": "/w=="}, "value": "", "headers": [], "timestamp": 7, "partition": 1},
]


def test_json_goes_in_and_comes_out(kwire: Command) -> None:
    lines = "".join(json.dumps(record) + "\n" for record in RECORDS)
    # Records of 1970 would be deleted any moment.
    kwire("topic", "create", "jsons", "-p", "2", "-o", "retention.ms=-1")
    kwire("produce", "jsons", "--json", stdin=lines)
    came = [json.loads(line) for line in kwire("consume", "jsons", "--json").splitlines()]
    assert came == [{"topic": "jsons", "offset": at, **record} for at, record in enumerate(RECORDS)]
    kwire("topic", "create", "jsons-again", "-p", "2", "-o", "retention.ms=-1")
    kwire("produce", "jsons-again", "-J", stdin=kwire("consume", "jsons", "-J"))
    again = [json.loads(line) for line in kwire("consume", "jsons-again", "-J").splitlines()]
    assert [{**record, "topic": "jsons"} for record in again] == came


def test_formats_go_in_and_come_out(kwire: Command) -> None:
    layout = "%T|%h|%k|%s"
    kwire("topic", "create", "formats", "-o", "retention.ms=-1")
    kwire("produce", "formats", "-f", layout, "--null", "NULL", stdin="5|a=1|k|v|w\n6||NULL|NULL\n")
    shown = kwire("consume", "formats", "-f", f"{layout}|%S\\n", "--null", "NULL")
    assert shown == "5|a=1|k|v|w|3\n6||NULL|NULL|-1\n"
    assert kwire("consume", "formats", "-f", "%t-%p@%o ") == "formats-0@0 formats-0@1 "
    assert kwire("consume", "formats", "--timestamps", "--offsets", "--headers", "--keys") == (
        "5\t0:0\ta=1\tk\tv|w\n6\t0:1\t\t\t\n"
    )
    told = kwire.error("produce", "formats", "-f", layout, stdin="1||k|v\nnonsense\n")
    assert told == "kwire: line 2: expected '|' in it\n"


def test_the_same_key_goes_where_kafkas_producers_put_it(kwire: Command) -> None:
    """Keys went round with the batches: no order for a key, and joins that found nothing."""
    kwire("topic", "create", "placed", "-p", "5")
    keys = [f"key-{number}" for number in range(20)]
    for _ in range(2):
        kwire("produce", "placed", "-K", ":", stdin="".join(f"{key}:x\n" for key in keys))
    came = kwire("consume", "placed", "-f", "%k %p\\n").split("\n")[:-1]
    assert sorted(came) == sorted(2 * [f"{key} {partition_of(key.encode(), 5)}" for key in keys])


def test_what_every_record_gets(kwire: Command) -> None:
    kwire("topic", "create", "given", "-o", "retention.ms=-1")
    kwire(
        *("produce", "given", "-k", "k", "-H", "a=1", "-H", "b=", "--timestamp", "77", "-p", "0"),
        stdin="x\n",
    )
    assert kwire("consume", "given", "-f", "%k %h %T %s") == "k a=1,b= 77 x"


def test_where_to_start(kwire: Command) -> None:
    kwire("topic", "create", "starts", "-o", "retention.ms=-1")
    kwire(
        "produce",
        "starts",
        "--json",
        stdin="".join(f'{{"value": "{n}", "timestamp": {n}}}\n' for n in range(5)),
    )
    assert kwire("consume", "starts", "-o", "3") == "3\n4\n"
    assert kwire("consume", "starts", "-o", "-2") == "3\n4\n"
    assert kwire("consume", "starts", "-o", "@4") == "4\n"
    assert kwire("consume", "starts", "-o", "beginning", "-c", "1") == "0\n"
    assert kwire("consume", "starts", "-o", "end", "--follow", "--timeout-ms", "1") == ""
    assert "soon" in kwire.error("consume", "starts", "-o", "soon")


def _take_interrupts() -> None:
    """A background process of a shell ignores SIGINT from its start, and so does what it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_says_how_many_records_are_kept(broker: Broker, kwire: Command) -> None:
    """A line in a pipe is sent when it is there (it waited for 499 others), and Ctrl-C ended
    `produce` without a word."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kwire", "produce", "stopped", "-b", broker.bootstrap],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_take_interrupts,
    )
    with process:
        assert process.stdin is not None
        kwire("topic", "create", "stopped", "--if-not-exists")
        process.stdin.write("one\ntwo\nhalf a li")
        process.stdin.flush()
        assert kwire("consume", "stopped", "--follow", "-c", "2") == "one\ntwo\n"
        process.stdin.write("ne\n")
        process.stdin.flush()
        assert kwire("consume", "stopped", "--follow", "-c", "1", "-o", "2") == "half a line\n"
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=TIMEOUT_S)[1]
    assert process.returncode == 130
    assert told.startswith("interrupted; ")
    assert "records acknowledged" in told
    assert told.count("\n") == 1


def test_a_fault_behind_sent_records_says_how_many_were(kwire: Command) -> None:
    lines = "".join("{}\n" for _ in range(600)) + "nonsense\n"
    told = kwire.error("produce", "half", "--json", stdin=lines)
    assert told.startswith("kwire: line 601: no JSON")
    assert told.endswith("; 500 records before were acknowledged\n")


def test_a_reader_that_goes_away_is_no_fault() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "kwire", "configs", "--all"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""


class Silent:
    """A server that takes connections and never answers; `answer` is all it ever says."""

    def __init__(self, answer: bytes = b"") -> None:
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._taken: list[socket.socket] = []
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        while True:
            try:
                taken, _ = self._socket.accept()
            except OSError:
                return
            self._taken.append(taken)
            taken.sendall(self._answer)

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for taken in self._taken:
            taken.close()


def test_a_server_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """`kwire info` waited 40 seconds, twice; other commands give up the first answer sooner too."""
    with Silent() as server:
        told = Command(server.address).error("info", "--timeout", "0.2")
        assert told == (f"kwire: {server.address}: no answer within 0.2 s; is it a Kafka broker?\n")
        monkeypatch.setattr(client, "DEFAULT_TIMEOUTS", client.Timeouts(first_s=0.1))
        with pytest.raises(client.ClientError, match=r"within 0\.1 s"):
            client.Client(server.address).metadata([])
    assert app.INFO_TIMEOUT_S == 5


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is an HTTP server, no Kafka broker"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "speaks TLS"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "is no Kafka broker: it answers with b'SSH-'"),
        (b"\x00\x00\x00\x00", "is no Kafka broker"),
    ],
)
def test_another_protocols_answer_has_its_own_words(answer: bytes, words: str) -> None:
    """It was "a response of 1213486160 bytes"."""
    with Silent(answer) as server:
        assert words in Command(server.address).error("info", "--timeout", "30")


def test_an_http_server_that_waits_for_a_line_is_known() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    server.RequestHandlerClass.log_message = lambda *_: None  # type: ignore[method-assign]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        line = Command(f"127.0.0.1:{server.server_port}").error("info", "--timeout", "1")
        assert "is an HTTP server" in line
    finally:
        server.shutdown()
        server.server_close()


def test_a_port_alone_is_told() -> None:
    line = Command("33000").error("info")
    assert line == "kwire: 33000: expected HOST:PORT; did you mean localhost:33000?\n"


def run_local(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kwire", *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def test_configs_tell_of_the_developer_table_and_of_each_config() -> None:
    assert "offsets.topic.replication.factor\t1\t3" in run_local("configs").stdout
    told = rows(run_local("configs", "log.segment.bytes").stdout)
    assert ["log.segment.bytes", "int", "1073741824"] in [row[:3] for row in told]
    assert run_local("configs", "no.such.config").returncode == 1
    assert run_local("configs", "--all", "--scope", "nowhere").returncode == 2
    assert run_local("configs", "--scope", "nowhere").returncode == 2
    told = rows(run_local("configs", "--scope", "topic").stdout)
    assert "max.message.bytes" in [row[0] for row in told]


def test_apis_are_listed() -> None:
    assert ["0", "Produce", "3-13"] in rows(run_local("api").stdout)


def test_version() -> None:
    assert run_local("--version").stdout == f"kwire {__version__}\n"


def test_random_uuid_makes_what_format_takes() -> None:
    first, second = (run_local("random-uuid").stdout for _ in range(2))
    assert first != second
    assert len(uuids.from_text(first.rstrip("\n"))) == 16


def test_wrong_command_line_is_status_2() -> None:
    assert run_local("consume", "topic", "--count", "-1").returncode == 2
    finished = run_local("topic", "nonsense")
    assert finished.returncode == 2
    assert finished.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-o", "log.segment.byte=5"), ("log.segment.byte", "log.segment.bytes")),
        (("-o", "log.segment.bytes=5"), ("log.segment.bytes", "5", "1048576")),
        (
            ("-o", "remote.log.storage.system.enable=true"),
            ("remote.log.storage.system.enable", "true", "false"),
        ),
        (("--config", "/no/such/file"), ("/no/such/file",)),
        (("--listen", "127.0.0.1:0", "--feature", "no.such=1"), ("no.such", "group.version")),
        (("--listen", "127.0.0.1:0", "--feature", "group.version=99"), ("group.version", "99")),
    ],
)
def test_wrong_setting_is_one_line_and_status_2(
    arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    finished = run_local("serve", "--ephemeral", *arguments)
    assert finished.returncode == 2
    assert finished.stderr.count("\n") == 1
    for word in words:
        assert word in finished.stderr


def test_closed_standard_streams_are_the_null_device(kwire: Command) -> None:
    produce = f"exec {sys.executable} -m kwire produce closed -b {kwire.bootstrap} <&-"
    finished = subprocess.run(
        ["sh", "-c", produce], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert finished.returncode == 0
    assert finished.stderr == "0 records sent to closed\n"
    listing = f"exec {sys.executable} -m kwire topic list -b {kwire.bootstrap} >&-"
    finished = subprocess.run(
        ["sh", "-c", listing], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert (finished.returncode, finished.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("command", [("topic", "list"), ("info",), ("consume", "full")])
def test_output_that_cannot_be_written_is_one_line(
    kwire: Command, command: tuple[str, ...]
) -> None:
    kwire("produce", "full", stdin="a\n")
    with open("/dev/full", "w", encoding="utf-8") as full:
        finished = subprocess.run(
            [sys.executable, "-m", "kwire", *command, "--bootstrap", kwire.bootstrap],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    assert finished.returncode == 1
    assert finished.stderr == (
        "kwire: standard output cannot be written: No space left on device\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("produce", "t", "--timestamp", "9" * 20),
        ("produce", "t", "--partition", "9" * 20),
        ("topic", "create", "t", "--partitions", "9" * 20),
        ("topic", "create", "t", "--replication-factor", "40000"),
        ("topic", "delete", "\udcff"),
        ("consume", "\udcff"),
    ],
)
def test_what_no_request_can_hold_is_one_line_and_status_2(arguments: tuple[str, ...]) -> None:
    finished = run_local(*arguments)
    assert finished.returncode == 2
    assert finished.stderr.count("\n") == 1
    assert "request" not in finished.stderr.lower()
