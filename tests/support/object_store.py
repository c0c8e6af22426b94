"""A store that speaks S3: moto in a process of its own, and a way to it that holds requests up."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import importlib.util
import pathlib
import re
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from types import TracebackType
from typing import Self

import pytest

from kwire.testing.cluster.ports import free_ports

HOST = "127.0.0.1"
BUCKET = "bucket"
CONNECTOR = "org.apache.hadoop:hadoop-aws:3.5.0"
START_S = 60
# Longer than a job beside takes.
HELD_S = 300
SERVE = "import sys; from moto.server import main; main(sys.argv[1:])"
# What is of one connection, not of an answer.
_HOP_BY_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length", "date", "server")


class ObjectStore:
    """A running store with an empty bucket; skips the test where moto is not installed.

    `bucket`: a name of its own where tests share a JVM, which keeps the address of each bucket."""

    def __init__(self, log: pathlib.Path, bucket: str = BUCKET) -> None:
        if importlib.util.find_spec("moto") is None or importlib.util.find_spec("flask") is None:
            pytest.skip('needs moto: pip install ".[stress]"')
        (self.port,) = free_ports(1)
        self.endpoint = f"http://{HOST}:{self.port}"
        self.bucket = bucket
        self._log = log

    def __enter__(self) -> Self:
        command = [sys.executable, "-c", SERVE, "-H", HOST, "-p", str(self.port)]
        with self._log.open("w") as file:
            self._process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + START_S
        while True:
            try:
                request = urllib.request.Request(f"{self.endpoint}/{self.bucket}", method="PUT")
                urllib.request.urlopen(request, timeout=START_S).close()
                return self
            except OSError:
                assert self._process.poll() is None, self._log.read_text()[-2000:]
                assert time.monotonic() < deadline, self._log.read_text()[-2000:]
                time.sleep(0.1)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait()

    def put(self, name: str, data: bytes) -> None:
        """An object."""
        place = f"{self.endpoint}/{self.bucket}/{urllib.parse.quote(name)}"
        # Else urllib says that it is a form, for the rest of which moto waits.
        kind = {"Content-Type": "application/octet-stream"}
        request = urllib.request.Request(place, data, kind, method="PUT")
        urllib.request.urlopen(request, timeout=START_S).close()

    def names(self, prefix: str = "") -> list[str]:
        """The names of all objects of the bucket that begin so."""
        names: list[str] = []
        more = ""
        while True:
            query = urllib.parse.urlencode({"list-type": 2, "prefix": prefix}) + more
            with urllib.request.urlopen(f"{self.endpoint}/{self.bucket}?{query}") as answer:
                text = answer.read().decode()
            names += re.findall(r"<Key>([^<]+)</Key>", text)
            token = re.search(r"<NextContinuationToken>([^<]+)<", text)
            if token is None:
                return names
            more = "&" + urllib.parse.urlencode({"continuation-token": token[1]})


class StoreFront:
    """An address that passes requests on to a store. `hold`: a part of a path whose first PUT
    waits until `release` is set, and sets `came`. `forgets`: it leaves the condition of a PUT out,
    as a store that does not know it. `answers`: (status, code) of its own to every request, as
    Amazon's where credentials or the region are wrong."""

    def __init__(
        self,
        store: ObjectStore,
        *,
        hold: str = "",
        forgets: bool = False,
        answers: tuple[int, str] | None = None,
    ) -> None:
        self.came, self.release = threading.Event(), threading.Event()
        self.refused = threading.Event()
        front = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if answers is not None:
                    return self.refuse(*answers)
                headers = dict(self.headers.items())
                if forgets:
                    headers.pop("If-None-Match", None)
                is_held = hold and self.command == "PUT" and hold in self.path
                if is_held and not front.came.is_set():
                    front.came.set()
                    front.release.wait(HELD_S)
                link = http.client.HTTPConnection(HOST, store.port)
                try:
                    link.request(self.command, self.path, body, headers)
                    answer = link.getresponse()
                    content = answer.read()
                finally:
                    link.close()
                if answer.status == http.HTTPStatus.PRECONDITION_FAILED:
                    front.refused.set()
                length = answer.headers.get("Content-Length") or str(len(content))
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    if name.lower() not in _HOP_BY_HOP:
                        self.send_header(name, value)
                self.send_header("Content-Length", length)
                self.end_headers()
                self.wfile.write(content)
                return None

            def refuse(self, status: int, code: str) -> None:
                text = f"<Error><Code>{code}</Code><Message>as told</Message></Error>".encode()
                self.send_response(status)
                self.send_header("x-amz-bucket-region", "eu-west-1")
                self.send_header("Content-Type", "application/xml")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text if self.command != "HEAD" else b"")

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = pass_on

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer((HOST, 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://{HOST}:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release.set()
        with contextlib.suppress(OSError):
            self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def settings(endpoint: str) -> dict[str, str]:
    """S3A's settings for a store at an address, as docs/SPARK.md has them."""
    return {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": "key",
        "fs.s3a.secret.key": "secret",
    }


def options(endpoint: str) -> list[str]:
    """The same as options of a job, with the connector as a package beside the defaults."""
    found = ["--packages", CONNECTOR]
    for name, value in settings(endpoint).items():
        found += ["--spark-conf", f"spark.hadoop.{name}={value}"]
    return found
