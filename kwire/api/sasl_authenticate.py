"""SaslAuthenticate, versions 0-2: no connection waits for it where a listener has no SASL.

Answered with ILLEGAL_SASL_STATE and Apache Kafka's message; see `sasl_handshake`.
Source: KIP-152; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.requirements import Authorization
from kwire.server.context import RequestContext

VERSIONS = (0, 2)
AUTHORIZATION: Authorization = ()
MESSAGE = "SaslAuthenticate request received after successful authentication"


def handle(
    context: RequestContext, request: m.SaslAuthenticateRequest
) -> Answer[m.SaslAuthenticateResponse]:
    """See the module."""
    return m.SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=MESSAGE
    )


def error_response(context: RequestContext, error: KafkaError) -> m.SaslAuthenticateResponse:
    """An error of the whole request."""
    return m.SaslAuthenticateResponse(error_code=error.code, error_message=error.message)
