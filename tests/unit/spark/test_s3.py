"""What is told of a store on S3: chains of exceptions as hadoop-aws 3.5.0 has them (measured)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest.mock import MagicMock

import pytest

from kwire.spark import s3
from kwire.spark.java_errors import has_class
from kwire.spark.lake import check_archive
from kwire.spark.lake_files import check_folder, open_lake_files
from kwire.spark.usage import UsageError

ROOT = "s3a://bucket/lake"
CLIENT = "software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request"


def service(code: str, status: int, text: str = "told by the store") -> str:
    told = f"{text} (Service: S3, Status Code: {status}, Request ID: 1) (SDK Attempt Count: 1)"
    return f"listObjects() on {ROOT}: software.amazon.awssdk.S3Exception: {told}:{code}"


class Java:
    """An exception of Java, with what caused it."""

    def __init__(self, causes: list[tuple[str, str]]) -> None:
        (self._name, self._message), *self._rest = causes

    def getClass(self) -> Java:
        return self

    def getName(self) -> str:
        return self._name

    def getMessage(self) -> str:
        return self._message

    def getCause(self) -> Java | None:
        return Java(self._rest) if self._rest else None


class JavaError(Exception):
    def __init__(self, *causes: tuple[str, str]) -> None:
        self.java_exception = Java(list(causes))


def spark_that_raises(error: Exception | None, settings: Mapping[str, str]) -> MagicMock:
    spark = MagicMock()
    hadoop = spark._jvm.org.apache.hadoop
    hadoop.util.VersionInfo.getVersion.return_value = "9.9"
    spark._jsc.hadoopConfiguration.return_value.get.side_effect = settings.get
    hadoop.fs.FileSystem.newInstance.return_value.listStatusIterator.side_effect = error
    return spark


MISSING = ("java.lang.RuntimeException", "ClassNotFoundException: Class a.S3AFileSystem not found")
REDIRECT = "Received permanent redirect response to region [eu-west-1].  This likely indicates ..."


@pytest.mark.parametrize(
    ("root", "causes", "words"),
    [
        (
            ROOT,
            [MISSING],
            "its connector is not there; reached with --packages org.apache.hadoop:hadoop-aws:9.9",
        ),
        (
            "s3://bucket/lake",
            [("org.apache.hadoop.fs.Unsupported", 'No FileSystem for scheme "s3"')],
            "reached as s3a://bucket/lake with --packages org.apache.hadoop:hadoop-aws:9.9",
        ),
        (
            ROOT,
            [("org.apache.hadoop.fs.s3a.UnknownStoreException", service("NoSuchBucket", 404))],
            "no bucket bucket at http://store:9; --spark-conf spark.hadoop.fs.s3a.endpoint=URL",
        ),
        (
            ROOT,
            [
                ("java.nio.file.AccessDeniedException", f"{ROOT}: NoAuthWithAWSException: No"),
                ("org.apache.hadoop.fs.s3a.auth.NoAuthWithAWSException", "No AWS Credentials"),
            ],
            "no credentials for http://store:9: neither fs.s3a.access.key",
        ),
        (
            ROOT,
            [("java.nio.file.AccessDeniedException", service("InvalidAccessKeyId", 403))],
            "http://store:9 refuses the credentials from fs.s3a.access.key (InvalidAccessKeyId)",
        ),
        (
            ROOT,
            [("org.apache.hadoop.fs.s3a.AWSRedirectException", REDIRECT)],
            "another region: --spark-conf spark.hadoop.fs.s3a.endpoint.region=eu-west-1",
        ),
        (
            ROOT,
            [
                (
                    "org.apache.hadoop.fs.s3a.AWSBadRequestException",
                    service("AuthorizationHeaderMalformed: the region is wrong (Service: S3)", 400),
                )
            ],
            "refuses the request: AuthorizationHeaderMalformed: the region is wrong; is its region",
        ),
        (
            ROOT,
            [("java.net.ConnectException", CLIENT), ("java.net.ConnectException", "refused")],
            "http://store:9 does not answer: refused; --spark-conf spark.hadoop.fs.s3a.endpoint",
        ),
        (
            ROOT,
            [("java.net.UnknownHostException", CLIENT), ("java.net.UnknownHostException", "no.x")],
            "http://store:9 does not answer: no.x",
        ),
        (
            ROOT,
            [("javax.net.ssl.SSLException", CLIENT), ("javax.net.ssl.SSLException", "no SSL")],
            "no TLS with http://store:9: no SSL",
        ),
        (
            ROOT,
            [("java.io.FileNotFoundException", service("null", 404))],
            "what answers at http://store:9 is no S3",
        ),
        (
            ROOT,
            [("a.InstantiationIOException", "x"), ("b.ClassNotFoundException", "no.Provider")],
            "ClassNotFoundException: no.Provider",
        ),
        (
            ROOT,
            [("a.AWSServiceThrottledException", service("SlowDown", 503)), ("a.S3Exception", "q")],
            "S3Exception: q",
        ),
    ],
)
def test_what_is_wrong_is_one_line(root: str, causes: Any, words: str) -> None:
    settings = {"fs.s3a.endpoint": "http://store:9", "fs.s3a.access.key": "key"}
    with pytest.raises(UsageError) as refused:
        open_lake_files(root, spark_that_raises(JavaError(*causes), settings))
    text = str(refused.value)
    assert words in text
    assert text.startswith(f"{root}: ")
    assert "\n" not in text


def test_a_bucket_may_have_settings_of_its_own() -> None:
    settings = {"fs.s3a.endpoint": "http://a", "fs.s3a.bucket.bucket.endpoint": "http://b"}
    denied = JavaError(("x.ConnectException", "refused"))
    with pytest.raises(UsageError, match="http://b does not answer"):
        s3.reach(spark_that_raises(denied, settings), ROOT)


def test_a_folder_that_is_not_there_is_none_to_complain_of() -> None:
    missing = JavaError(("java.io.FileNotFoundException", f"No such file or directory: {ROOT}"))
    spark = spark_that_raises(missing, {})
    for _ in range(3):
        s3.reach(spark, ROOT)
    asked = spark._jvm.org.apache.hadoop.fs.FileSystem.newInstance
    assert asked.call_count == 1
    assert asked.return_value.close.call_count == 1


def test_a_place_without_a_bucket_is_refused() -> None:
    with pytest.raises(UsageError, match="s3a:///lake: names no bucket"):
        s3.reach(MagicMock(), "s3a:///lake")


class Store:
    """A store as Hadoop shows one, of files that are created with a condition; `lost`: how many
    answers to a PUT do not come, so that the client sends it again; `conflicts`: how many PUTs
    come while another one is under way."""

    def __init__(self, *, keeps_condition: bool = True, lost: int = 0, conflicts: int = 0) -> None:
        self.files: dict[str, bytes] = {}
        self.made: list[bytes] = []
        self._keeps_condition, self._lost = keeps_condition, lost
        self._conflicts = conflicts

    def put(self, path: str, data: bytes, *, conditional: bool) -> None:
        if self._conflicts:
            self._conflicts -= 1
            code = "ConditionalRequestConflict"
            raise JavaError(("org.apache.hadoop.fs.s3a.AWSBadRequestException", service(code, 409)))
        while True:
            if conditional and self._keeps_condition and path in self.files:
                raise OSError("412 PreconditionFailed")
            self.files[path] = data
            self.made.append(data)
            if not self._lost:
                return
            self._lost -= 1

    def createFile(self, path: str) -> Upload:
        return Upload(self, path)

    def exists(self, path: str) -> bool:
        return path in self.files

    def delete(self, path: str, recursive: bool) -> bool:
        return self.files.pop(path, None) is not None


class Upload:
    """Builder and stream in one."""

    def __init__(self, store: Store, path: str) -> None:
        self._store, self._path = store, path
        self._wanted: dict[str, bool] = {}
        self._data = b""

    def must(self, name: str, value: bool) -> Upload:
        self._wanted[name] = value
        return self

    def build(self) -> Upload:
        return self

    def write(self, data: bytearray) -> None:
        self._data += data

    def close(self) -> None:
        conditional = self._wanted.get("fs.option.create.conditional.overwrite", False)
        self._store.put(self._path, self._data, conditional=conditional)


def checked(store: Store) -> None:
    spark = MagicMock()
    spark._jvm.org.apache.hadoop.fs.Path = str
    s3.check_conditions(spark, store, ROOT)


def test_a_store_that_replaces_files_is_refused() -> None:
    for lost in (0, 1):
        store = Store(keeps_condition=False, lost=lost)
        with pytest.raises(UsageError, match="replaces files in spite of If-None-Match"):
            checked(store)
        assert store.made[-1] == b"second"
        assert store.files == {}


def test_a_store_that_keeps_files_is_taken_also_where_the_answer_to_the_first_is_lost() -> None:
    for lost in (0, 1):
        store = Store(lost=lost)
        checked(store)
        assert store.made == [b"first"]
        assert store.files == {}


def test_a_file_is_made_once_another_upload_is_no_more_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(s3.time, "sleep", pauses.append)
    store = Store(conflicts=2)
    assert s3.create(store, "place", b"data")
    assert store.files == {"place": b"data"}
    assert len(pauses) == 2
    assert not s3.create(store, "place", b"other")
    with pytest.raises(JavaError):
        s3.create(Store(conflicts=99), "place", b"data")


def test_credentials_are_neither_taken_nor_shown_in_an_address() -> None:
    for root in (
        "s3a://KEY:SECRET@bucket/lake",
        "s3a://KEY:SEC/RET@bucket/lake",
        "s3://KEY@bucket",
    ):
        spark = spark_that_raises(None, {})
        with pytest.raises(UsageError, match=r"s3a?://bucket.*: keys in an address") as refused:
            s3.reach(spark, root)
        assert "KEY" not in str(refused.value)
        assert "RET" not in str(refused.value)
        assert not spark._jvm.mock_calls
        for check in (check_folder, check_archive):
            with pytest.raises(UsageError, match=r"--lake s3a?://bucket.*: keys in an address"):
                check(root, "--lake")


def test_an_endpoint_is_shown_without_user_and_password() -> None:
    settings = {"fs.s3a.endpoint": "http://user:PASSWORD@h:9"}
    told = JavaError(("x.ConnectException", "to http://user:PASSWORD@h:9: refused"))
    with pytest.raises(UsageError, match="http://h:9 does not answer: to http://h:9") as refused:
        s3.reach(spark_that_raises(told, settings), ROOT)
    assert "PASSWORD" not in str(refused.value)


def test_a_file_that_failed_to_be_made_is_no_file_of_another() -> None:
    system = MagicMock()
    system.createFile.return_value.build.return_value.close.side_effect = OSError("away")
    system.exists.return_value = False
    with pytest.raises(OSError, match="away"):
        s3.create(system, "place", b"data")


def test_credentials_that_may_only_read_are_told_before_work() -> None:
    system = MagicMock()
    denied = JavaError(("java.nio.file.AccessDeniedException", service("AccessDenied", 403)))
    system.createFile.return_value.build.return_value.close.side_effect = denied
    system.exists.return_value = False
    with pytest.raises(UsageError, match=r"refuses the credentials .*\(AccessDenied\)"):
        s3.check_conditions(spark_that_raises(None, {}), system, ROOT)


def class_loaded_with(error: Exception | None) -> MagicMock:
    jvm = MagicMock()
    jvm.java.lang.Class.forName.side_effect = error
    return jvm


def test_a_class_is_missing_where_java_says_so_and_only_there() -> None:
    """Any error was taken for that: a class of a newer Java was advised to be fetched."""
    name = "io.delta.storage.LogStore"
    assert has_class(class_loaded_with(None), None, name)
    missing = JavaError(("java.lang.ClassNotFoundException", name))
    assert not has_class(class_loaded_with(missing), None, name)
    for kind, text in (
        ("UnsupportedClassVersionError", "has been compiled by a more recent version"),
        ("NoClassDefFoundError", "org/apache/hadoop/fs/Path"),
    ):
        broken = class_loaded_with(JavaError((f"java.lang.{kind}", text)))
        with pytest.raises(UsageError, match=f"^{name} cannot be loaded: {kind}: {text}$"):
            has_class(broken, None, name)
    with pytest.raises(OSError, match="gone"):
        has_class(class_loaded_with(OSError("gone")), None, name)
