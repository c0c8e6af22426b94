"""Spark's connector and the jobs where a broker asks for TLS and a login by SCRAM."""

from __future__ import annotations

import hashlib
import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import test_pipeline as pipeline

from kwire.protocol import messages as m
from kwire.testing.cluster import Broker, free_ports
from tests.support import kafka_client as client
from tests.support import secured
from tests.support.sasl import SCRAM_MODULE
from tests.support.wire import WireClient

MECHANISM = "SCRAM-SHA-512"
SHA_512 = 2
ITERATIONS = 4096


class Secure(NamedTuple):
    """The addresses of a listener for the test, and of one with TLS and logins."""

    plain: str
    sasl_ssl: str
    directory: pathlib.Path

    def properties(self) -> dict[str, str]:
        login = f'{SCRAM_MODULE} required username="{secured.USER}" password="{secured.PASSWORD}";'
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": login,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": f"{self.directory}/authority.pem",
        }


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    directory = tmp_path_factory.mktemp("secure")
    secured.prepare(directory)
    plain, sasl_ssl, ssl = (f"127.0.0.1:{port}" for port in free_ports(3))
    options = secured.options(directory, plain, sasl_ssl, ssl)
    with Broker(options=options, pass_listen=False):
        shape = m.AlterUserScramCredentialsRequest
        salted = hashlib.pbkdf2_hmac("sha512", secured.PASSWORD.encode(), b"a salt", ITERATIONS)
        user = shape.ScramCredentialUpsertion(
            name=secured.USER,
            mechanism=SHA_512,
            iterations=ITERATIONS,
            salt=b"a salt",
            salted_password=salted,
        )
        with WireClient(plain) as wire:
            assert not wire.call(shape(upsertions=[user]), 0).results[0].error_code
        yield Secure(plain, sasl_ssl, directory)


def test_the_connector_writes_and_reads(secure: Secure, spark: Any) -> None:
    topic = client.create(secure.plain, partitions=2)
    options = {f"kafka.{name}": value for name, value in secure.properties().items()}
    options["kafka.bootstrap.servers"] = secure.sasl_ssl
    rows = [(f"k{n}", f"v{n}") for n in range(200)]
    frame = spark.createDataFrame(rows, "key string, value string")
    frame.write.format("kafka").options(**options).option("topic", topic).save()
    reading = spark.read.format("kafka").options(**options).option("subscribe", topic).load()
    found = reading.selectExpr("cast(key as string)", "cast(value as string)").collect()
    assert sorted(map(tuple, found)) == sorted(rows)


def test_a_job_logs_in_by_a_file_of_properties(
    secure: Secure, run: pipeline.Run, lake: str, tmp_path: pathlib.Path
) -> None:
    config = tmp_path / "client.properties"
    lines = (f"{name}={value}\n" for name, value in secure.properties().items())
    config.write_text("".join(lines))
    topic = client.create(secure.plain, partitions=3)
    client.send(secure.plain, topic, pipeline.random_records(7, 300, 3))
    login = ("--command-config", str(config))
    done = run(
        "archive", "-b", secure.sasl_ssl, *login, "--topics", topic, "--lake", lake, "--once"
    )
    assert done.status == 0, done.stderr
    assert secured.PASSWORD not in done.stderr
    back = f"{topic}-back"
    target = ("--lake", lake, "--to-topic", back, "--create")
    done = run("replay", "-b", secure.sasl_ssl, *login, *target)
    assert done.status == 0, done.stderr
    left, right = (client.consume(secure.plain, each) for each in (topic, back))
    assert pipeline.same_content(left, right)


def test_a_wrong_password_is_told_in_one_line(
    secure: Secure, run: pipeline.Run, lake: str, tmp_path: pathlib.Path
) -> None:
    config = tmp_path / "client.properties"
    wrong = {n: v.replace(secured.PASSWORD, "wrong-word") for n, v in secure.properties().items()}
    config.write_text("".join(f"{name}={value}\n" for name, value in wrong.items()))
    login = ("--command-config", str(config))
    done = run("archive", "-b", secure.sasl_ssl, *login, "--topics", "t", "--lake", lake, "--once")
    assert done.status != 0
    assert "invalid credentials" in done.stderr, done.stderr
    assert "wrong-word" not in done.stderr
