"""The log store of lakes on S3, as Delta calls it, on a store that refuses and loses answers."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from kwire.spark import s3
from kwire.spark.java_errors import has_class

SYSTEM = "kwire.tests.RefusingSystem"
OWN = '{"commitInfo":{"txnId":"11111111-1111-1111-1111-111111111111"}}'
OTHERS = '{"commitInfo":{"txnId":"22222222-2222-2222-2222-222222222222"}}\n'
WITHOUT_ID = '{"txn":{"appId":"a","version":1}}'


class LogStore:
    """The log store, over RefusingSystem.java."""

    def __init__(self, spark: Any, folder: pathlib.Path) -> None:
        self._jvm = jvm = spark._jvm
        self.file = folder / "_delta_log" / f"{0:020d}.json"
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        if not has_class(jvm, loader, s3.LOG_STORE):
            s3._define(spark, loader)
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(loader)
        compiler.cook(pathlib.Path(__file__).with_name("RefusingSystem.java").read_text())
        self._conf = jvm.org.apache.hadoop.conf.Configuration(spark._jsc.hadoopConfiguration())
        self._conf.setClassLoader(compiler.getClassLoader())
        self._conf.set("fs.refusing.impl", SYSTEM)
        self._conf.set("fs.refusing.impl.disable.cache", "true")
        system = jvm.java.lang.Class.forName(SYSTEM, True, compiler.getClassLoader())
        self._answers = system.getField("answers").get(None)
        self._uploads = system.getField("uploads")
        made = spark._sc._gateway.new_array(jvm.java.lang.Object, 1)
        made[0] = self._conf
        store = jvm.java.lang.Class.forName(s3.LOG_STORE, True, loader)
        self._store = store.getConstructors()[0].newInstance(made)

    @property
    def uploads(self) -> int:
        return int(self._uploads.get(None))

    def write(self, commit: str, *answers: str) -> None:
        """A commit; what comes of its uploads."""
        for answer in answers:
            self._answers.add(answer)
        actions = self._jvm.java.util.ArrayList()
        actions.add(commit)
        path = self._jvm.org.apache.hadoop.fs.Path(f"refusing://{self.file}")
        self._store.write(path, actions.iterator(), False, self._conf)


@pytest.fixture
def log_store(spark: Any, tmp_path: pathlib.Path) -> LogStore:
    return LogStore(spark, tmp_path)


def test_a_commit_waits_while_another_is_under_way_and_may_fail(log_store: LogStore) -> None:
    log_store.write(OWN, "CONFLICT", "CONFLICT")
    assert log_store.file.read_text() == f"{OWN}\n"
    assert log_store.uploads == 3


def test_a_commit_that_another_one_was_before_is_refused(log_store: LogStore) -> None:
    with pytest.raises(Exception, match="FileAlreadyExistsException"):
        log_store.write(OWN, "CONFLICT", OTHERS)
    assert log_store.file.read_text() == OTHERS
    assert log_store.uploads == 2


def test_a_conflict_without_end_is_an_error(log_store: LogStore) -> None:
    with pytest.raises(Exception, match="Status Code: 409"):
        log_store.write(OWN, *["CONFLICT"] * 9)
    assert not log_store.file.exists()
    assert log_store.uploads == 5


def test_a_commit_whose_answer_was_lost_is_its_own(log_store: LogStore) -> None:
    log_store.write(OWN, "LOST")
    assert log_store.file.read_text() == f"{OWN}\n"


def test_the_same_bytes_without_an_id_are_another_writers(log_store: LogStore) -> None:
    with pytest.raises(Exception, match="FileAlreadyExistsException"):
        log_store.write(WITHOUT_ID, f"{WITHOUT_ID}\n")
