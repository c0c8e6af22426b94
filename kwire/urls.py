"""URLs as they are shown: without who asks and the password, which may stand in them."""

from __future__ import annotations

import re

# A user alone is hidden for HTTP, where it may be a token. Elsewhere it may be part of the place
# (`abfss://CONTAINER@ACCOUNT/`), and is hidden with a password. Keys of S3 may have a `/`.
_USERINFO = re.compile(
    r"""(?<=://)(?:
    (?<=http://)[^\s/?\#"]*@
    |(?<=https://)[^\s/?\#"]*@
    |(?:(?<=s3://)|(?<=s3[an]://))(?:[^\s/:"]*:[^\s"]*|[^\s/"]*)@
    |[^\s/:@"]*:[^\s/"]*@
    )""",
    re.VERBOSE | re.IGNORECASE,
)


def without_userinfo(text: str) -> str:
    """A text without users and passwords in its URLs.

    >>> without_userinfo("http://user:secret@host:9/x: refused")
    'http://host:9/x: refused'
    >>> without_userinfo("s3a://KEY:SEC/RET@bucket/lake, abfss://container@account/lake")
    's3a://bucket/lake, abfss://container@account/lake'
    """
    return _USERINFO.sub("", text)


def refused_url(url: str) -> str:
    """What is no URL, to be shown: without all that could be a password.

    >>> refused_url("http://user:se/cret@host")
    'http://host'
    >>> refused_url("ftp:/x")
    'ftp:/x'
    """
    before, at, place = url.rpartition("@")
    scheme, separator, _ = before.partition("://")
    return f"{scheme}{separator}{place}" if at and separator else place
