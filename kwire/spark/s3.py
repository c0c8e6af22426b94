"""Lakes and mirrors' state on S3, by Hadoop's S3A: what a commit needs there, and what is wrong
with a store in one line.

A commit is a file that must not take the place of another. S3 refuses that itself where a request
says so (`If-None-Match: *`), which S3A sends for files that are created with CONDITION, and for no
others. Delta's log store for S3 does not; ConditionalLogStore.java does. It is compiled by the
compiler that Spark brings for its own generated code, when a session opens a place on S3 first.

Source: "Conditional writes" of Amazon's S3 User Guide; measured on hadoop-aws 3.5.0 and moto 5.2.5
(docs/adr/0048-lakes-are-delta-tables.md).
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import time
import weakref
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

from kwire.clock import SystemRandom
from kwire.spark.java_errors import causes_of, has_class
from kwire.spark.usage import UsageError, check_address
from kwire.urls import without_userinfo

SCHEMES = ("s3", "s3a", "s3n")
CONDITION = "fs.option.create.conditional.overwrite"
NO_STORE = "No FileSystem for scheme"
LOG_STORE = "kwire.spark.ConditionalLogStore"
LOG_STORE_SETTINGS = "spark.delta.logStore."
# 409 is what a store says while another request for the name is under way. As ConditionalLogStore.
CONFLICT = "Status Code: 409"
ATTEMPTS = 5
PAUSE_S = 0.2
# A store is asked once before there is anything to lose: what S3A would try for minutes is told.
IMPATIENT = {
    "fs.s3a.attempts.maximum": "1",
    "fs.s3a.retry.limit": "1",
    "fs.s3a.retry.interval": "100ms",
    "fs.s3a.retry.throttle.limit": "3",
    "fs.s3a.retry.throttle.interval": "200ms",
    "fs.s3a.retry.http.5xx.errors": "false",
    "fs.s3a.connection.establish.timeout": "5s",
    "fs.s3a.connection.timeout": "10s",
    "fs.s3a.connection.acquisition.timeout": "10s",
}
# A setting's value by its name.
Get = Callable[[str], str | None]
_reached: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()


def is_s3(location: str) -> bool:
    """Whether a place is on S3, by its scheme."""
    return location.partition(":")[0] in SCHEMES


def reach(spark: Any, root: str) -> None:
    """Ask the store for a folder, once in a session, and have commits there made conditional.

    UsageError for a connector, bucket, region, endpoint or credentials that are not there or wrong.
    """
    check_address(root)
    scheme, _, rest = root.partition("://")
    bucket = rest.partition("/")[0]
    known = _reached.setdefault(spark, set())
    if f"{scheme}://{bucket}" in known:
        return
    if not bucket:
        raise UsageError(f"{root}: names no bucket: {scheme}://BUCKET/PATH")
    conf = spark._jvm.org.apache.hadoop.conf.Configuration(spark._jsc.hadoopConfiguration())
    for name, value in IMPATIENT.items():
        conf.set(name, value)
    place = spark._jvm.org.apache.hadoop.fs.Path(root)
    try:
        with _nothing_said(spark._jvm):
            system = spark._jvm.org.apache.hadoop.fs.FileSystem.newInstance(place.toUri(), conf)
        try:
            # A list, as what refuses it says why; the answer to a look at one file has no text.
            system.listStatusIterator(place).hasNext()
        finally:
            system.close()
    except Exception as error:
        if not _is_empty(list(causes_of(error))):
            raise UsageError(f"{root}: {_reason(spark, root, error)}") from None
    _use_log_store(spark, scheme)
    known.add(f"{scheme}://{bucket}")


@contextlib.contextmanager
def _nothing_said(jvm: Any) -> Iterator[None]:
    """The logger inside of Amazon's bundle writes to stderr that it is not set up."""
    system = jvm.java.lang.System
    told = system.err
    system.setErr(jvm.java.io.PrintStream(jvm.java.io.OutputStream.nullOutputStream()))
    try:
        yield
    finally:
        system.setErr(told)


def _is_empty(causes: list[tuple[str, str]]) -> bool:
    """Whether a list failed as there is nothing in the folder: the bucket is there."""
    return (
        bool(causes) and causes[0][0] == "FileNotFoundException" and "(Service" not in str(causes)
    )


def _reason(spark: Any, root: str, error: Exception) -> str:
    version = spark._jvm.org.apache.hadoop.util.VersionInfo.getVersion()
    settings = spark._jsc.hadoopConfiguration()
    return reason(list(causes_of(error)), root, settings.get, version)


def reason(causes: list[tuple[str, str]], root: str, get: Get, version: str) -> str:
    """Why a store cannot be used, and what helps. `causes`: as `causes_of`; `version`: Hadoop's."""
    scheme, _, rest = root.partition("://")
    bucket = rest.partition("/")[0]
    names = [name for name, _ in causes]
    text = " ".join(message for _, message in causes)
    endpoint = without_userinfo(_setting(get, bucket, "endpoint")) or "Amazon's endpoint"
    last = without_userinfo(causes[-1][1] if causes and causes[-1][1] else " ".join(names[-1:]))
    if (_lacks_class(causes) and "S3AFileSystem" in text) or NO_STORE in text:
        where = "" if scheme == "s3a" else f" as s3a://{rest}"
        package = f"org.apache.hadoop:hadoop-aws:{version}"
        return f"its connector is not there; reached{where} with --packages {package}"
    if "UnknownStoreException" in names or "NoSuchBucket" in text:
        return f"no bucket {bucket} at {endpoint}; {_where('fs.s3a.endpoint', 'URL')} is another"
    if "NoAuthWithAWSException" in names:
        return (
            f"no credentials for {endpoint}: neither fs.s3a.access.key and fs.s3a.secret.key "
            f"({_where('fs.s3a.access.key', 'KEY')}), nor AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, nor a role of this machine"
        )
    if "AWSRedirectException" in names:
        region = found[1] if (found := re.search(r"to region \[([\w-]+)\]", text)) else "REGION"
        return f"the bucket is in another region: {_where('fs.s3a.endpoint.region', region)}"
    if "AccessDeniedException" in names:
        code = found[1] if (found := re.search(r"\):(\w+)", text)) else "AccessDenied"
        if code == "null":
            code = "AccessDenied"
        return (
            f"{endpoint} refuses the credentials from {_source(get, bucket)} ({code}); they must "
            "be allowed to list, read, write and delete there"
        )
    if any(name.startswith("SSL") for name in names):
        todo = f"{_where('fs.s3a.endpoint', 'http://HOST:PORT')} for one without TLS"
        return f"no TLS with {endpoint}: {last}; {todo}"
    if any(word in str(names) for word in ("UnknownHost", "Connect", "Timeout", "NoRouteTo")):
        return f"{endpoint} does not answer: {last}; {_where('fs.s3a.endpoint', 'URL')} is another"
    if "AWSBadRequestException" in names:
        region = _setting(get, bucket, "endpoint.region") or "REGION"
        told = found[1] if (found := re.search(r"\):(\w+: [^(]+)", text)) else last
        todo = f"is its region the one of {_where('fs.s3a.endpoint.region', region)}?"
        return f"{endpoint} refuses the request: {told.strip()}; {todo}"
    if "FileNotFoundException" in names:
        return f"what answers at {endpoint} is no S3: {last}"
    return f"{names[-1] if names else 'failed'}: {last}"[:400]


def _lacks_class(causes: list[tuple[str, str]]) -> bool:
    return any("ClassNotFound" in name or "ClassNotFound" in text for name, text in causes)


def _where(name: str, value: str) -> str:
    return f"--spark-conf spark.hadoop.{name}={value}"


def _setting(get: Get, bucket: str, name: str) -> str:
    """A setting of S3A for a bucket; "" without any."""
    return str(get(f"fs.s3a.bucket.{bucket}.{name}") or get(f"fs.s3a.{name}") or "")


def _source(get: Get, bucket: str) -> str:
    """Where credentials are from; S3A asks in this order."""
    if _setting(get, bucket, "access.key"):
        return "fs.s3a.access.key"
    if os.environ.get("AWS_ACCESS_KEY_ID"):
        return "AWS_ACCESS_KEY_ID"
    return "fs.s3a.aws.credentials.provider"


def create(system: Any, place: Any, data: bytes) -> bool:
    """Make a file; False where there is one already, also one that came at this moment."""
    for attempt in range(ATTEMPTS):
        builder = system.createFile(place)
        builder.must(CONDITION, True)
        stream = builder.build()
        try:
            stream.write(bytearray(data))
            stream.close()
        except Exception as error:
            if system.exists(place):
                return False
            if attempt + 1 == ATTEMPTS or not _is_conflict(error):
                raise
            time.sleep(PAUSE_S * 2**attempt)  # another upload is under way, and may fail
        else:
            break
    return True


def _is_conflict(error: Exception) -> bool:
    """Whether the store says that another request for the name is under way."""
    return any(CONFLICT in text for _, text in causes_of(error))


def check_conditions(spark: Any, system: Any, root: str) -> None:
    """UsageError where a store replaces files in spite of the condition, as of two commits the
    later one could take the place of the other; and where nothing may be written."""
    place = spark._jvm.org.apache.hadoop.fs.Path(
        f"{root}/.kwire-{SystemRandom().random_bytes(8).hex()}"
    )
    try:
        # Whether the first one took the name says nothing: where its answer was lost, the store
        # refuses what was sent again. It is there then; nobody else has this name.
        create(system, place, b"first")
        is_replaced = create(system, place, b"second")
    except Exception as error:
        raise UsageError(f"{root}: {_reason(spark, root, error)}") from None
    finally:
        with contextlib.suppress(Exception):
            system.delete(place, False)
    if is_replaced:
        raise UsageError(
            f"{root}: its store replaces files in spite of If-None-Match, so that writers could "
            f"replace commits of each other; a log store for it: --spark-conf {LOG_STORE_SETTINGS}"
            f"{root.partition(':')[0]}.impl=CLASS"
        )


def has_own_log_store(spark: Any, scheme: str) -> bool:
    """Whether Delta's settings name a log store for S3 that is not this one."""
    conf = spark._jsc.sc().conf()
    for name in ("class", f"{scheme}.impl"):
        if conf.get(LOG_STORE_SETTINGS + name, LOG_STORE) != LOG_STORE:
            return True
    return False


def _use_log_store(spark: Any, scheme: str) -> None:
    """Let Delta write its logs by ConditionalLogStore; where it is not there, or settings name
    another log store, nothing is done."""
    jvm = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if has_own_log_store(spark, scheme) or not has_class(jvm, loader, "io.delta.storage.LogStore"):
        return
    if not has_class(jvm, loader, LOG_STORE):
        _define(spark, loader)
    # Delta reads it where it opens a table; a job's session is long there then.
    spark._jsc.sc().conf().set(f"{LOG_STORE_SETTINGS}{scheme}.impl", LOG_STORE)


def _define(spark: Any, loader: Any) -> None:
    """Compile the class and put it before Spark's loader of jars, and the executors'."""
    jvm = spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    source = pathlib.Path(__file__).with_name("ConditionalLogStore.java")
    compiler.cook(source.read_text(encoding="utf-8"))
    jar = os.path.join(spark.sparkContext._temp_dir, "kwire-log-store.jar")
    with zipfile.ZipFile(jar, "w") as file:
        for name, code in dict(compiler.getBytecodes()).items():
            file.writestr(name.replace(".", "/") + ".class", bytes(code))
    jars = jvm.java.lang.Class.forName("org.apache.spark.util.MutableURLClassLoader")
    while loader is not None and not jars.isInstance(loader):
        loader = loader.getParent()
    if loader is None:
        raise UsageError("Spark has no loader for jars here: run the job by kwire or spark-submit")
    loader.addURL(jvm.java.io.File(jar).toURI().toURL())
    spark._jsc.addJar(jar)  # VACUUM lists by the log store, on executors
