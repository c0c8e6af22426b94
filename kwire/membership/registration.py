"""What a broker tells the controller about itself."""

from __future__ import annotations

from typing import Any

from kwire.config.listeners import PROTOCOLS
from kwire.kraft.features import SUPPORTED_FEATURES
from kwire.protocol import messages as m
from kwire.protocol import uuids

PROTOCOL_NUMBERS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
assert tuple(PROTOCOL_NUMBERS) == PROTOCOLS


def registration_request(node: Any) -> Any:
    """BrokerRegistration of this incarnation, with its listeners, features and directories."""
    request = m.BrokerRegistrationRequest
    directories = node.log_manager.directories
    previous = [directory.previous_broker_epoch for directory in directories]
    clean = all(directory.was_clean for directory in directories)
    return request(
        broker_id=node.broker_id,
        cluster_id=node.cluster_id,
        incarnation_id=node.incarnation_id,
        listeners=[
            request.Listener(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=PROTOCOL_NUMBERS[listener.protocol],
            )
            for listener in node.advertised
        ],
        features=[
            request.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
        ],
        rack=node.config["broker.rack"],
        # The offline ones too: heartbeats tell which, and the controller takes away what is there.
        log_dirs=[d.directory_id for d in directories if d.directory_id != uuids.ZERO],
        previous_broker_epoch=max(previous) if clean else -1,
    )
