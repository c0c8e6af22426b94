"""No password of a URL is shown, whoever shows it."""

from __future__ import annotations

import pytest

from kwire.cli.registry import Registry
from kwire.client.errors import ClientError
from kwire.spark.decoding import _check_url
from kwire.spark.sides import Side
from kwire.spark.stores import open_store
from kwire.spark.usage import UsageError
from kwire.urls import without_userinfo


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://user:PASSWORD@h:9", "http://h:9"),
        ("https://TOKEN@h/x@y", "https://h/x@y"),
        ("HTTP://user:P@SS@h", "HTTP://h"),
        ("s3a://KEY:SEC/RET@bucket/lake: no", "s3a://bucket/lake: no"),
        ("s3://KEY@bucket/a@b", "s3://bucket/a@b"),
        ("s3a://bucket/date@x/y", "s3a://bucket/date@x/y"),
        ("jdbc:postgresql://u:PASSWORD@h/db and ftp://u:PASSWORD@h", None),
        ("abfss://container@account/x", "abfss://container@account/x"),
        ("http://h:9/a user@host", "http://h:9/a user@host"),
        ('{"a": "http://h:9", "b": "x@y"}', '{"a": "http://h:9", "b": "x@y"}'),
    ],
)
def test_users_and_passwords_are_left_out(text: str, shown: str | None) -> None:
    found = without_userinfo(text)
    assert found == shown if shown else "PASSWORD" not in found


@pytest.mark.parametrize(
    "url", ["ftp://user:SECRET@h", "http://user:SEC/SECRET@h:9", "a:SECRET@h", "http://u:SECRET@[h"]
)
def test_a_registry_that_is_none_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ClientError, match="no address of a registry") as refused:
        Registry(url)
    assert "SECRET" not in str(refused.value)
    with pytest.raises(UsageError, match="--registry ") as wrong:
        _check_url(url)
    assert "SECRET" not in str(wrong.value)


def test_segments_in_a_store_are_named_without_keys() -> None:
    assert Side("segments", "s3://KEY:SECRET@bucket/x").name == "segments:s3://bucket/x"
    with pytest.raises(ValueError, match="nothing://h/x") as refused:
        open_store("nothing://user:SECRET@h/x")
    assert "SECRET" not in str(refused.value)
