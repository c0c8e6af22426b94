"""`ssl.SSLContext`s out of Kafka's settings, for the two sides of a connection."""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from kwire.security.tls import ciphers, pem
from kwire.security.tls.entries import KeyEntry
from kwire.security.tls.errors import TlsError
from kwire.security.tls.memory_files import load_key
from kwire.security.tls.settings import TlsSettings
from kwire.security.tls.stores import failed_to_load, load_key_store, load_trust_store

CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
IDENTIFICATIONS = ("", "https")


class Material:
    """What stores hold: loaded once, for both sides of a node."""

    __slots__ = ("keys", "trusted")

    def __init__(self, keys: list[KeyEntry], trusted: list[bytes] | None) -> None:
        self.keys = keys
        self.trusted = trusted

    @classmethod
    def load(cls, settings: TlsSettings) -> Material:
        """Read the stores; TlsError."""
        return cls(load_key_store(settings.key_store), load_trust_store(settings.trust_store))


def server_context(settings: TlsSettings, material: Material) -> ssl.SSLContext:
    """For those who are connected to; TlsError, also without a key: nobody could connect."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, settings, material)
    if not material.keys:
        raise TlsError("a listener with TLS needs ssl.keystore.location or ssl.keystore.key")
    context.verify_mode = CLIENT_AUTH[settings.client_auth]
    if context.verify_mode != ssl.CERT_NONE:
        _trust(context, material.trusted)
    return context


def client_context(settings: TlsSettings, material: Material) -> ssl.SSLContext:
    """For those who connect; TlsError."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT, settings, material)
    if settings.endpoint_identification not in IDENTIFICATIONS:
        raise TlsError(
            f"ssl.endpoint.identification.algorithm={settings.endpoint_identification} is refused: "
            "accepted are https and nothing"
        )
    context.check_hostname = bool(settings.endpoint_identification)
    context.verify_mode = ssl.CERT_REQUIRED
    _trust(context, material.trusted)
    return context


def _context(protocol: ssl._SSLMethod, settings: TlsSettings, material: Material) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    # Java trusts what a trust store holds, whoever has signed it.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    ciphers.apply(context, settings.protocol, settings.enabled_protocols, settings.cipher_suites)
    for entry in reversed(material.keys):  # OpenSSL keeps the last of each kind of key
        try:
            _load(context, entry)
        except TlsError as error:
            store = settings.key_store
            error.kafka = failed_to_load(store.type, store.location, "keystore")
            raise
    return context


def _load(context: ssl.SSLContext, entry: KeyEntry) -> None:
    chain = b"".join(pem.encoded(pem.CERTIFICATE, der) for der in entry.chain)
    try:
        load_key(context, chain, entry.key, entry.key_password)
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None)
        if reason == "KEY_VALUES_MISMATCH":
            why = "it is not the key of the certificate"
        elif isinstance(error, ssl.SSLError) and (reason or "").startswith("EE_KEY"):
            why = "it is too small"
        else:
            why = "it cannot be read, or ssl.key.password is not its password"
        raise TlsError(f"Private key could not be loaded: {why}") from None


def _trust(context: ssl.SSLContext, trusted: Sequence[bytes] | None) -> None:
    if trusted is None:
        context.set_default_verify_paths()
        return
    for certificate in trusted:
        try:
            context.load_verify_locations(cadata=certificate)
        except ssl.SSLError as error:
            if "already in hash table" in str(error).lower() or error.reason == (
                "CERT_ALREADY_IN_HASH_TABLE"
            ):
                continue
            raise TlsError("a trusted certificate cannot be read") from None
