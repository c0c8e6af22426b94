"""AlterUserScramCredentials (KIP-554, KIP-900)."""

from __future__ import annotations

import hashlib
import hmac
from typing import TypeAlias

from kwire.kept_errors import kept
from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.results import Records, Result, put_error
from kwire.kraft.controller.state import ControllerState
from kwire.kraft.images.security import ScramCredential, scram_record
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError

SHA_256, SHA_512 = 1, 2
_HASHES = {SHA_256: "sha256", SHA_512: "sha512"}
MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384

Alteration: TypeAlias = (
    "m.AlterUserScramCredentialsRequest.ScramCredentialDeletion"
    "| m.AlterUserScramCredentialsRequest.ScramCredentialUpsertion"
)


def alter_credentials(
    state: ControllerState,
    request: m.AlterUserScramCredentialsRequest,
    context: ControllerContext,
    now_ms: int,
) -> Result[m.AlterUserScramCredentialsResponse]:
    """Answer an AlterUserScramCredentialsRequest (version 0).

    A user may be named once; results are per user, the successful ones first.
    """
    deletions: dict[str, m.AlterUserScramCredentialsRequest.ScramCredentialDeletion] = {}
    upsertions: dict[str, m.AlterUserScramCredentialsRequest.ScramCredentialUpsertion] = {}
    errors: dict[str, KafkaError] = {}

    def is_accepted(item: Alteration) -> bool:
        if item.name in errors:
            return False
        twice = deletions.pop(item.name, None) or upsertions.pop(item.name, None)
        try:
            if twice is not None:
                raise KafkaError(
                    ErrorCode.DUPLICATE_RESOURCE,
                    "A user credential cannot be altered twice in the same request",
                )
            _check(state, item)
        except KafkaError as error:
            errors[item.name] = kept(error)
            return False
        return True

    for deletion in request.deletions:
        if is_accepted(deletion):
            deletions[deletion.name] = deletion
    for upsertion in request.upsertions:
        if is_accepted(upsertion):
            upsertions[upsertion.name] = upsertion
    for name in [name for name, item in upsertions.items() if not item.salted_password]:
        # Measured: no key can be derived from it, and there is no error for that.
        errors[name] = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        del upsertions[name]
    records: Records = []
    for name, deletion in deletions.items():
        record = m.RemoveUserScramCredentialRecord(name=name, mechanism=deletion.mechanism)
        records.append((record, 0))
    for name, upsertion in upsertions.items():
        records.append((scram_record(name, upsertion.mechanism, credential(upsertion)), 0))
    answer = m.AlterUserScramCredentialsResponse
    results = [
        answer.AlterUserScramCredentialsResult(user=name, error_message=None)
        for name in (*deletions, *upsertions)
    ]
    for name, failure in errors.items():
        results.append(put_error(answer.AlterUserScramCredentialsResult(user=name), failure))
    return records, answer(results=results)


def credential(
    item: m.AlterUserScramCredentialsRequest.ScramCredentialUpsertion,
) -> ScramCredential:
    """What is stored for an upsertion: the keys derived from its salted password."""
    algorithm = _HASHES[item.mechanism]
    salted = bytes(item.salted_password)
    client_key = hmac.new(salted, b"Client Key", algorithm).digest()
    return ScramCredential(
        salt=bytes(item.salt),
        stored_key=hashlib.new(algorithm, client_key).digest(),
        server_key=hmac.new(salted, b"Server Key", algorithm).digest(),
        iterations=item.iterations,
    )


def _check(state: ControllerState, item: Alteration) -> None:
    if not state.gates.scram:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM"
        )
    if not item.name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if item.mechanism not in _HASHES:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(item, m.AlterUserScramCredentialsRequest.ScramCredentialDeletion):
        if (item.mechanism, item.name) not in state.image.scram:
            raise KafkaError(
                ErrorCode.RESOURCE_NOT_FOUND,
                "Attempt to delete a user credential that does not exist",
            )
    elif item.iterations < MIN_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    elif item.iterations > MAX_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
