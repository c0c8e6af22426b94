"""Brokers that serve many tests: started when first needed, stopped at the end of the run.

A test program restarts one through a command (`restart_command`), because it may run in a process
of its own: the state of each broker (arguments, pid) is a file in the run's directory.

    python -m tests.runner.served restart STATE_FILE
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import shlex
import signal
import sys
import tempfile
import threading
import time

from kwire.config.java_classes import UNSECURED_TOKENS
from kwire.protocol import messages as m
from kwire.testing.cluster import NodeFailed, ServeProcess, free_ports
from tests.support.wire import WireClient

READY_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 20.0
SALT, ITERATIONS = b"salt of the tests", 4096

# Name -> options: the special brokers of tests/cases/README.md.
SPECIAL: dict[str, dict[str, str]] = {
    "short-retention": {
        "offsets.retention.minutes": "1",
        "offsets.retention.check.interval.ms": "5000",
    },
    "idle3s": {"connections.max.idle.ms": "3000"},
}

PLAIN_USERS = {"admin": "admin-secret", "alice": "alice-secret", "u": "u-secret"}
SCRAM_USERS = {"alice": "alice-secret"}

# Name -> options: the brokers that also have a listener where clients authenticate.
SECURED: dict[str, dict[str, str]] = {
    "main": {},
    "acl": {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    },
}


#: The broker that asks everybody for TLS and a name: `tests/support/secured.py`.
SECURE = "secure"


def _with_sasl(port: int, sasl_port: int, tls_port: int, directory: pathlib.Path) -> dict[str, str]:
    """The options of a broker with a listener for everybody, one with SASL and one with TLS."""
    from tests.support.certificates import Authority

    directory.mkdir()
    store = Authority().sign().write(directory, "node")
    users = " ".join(f'user_{name}="{password}"' for name, password in PLAIN_USERS.items())
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    listeners = (
        f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl_port},"
        f"SSL://127.0.0.1:{tls_port}"
    )
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "listeners": listeners,
        "advertised.listeners": listeners,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "sasl.server.callback.handler.class": UNSECURED_TOKENS,
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{module} required {users};",
    }


def _add_scram_users(bootstrap: str) -> None:
    """Who logs in by SCRAM; the clients do what costs time, so few iterations are enough."""
    request = m.AlterUserScramCredentialsRequest
    upsertions = []
    for mechanism, hash_name in ((1, "sha256"), (2, "sha512")):
        for name, password in SCRAM_USERS.items():
            salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), SALT, ITERATIONS)
            upsertions.append(
                request.ScramCredentialUpsertion(
                    name=name,
                    mechanism=mechanism,
                    iterations=ITERATIONS,
                    salt=SALT,
                    salted_password=salted,
                )
            )
    with WireClient(bootstrap) as client:
        for user in upsertions:  # one request may name a user once
            answer = client.call(request(upsertions=[user]), 0)
            if any(result.error_code for result in answer.results):
                raise BrokerDidNotStart(f"no SCRAM user: {answer}")


class BrokerDidNotStart(Exception):
    """The broker of a test run did not become ready."""


class ServedBrokers:
    """The brokers of one test run."""

    def __init__(self, python: str, logs: pathlib.Path) -> None:
        self.python = python
        self.logs = logs
        self._directory = tempfile.TemporaryDirectory(prefix="kwire-served-")
        self._ports: dict[str, int] = {}
        self._sasl_ports: dict[str, int] = {}
        self._tls_ports: dict[str, int] = {}
        self._starting = threading.Lock()  # groups run at the same time
        self._is_closed = False

    def state_file(self, name: str) -> pathlib.Path:
        return pathlib.Path(self._directory.name) / f"{name}.json"

    def bootstrap(self, name: str = "main") -> str:
        """`host:port` of the broker of this name, started on first use."""
        with self._starting:
            if self._is_closed:
                raise BrokerDidNotStart("the run has ended")
            return self._bootstrap(name)

    def sasl_bootstrap(self, name: str = "main") -> str:
        """The same of the listener with SASL that a broker of `SECURED` has."""
        self.bootstrap(name)
        return f"127.0.0.1:{self._sasl_ports[name]}"

    def tls_bootstrap(self, name: str = "main") -> str:
        """The same of the listener with TLS that a broker of `SECURED` has."""
        self.bootstrap(name)
        return f"127.0.0.1:{self._tls_ports[name]}"

    def client_settings(self) -> pathlib.Path:
        """What clients connect to the broker `SECURE` with: a file of JSON."""
        from tests.support import secured

        self.bootstrap(SECURE)
        sasl, tls = self._sasl_ports[SECURE], self._tls_ports[SECURE]
        return secured.write_settings(self._stores(SECURE), f"127.0.0.1:{sasl}", f"127.0.0.1:{tls}")

    def _stores(self, name: str) -> pathlib.Path:
        return pathlib.Path(self._directory.name) / f"{name}-stores"

    def _options(self, name: str) -> tuple[int, dict[str, str]]:
        """The port (0 is any) and the settings of a broker."""
        if name not in (*SECURED, SECURE):
            return 0, SPECIAL.get(name, {})
        port, sasl, tls = free_ports(3)
        self._sasl_ports[name], self._tls_ports[name] = sasl, tls
        if name in SECURED:
            return port, {**_with_sasl(port, sasl, tls, self._stores(name)), **SECURED[name]}
        from tests.support import secured

        secured.prepare(self._stores(name))
        addresses = (f"127.0.0.1:{each}" for each in (port, sasl, tls))
        return port, secured.options(self._stores(name), *addresses)

    def _bootstrap(self, name: str) -> str:
        if name not in self._ports:
            port, options = self._options(name)
            data = pathlib.Path(self._directory.name) / f"{name}-data"
            arguments = [self.python, "-m", "kwire", "serve", "--data-dir", str(data)]
            for setting, value in options.items():
                arguments += ["-o", f"{setting}={value}"]
            state = {
                "arguments": arguments,
                "log": str(self.logs / f"broker-{name}.log"),
                "port": port,
                "pid": 0,
            }
            self.state_file(name).write_text(json.dumps(state))
            self._ports[name] = start(self.state_file(name))
            if name in self._sasl_ports:
                _add_scram_users(f"127.0.0.1:{self._ports[name]}")
        return f"127.0.0.1:{self._ports[name]}"

    def restart_command(self) -> str:
        """A shell command that restarts the broker named by CHECKS_BROKER."""
        module = shlex.quote(self.python) + " -m tests.runner.served restart"
        return f'{module} "{self._directory.name}/$CHECKS_BROKER.json"'

    def close(self) -> None:
        with self._starting:
            self._is_closed = True
            for name in self._ports:
                stop(self.state_file(name))
        self._directory.cleanup()


def start(state_file: pathlib.Path) -> int:
    """Start the broker of a state file on its port; returns the port once it is ready."""
    state = json.loads(state_file.read_text())
    process = ServeProcess("served broker", log_path=pathlib.Path(state["log"]))
    process.start([*state["arguments"], "--listen", f"127.0.0.1:{state['port']}"])
    try:
        address = process.wait_ready(READY_TIMEOUT_S)[0]
    except NodeFailed as error:
        process.kill()
        raise BrokerDidNotStart(f"{error}; see {state['log']}") from None
    port = int(address.rpartition(":")[2])
    state.update(pid=process.pid, port=port)
    state_file.write_text(json.dumps(state))
    return port


def stop(state_file: pathlib.Path) -> None:
    """Stop the broker of a state file in order; kill it when it does not end."""
    state = json.loads(state_file.read_text())
    pid = state["pid"]
    if not pid:
        return
    for number, limit_s in ((signal.SIGTERM, STOP_TIMEOUT_S), (signal.SIGKILL, STOP_TIMEOUT_S)):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            break
        if _ended(pid, limit_s):
            break
    state["pid"] = 0
    state_file.write_text(json.dumps(state))


def _ended(pid: int, limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        try:
            if os.waitpid(pid, os.WNOHANG)[0] == pid:
                return True
        except ChildProcessError:
            # Not our child: a restart was asked for by another process.
            if not _runs(pid):
                return True
        time.sleep(0.02)
    return False


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def main() -> None:
    """The command line of restarts."""
    action, path = sys.argv[1:3]
    if action != "restart":
        raise SystemExit(f"unknown action {action}")
    stop(pathlib.Path(path))
    start(pathlib.Path(path))


if __name__ == "__main__":
    main()
