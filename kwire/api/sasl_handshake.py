"""SaslHandshake, versions 0-1: there is nothing to agree on where a listener has no SASL.

Answered with ILLEGAL_SASL_STATE, as a broker does on any connection that needs no authentication
(any more): a client that was told to authenticate learns that it speaks to the wrong listener.
Source: KIP-43, KIP-152; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.requirements import Authorization
from kwire.server.context import RequestContext

VERSIONS = (0, 1)
AUTHORIZATION: Authorization = ()


def handle(
    context: RequestContext, request: m.SaslHandshakeRequest
) -> Answer[m.SaslHandshakeResponse]:
    """See the module."""
    return m.SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def error_response(context: RequestContext, error: KafkaError) -> m.SaslHandshakeResponse:
    """An error of the whole request."""
    return m.SaslHandshakeResponse(error_code=error.code)
