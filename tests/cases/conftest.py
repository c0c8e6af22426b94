"""Options, fixtures and limits shared by all checks.  See README.md for the broker set-ups."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import time
import uuid

import pytest

from tests import wire
from tests.cases import not_yet
from tests.cases.fixtures_extra import add_options, broker_pid, c, kafka_tool  # noqa: F401

DEFAULT_TIMEOUT = 60  # seconds per test unless it has its own @pytest.mark.timeout(n)
_counter = itertools.count()


def pytest_addoption(parser):
    g = parser.getgroup("kafka checks")
    add_options(g)
    g.addoption(
        "--bootstrap",
        metavar="HOST:PORT",
        default=os.environ.get("CHECKS_BOOTSTRAP"),
        help="plaintext broker with topic auto-creation (default 1 partition); required for most checks",
    )
    g.addoption(
        "--sasl-bootstrap",
        metavar="HOST:PORT",
        default=os.environ.get("CHECKS_SASL_BOOTSTRAP"),
        help="SASL_PLAINTEXT listener (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512) of the same broker",
    )
    g.addoption(
        "--sasl-user",
        metavar="USER:PASSWORD",
        default="alice:alice-secret",
        help="an account that can log in with PLAIN and both SCRAM mechanisms",
    )
    g.addoption(
        "--acl-bootstrap",
        metavar="HOST:PORT",
        default=os.environ.get("CHECKS_ACL_BOOTSTRAP"),
        help="SASL_PLAINTEXT listener (PLAIN) of a broker with an authorizer; super user admin, plain user u",
    )
    g.addoption(
        "--acl-admin",
        metavar="USER:PASSWORD",
        default="admin:admin-secret",
        help="super user there",
    )
    g.addoption(
        "--acl-user",
        metavar="USER:PASSWORD",
        default="u:u-secret",
        help="user without any ACL there",
    )
    g.addoption(
        "--tls-bootstrap",
        metavar="HOST:PORT",
        default=os.environ.get("CHECKS_TLS_BOOTSTRAP"),
        help="TLS listener (any certificate)",
    )
    g.addoption(
        "--special",
        metavar="NAME=HOST:PORT",
        action="append",
        default=[],
        help="plaintext broker with a special config (see README.md for the names); may be repeated",
    )
    g.addoption(
        "--admin-restart",
        metavar="CMD",
        default=os.environ.get("CHECKS_ADMIN_RESTART"),
        help="shell command that stops (orderly) and starts a broker again; gets its name (main or the --special "
        "name) in CHECKS_BROKER; may return before the broker is up",
    )


def pytest_configure(config):
    # What the clients' own code does without closing, or is deprecated for, is not ours.
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning")
    config.addinivalue_line("filterwarnings", "ignore::ResourceWarning")
    config.addinivalue_line("filterwarnings", "ignore::pytest.PytestUnraisableExceptionWarning")
    config.addinivalue_line("markers", "case(id): the id of the case in the catalogue")
    config.addinivalue_line("markers", "restart: restarts a broker; needs --admin-restart")
    config.addinivalue_line("markers", "special(name): needs --special NAME=HOST:PORT")
    config.addinivalue_line("markers", "slow: takes longer than about 15 s")
    config.addinivalue_line("markers", "timeout(seconds): limit for this test")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--all"):
        not_yet.mark(items)
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(DEFAULT_TIMEOUT))


def pytest_runtest_setup(item):
    if item.get_closest_marker("restart") and not item.config.getoption("--admin-restart"):
        pytest.skip("needs --admin-restart CMD")
    m = item.get_closest_marker("special")
    if m and m.args[0] not in _specials(item.config):
        pytest.skip(f"needs --special {m.args[0]}=HOST:PORT")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Plain SIGALRM limit for runs without pytest-timeout."""
    if item.config.pluginmanager.hasplugin("timeout"):
        return (yield)
    limit = int(item.get_closest_marker("timeout").args[0])

    def ring(*_):
        raise TimeoutError(f"check took longer than {limit} s")

    old = signal.signal(signal.SIGALRM, ring)
    signal.alarm(limit)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


def _specials(config) -> dict[str, str]:
    return dict(s.split("=", 1) for s in config.getoption("--special"))


def _need(config, option: str) -> str:
    v = config.getoption(option)
    if not v:
        pytest.skip(f"needs {option}")
    return v


def _warm_up(bootstrap):
    """Have the coordinators' topics created and loaded, so that no case waits for them."""
    with wire.Conn(bootstrap) as connection:
        wire.group_ready(connection, "warm-up-" + uuid.uuid4().hex)
        if "test_transactions.py" not in not_yet.entries():
            wire.txn_ready(connection, "warm-up-" + uuid.uuid4().hex)


@pytest.fixture(scope="session")
def _warm():
    return set()


@pytest.fixture
def bootstrap(request, _warm) -> str:
    """host:port of the shared broker, waited for once and with its coordinators warmed up."""
    b = _need(request.config, "--bootstrap")
    if b not in _warm:
        wire.wait_up(b)
        _warm_up(b)
        _warm.add(b)
    return b


def _wait_api_versions(bootstrap, seconds=60):
    """Wait until the listener answers ApiVersions (all that it answers before a login)."""
    end = time.monotonic() + seconds
    while True:
        try:
            with wire.Conn(bootstrap, timeout=5) as connection:
                return connection.send("api_versions", 0)
        except (OSError, wire.WireError):
            if time.monotonic() > end:
                raise
            time.sleep(0.3)


@pytest.fixture
def sasl_bootstrap(request) -> str:
    b = _need(request.config, "--sasl-bootstrap")
    _wait_api_versions(b)
    return b


@pytest.fixture
def sasl_user(request) -> tuple[str, str]:
    return tuple(request.config.getoption("--sasl-user").split(":", 1))


@pytest.fixture
def acl(request):
    """(host:port, (admin, password), (user, password)) of the broker with an authorizer."""
    o, b = request.config.getoption, _need(request.config, "--acl-bootstrap")
    _wait_api_versions(b)
    return b, tuple(o("--acl-admin").split(":", 1)), tuple(o("--acl-user").split(":", 1))


@pytest.fixture
def tls_bootstrap(request) -> str:
    return _need(request.config, "--tls-bootstrap")


@pytest.fixture
def special_bootstrap(request) -> str:
    """host:port of the --special broker named by the test's `special` mark."""
    m = request.node.get_closest_marker("special")
    b = _specials(request.config)[m.args[0]]
    wire.wait_up(b)
    return b


@pytest.fixture
def conns(request):
    """Factory for connections that are closed after the test: conns(bootstrap=..., **Conn arguments)."""
    open_ = []

    def make(bootstrap=None, **kw):
        if bootstrap is None:
            bootstrap = request.getfixturevalue("bootstrap")
        connection = wire.Conn(bootstrap, **kw)
        open_.append(connection)
        return connection

    yield make
    for connection in open_:
        connection.close()


@pytest.fixture
def conn(conns):
    """One connection to the shared broker."""
    return conns()


@pytest.fixture
def unique():
    """Factory for names that no other test or run uses: unique('topic')."""

    def make(prefix: str = "x") -> str:
        return f"{prefix}-{next(_counter)}-{uuid.uuid4().hex[:10]}"

    return make


@pytest.fixture
def topic(conn, unique):
    """A fresh topic with one partition; deleted afterwards."""
    name = wire.new_topic(conn, unique("t"))
    yield name
    _drop(conn.bootstrap, [name])


@pytest.fixture
def topics(conn, unique):
    """Factory for fresh topics: topics(partitions=1, configs=None, name=None); deleted afterwards."""
    made = []

    def make(partitions=1, configs=None, name=None):
        name = wire.new_topic(conn, name or unique("t"), partitions, configs)
        made.append(name)
        return name

    yield make
    _drop(conn.bootstrap, made)


def _drop(bootstrap, names):
    try:
        with wire.Conn(bootstrap, timeout=10) as connection:
            for n in names:
                wire.delete_topic(connection, n)
    except Exception:
        pass  # clean-up only


@pytest.fixture
def group(unique) -> str:
    return unique("g")


@pytest.fixture
def tid(unique) -> str:
    return unique("tx")


@pytest.fixture
def restart_broker(request):
    """restart_broker(bootstrap, name='main'): run --admin-restart and wait until the broker serves again."""
    cmd = request.config.getoption("--admin-restart")
    if not cmd:
        pytest.skip("needs --admin-restart CMD")

    def do(bootstrap: str, name: str = "main", probe: str | None = None):
        subprocess.run(
            cmd,
            shell=True,
            check=True,
            timeout=120,
            env={**os.environ, "CHECKS_BROKER": name},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        time.sleep(0.3)
        wire.wait_up(bootstrap, 90)
        _warm_up(bootstrap)

    return do
