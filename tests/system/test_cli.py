"""The commands against a broker process, as a user types them; what goes wrong is one line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from kwire import __version__
from kwire.protocol import uuids
from tests.support.broker import BrokerProcess

TIMEOUT_S = 60


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    with BrokerProcess() as running:
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
def kwire(broker: BrokerProcess) -> Command:
    return Command(broker.bootstrap)


def rows(output: str) -> list[list[str]]:
    return [line.split("\t") for line in output.splitlines()]


def test_info_tells_of_the_cluster(kwire: Command) -> None:
    told = kwire("info")
    assert f"broker      1 at 127.0.0.1:{kwire.bootstrap.rsplit(':', 1)[1]}" in told
    assert "feature     metadata.version" in told
    assert kwire("info", "--quiet") == ""


def test_no_broker_is_one_line_and_a_failure() -> None:
    line = Command("127.0.0.1:1").error("info")
    assert "127.0.0.1:1" in line


def test_quiet_says_nothing_of_a_broker_that_is_not_there() -> None:
    finished = Command("127.0.0.1:1").run("info", "--quiet")
    assert (finished.returncode, finished.stdout, finished.stderr) == (1, "", "")


@pytest.mark.parametrize("address", ["127.0.0.1:99999", "127.0.0.1:", ":9092", "127.0.0.1:x"])
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


def test_group_goes_on_where_it_stopped_until_it_is_reset(kwire: Command) -> None:
    kwire("produce", "grouped", stdin="1\n2\n3\n")
    assert kwire("consume", "grouped", "-g", "readers", "-c", "2") == "1\n2\n"
    assert kwire("consume", "grouped", "-g", "readers") == "3\n"
    assert kwire("consume", "grouped", "-g", "readers") == ""
    assert ["readers", "classic", "Empty"] in rows(kwire("group", "list"))
    assert ["grouped", "0", "3", "3", "0"] in rows(kwire("group", "describe", "readers"))
    reset = kwire("group", "reset-offsets", "readers", "-t", "grouped", "--to", "1")
    assert rows(reset) == [["grouped", "0", "1"]]
    assert kwire("consume", "grouped", "-g", "readers") == "2\n3\n"
    kwire("group", "reset-offsets", "readers", "-t", "grouped", "--to", "earliest")
    kwire("group", "reset-offsets", "readers", "-t", "grouped", "--to", "@0")
    assert ["grouped", "0", "0", "3", "3"] in rows(kwire("group", "describe", "readers"))
    line = kwire.error("group", "reset-offsets", "readers", "-t", "grouped", "--to", "soon")
    assert "soon" in line
    assert kwire("group", "delete", "readers") == "deleted readers\n"
    assert "not found" in kwire.error("group", "describe", "readers")


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
    assert "Traceback" not in finished.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-o", "log.segment.byte=5"), ("log.segment.byte", "log.segment.bytes")),
        (("-o", "log.segment.bytes=5"), ("log.segment.bytes", "5", "1048576")),
        (("-o", "ssl.client.auth=required"), ("ssl.client.auth", "required", "none")),
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
