"""Cipher suites and protocol versions: Java's names, and what Python's `ssl` can select of them."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable

from kwire.security.tls.errors import TlsError

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
ANY_VERSION = ("TLS", "TLSv1.2", "TLSv1.3")
SUITES_OF_1_3 = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
)
_SUITE = re.compile(
    r"TLS_(?:(?P<exchange>ECDHE|DHE|RSA)_)(?:(?P<signature>RSA|ECDSA)_)?WITH_"
    r"(?:AES_(?P<bits>128|256)_(?P<mode>CBC|GCM|CCM|CCM_8)|(?P<chacha>CHACHA20_POLY1305))"
    r"(?:_(?P<hash>SHA|SHA256|SHA384))?"
)


def apply(
    context: ssl.SSLContext, protocol: str, enabled: tuple[str, ...], suites: tuple[str, ...]
) -> None:
    """Restrict a context to the protocol versions and suites of these names; TlsError for one that
    cannot be selected. No suites: OpenSSL's own choice."""
    if protocol not in ANY_VERSION:
        raise TlsError(_refused(protocol, "ssl.protocol", ANY_VERSION))
    for version in enabled:
        if version not in VERSIONS:
            raise TlsError(_refused(version, "ssl.enabled.protocols", VERSIONS))
    versions = [VERSIONS[version] for version in enabled] or list(VERSIONS.values())
    if suites:
        versions = _of_suites(context, suites, versions)
    context.minimum_version, context.maximum_version = min(versions), max(versions)


def _of_suites(
    context: ssl.SSLContext, suites: tuple[str, ...], versions: list[ssl.TLSVersion]
) -> list[ssl.TLSVersion]:
    """Select the suites; the versions that are left with them."""
    newest = [suite for suite in suites if suite in SUITES_OF_1_3]
    older = [suite for suite in suites if suite not in SUITES_OF_1_3]
    if newest and len(newest) < len(SUITES_OF_1_3) and ssl.TLSVersion.TLSv1_3 in versions:
        missing = [suite for suite in SUITES_OF_1_3 if suite not in newest]
        raise TlsError(
            f"ssl.cipher.suites={','.join(suites)} is refused: Python's ssl cannot leave out "
            f"{' and '.join(missing)} of TLS 1.3; accepted: all three of TLS 1.3 or none"
        )
    names = [_name_in_openssl(suite) for suite in older]
    if names:
        try:
            context.set_ciphers(":".join(names))
        except ssl.SSLError:
            raise TlsError(
                f"ssl.cipher.suites={','.join(suites)} is refused: OpenSSL has none of them"
            ) from None
    left = [
        version for version in versions if (newest if version == ssl.TLSVersion.TLSv1_3 else names)
    ]
    if not left:
        raise TlsError(
            f"ssl.cipher.suites={','.join(suites)} is refused: none is of a version in "
            "ssl.enabled.protocols"
        )
    return left


def _name_in_openssl(suite: str) -> str:
    match = _SUITE.fullmatch(suite)
    name = ""
    if match is not None:
        exchange = (
            "" if match["exchange"] == "RSA" else f"{match['exchange']}-{match['signature']}-"
        )
        if match["chacha"]:
            name = f"{exchange}CHACHA20-POLY1305"
        else:
            mode = "" if match["mode"] == "CBC" else f"-{match['mode'].replace('_', '')}"
            digest = f"-{match['hash']}" if match["hash"] else ""
            name = f"{exchange}AES{match['bits']}{mode}{digest}"
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(name or "none of them")
    except ssl.SSLError:
        raise TlsError(
            f"Invalid value {suite} for configuration ssl.cipher.suites: Python's ssl cannot "
            "select it"
        ) from None
    return name


def _refused(value: str, name: str, accepted: Iterable[str]) -> str:
    return f"{name}={value} is refused: accepted are {', '.join(accepted)}"
