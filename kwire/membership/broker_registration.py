"""What a broker tells the controller about itself when it registers."""

from __future__ import annotations

from collections.abc import Sequence

from kwire.config.listeners import PROTOCOLS, Listener
from kwire.kraft.features import SUPPORTED_FEATURES
from kwire.log.directories.directory import LogDirectory
from kwire.protocol import messages as m
from kwire.protocol import uuids

PROTOCOL_NUMBERS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
assert tuple(PROTOCOL_NUMBERS) == PROTOCOLS


def registration_request(
    *,
    broker_id: int,
    cluster_id: str,
    incarnation_id: bytes,
    listeners: Sequence[Listener],
    rack: str | None,
    directories: Sequence[LogDirectory],
) -> m.BrokerRegistrationRequest:
    """BrokerRegistration of this incarnation, with its listeners, features and directories."""
    request = m.BrokerRegistrationRequest
    previous = [directory.previous_broker_epoch for directory in directories]
    clean = all(directory.was_clean for directory in directories)
    return request(
        broker_id=broker_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation_id,
        listeners=[
            request.Listener(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=PROTOCOL_NUMBERS[listener.protocol],
            )
            for listener in listeners
        ],
        features=[
            request.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
        ],
        rack=rack,
        # The offline ones too: heartbeats tell which, and the controller takes away what is there.
        log_dirs=[d.directory_id for d in directories if d.directory_id != uuids.ZERO],
        previous_broker_epoch=max(previous) if clean else -1,
    )
