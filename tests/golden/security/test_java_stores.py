"""Key stores that Java's keytool has written, opened as Java opens them.

`stores.tar.gz` was made by keytool of Java 17, all with the password "storeword" and valid for a
hundred years: `keys.jks` holds the keys "one" (EC) and "two" (RSA) with the password "keyword" of
their own, `keys.p12` one key, `many.p12` two, `trust.jks` and `trust.p12` the three certificates of
`keys.jks` and `keys.p12`, `secret.jceks` a secret key.
"""

from __future__ import annotations

import io
import pathlib
import ssl
import tarfile

import pytest

from kwire.security.tls.distinguished_name import subject_of
from kwire.security.tls.errors import TlsError
from kwire.security.tls.memory_files import load_key
from kwire.security.tls.pem import encoded
from kwire.security.tls.settings import KeyStoreSettings, TrustStoreSettings
from kwire.security.tls.stores import load_key_store, load_trust_store

DATA = pathlib.Path(__file__).parents[1] / "data" / "stores.tar.gz"


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    directory = tmp_path_factory.mktemp("stores")
    with tarfile.open(fileobj=io.BytesIO(DATA.read_bytes())) as archive:
        archive.extractall(directory, filter="data")
    return directory


def key_store(
    path: pathlib.Path,
    kind: str = "JKS",
    password: str | None = "storeword",
    key_password: str | None = None,
) -> KeyStoreSettings:
    return KeyStoreSettings(kind, str(path), password, key_password, None, None)


def trust_store(
    path: pathlib.Path, kind: str = "JKS", password: str | None = "storeword"
) -> TrustStoreSettings:
    return TrustStoreSettings(kind, str(path), password, None)


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
@pytest.mark.parametrize(
    ("name", "key_password", "subjects"),
    [
        ("keys.jks", "keyword", ["CN=one", "CN=two"]),
        ("keys.p12", None, ["CN=p12"]),
        ("many.p12", None, ["CN=first", "CN=second"]),
    ],
)
def test_either_type_opens_either_format(
    stores: pathlib.Path, kind: str, name: str, key_password: str | None, subjects: list[str]
) -> None:
    entries = load_key_store(key_store(stores / name, kind, key_password=key_password))
    assert sorted(subject_of(entry.chain[0]) for entry in entries) == subjects
    for entry in entries:  # OpenSSL compares each key with its certificate
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        load_key(context, encoded("CERTIFICATE", entry.chain[0]), entry.key, None)


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
@pytest.mark.parametrize("name", ["trust.jks", "trust.p12"])
def test_what_is_trusted(stores: pathlib.Path, kind: str, name: str) -> None:
    found = load_trust_store(trust_store(stores / name, kind))
    assert found is not None
    assert sorted(map(subject_of, found)) == ["CN=one", "CN=p12", "CN=two"]


def test_a_trust_store_of_java_opens_without_its_password(stores: pathlib.Path) -> None:
    found = load_trust_store(trust_store(stores / "trust.jks", password=None))
    assert found is not None
    assert len(found) == 3


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (("keys.jks", "wrong", "keyword"), "cannot be opened: its password is another, or it is"),
        (("keys.p12", "wrong", None), "cannot be opened: its password is another, or it is"),
        (("keys.jks", "storeword", None), "ssl.key.password is not the password of the key"),
        (("trust.jks", "storeword", None), "holds no private key"),
        (("secret.jceks", "storeword", None), "is of type JCEKS; accepted are PEM, PKCS12 and JKS"),
    ],
)
def test_what_cannot_be_opened_is_told_without_its_password(
    stores: pathlib.Path, settings: tuple[str, str, str | None], told: str
) -> None:
    name, password, key_password = settings
    with pytest.raises(TlsError) as refused:
        load_key_store(key_store(stores / name, "JKS", password, key_password))
    assert told in str(refused.value)
    assert password not in str(refused.value)


def test_a_store_that_ends_early_or_is_damaged_is_refused(stores: pathlib.Path) -> None:
    """Each cut and each turned byte of what is not checked by a password."""
    whole = (stores / "trust.jks").read_bytes()
    path = stores / "damaged.jks"
    for at in range(0, len(whole), 37):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]):
            path.write_bytes(damaged)
            with pytest.raises(TlsError):
                load_trust_store(trust_store(path))
            try:
                load_trust_store(trust_store(path, password=None))
            except TlsError:
                pass
