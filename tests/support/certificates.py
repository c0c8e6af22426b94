"""Certificates for tests: an authority, and what it signs, as PEM, PKCS12 and settings."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("cryptography")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)
LOCAL = ("localhost", "127.0.0.1")
PEM = serialization.Encoding.PEM


class Certificate(NamedTuple):
    """One certificate with its key, and who signed it."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    chain: tuple[x509.Certificate, ...]

    @property
    def pem(self) -> str:
        """The certificates, its own one first."""
        certificates = (self.certificate, *self.chain)
        return "".join(one.public_bytes(PEM).decode() for one in certificates)

    @property
    def name(self) -> str:
        """Its common name."""
        (found,) = self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return str(found.value)

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    def key_pem(self, password: str | None = None) -> str:
        """The key, PKCS8, encrypted where there is a password."""
        encryption = (
            serialization.BestAvailableEncryption(password.encode())
            if password
            else serialization.NoEncryption()
        )
        return self.key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, encryption).decode()

    def pkcs12(self, password: str) -> bytes:
        """A key store."""
        from cryptography.hazmat.primitives.serialization import pkcs12

        return pkcs12.serialize_key_and_certificates(
            b"node",
            self.key,
            self.certificate,
            self.chain,
            serialization.BestAvailableEncryption(password.encode()),
        )

    def write(self, directory: Path, name: str) -> Path:
        """Key and certificates in one PEM file."""
        path = directory / f"{name}.pem"
        path.write_text(self.key_pem() + self.pem)
        return path


class Authority:
    """An authority of one test."""

    def __init__(self, name: str = "test authority") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = (
            _builder(subject, subject, self.key.public_key(), (-1, 30))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self.key, hashes.SHA256())
        )

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(PEM).decode()

    def pkcs12(self, password: str) -> bytes:
        """A trust store as Java makes it: its certificate has the attribute of what is trusted."""
        from cryptography.hazmat.primitives.serialization import pkcs12

        return pkcs12.serialize_java_truststore(
            [pkcs12.PKCS12Certificate(self.certificate, b"authority")],
            serialization.BestAvailableEncryption(password.encode()),
        )

    def write(self, directory: Path) -> Path:
        """The authority's certificate as a trust store."""
        path = directory / "authority.pem"
        path.write_text(self.pem)
        return path

    def sign(
        self,
        name: str | x509.Name = "node",
        hosts: tuple[str, ...] = LOCAL,
        days: tuple[int, int] = (-1, 30),
    ) -> Certificate:
        """A certificate for hosts and addresses, valid from and until so many days from now."""
        if isinstance(name, str):
            name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(name, self.certificate.subject, key.public_key(), days)
        builder = builder.add_extension(
            x509.BasicConstraints(ca=False, path_length=None), critical=True
        )
        if hosts:
            alternatives = x509.SubjectAlternativeName([_alternative(host) for host in hosts])
            builder = builder.add_extension(alternatives, critical=False)
        return Certificate(builder.sign(self.key, hashes.SHA256()), key, ())


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    days: tuple[int, int],
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + days[0] * DAY)
        .not_valid_after(now + days[1] * DAY)
    )


def secure_options(directory: Path, node: Certificate, authority: Authority) -> dict[str, str]:
    """Options of a broker with a PLAINTEXT and an SSL listener, ports to be filled in."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(node.write(directory, "node")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.write(directory)),
    }
