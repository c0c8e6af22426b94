"""An authority and a certificate for one broker, for development (`kwire serve --secure`)."""

from __future__ import annotations

import datetime
import ipaddress
import os

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kwire.cli.secret_files import write_secret

AUTHORITY_DAYS, NODE_DAYS, RENEWED_DAYS = 3650, 365, 30
PEM = serialization.Encoding.PEM
HASH = hashes.SHA256()


def renew(key_path: str, authority_path: str, node_path: str, names: list[str]) -> None:
    """See that there is an authority, and a certificate of it for these names that is good for a
    while. OSError, ValueError for files that are something else."""
    now = datetime.datetime.now(datetime.UTC)
    if not (os.path.exists(key_path) and os.path.exists(authority_path)):
        _make_authority(key_path, authority_path, now)
    with open(authority_path, "rb") as file:
        authority = x509.load_pem_x509_certificate(file.read())
    if os.path.exists(node_path) and _is_good(node_path, authority, names, now):
        return
    with open(key_path, "rb") as file:
        key = serialization.load_pem_private_key(file.read(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    own = ec.generate_private_key(ec.SECP256R1())
    builder = _builder("kwire", authority.subject, own.public_key(), now, NODE_DAYS)
    builder = builder.add_extension(
        x509.SubjectAlternativeName(list(map(_alternative, dict.fromkeys(names)))), critical=False
    ).add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    certificate = builder.sign(key, HASH).public_bytes(PEM)
    write_secret(node_path, _key_pem(own) + certificate)


def _make_authority(key_path: str, path: str, now: datetime.datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kwire development authority")])
    builder = _builder("kwire development authority", name, key.public_key(), now, AUTHORITY_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    write_secret(key_path, _key_pem(key))
    write_secret(path, builder.sign(key, HASH).public_bytes(PEM))


def _is_good(
    path: str, authority: x509.Certificate, names: list[str], now: datetime.datetime
) -> bool:
    with open(path, "rb") as file:
        certificate = x509.load_pem_x509_certificate(file.read())
    left = certificate.not_valid_after_utc - now
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return (
        certificate.issuer == authority.subject
        and left > datetime.timedelta(days=RENEWED_DAYS)
        and all(_alternative(name) in found for name in names)
    )


def _builder(
    name: str,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime.datetime,
    days: int,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
