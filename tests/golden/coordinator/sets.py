"""The scripts by the broker that they run against: set name -> (settings, scripts).

`transaction.version` among the settings is the finalized level of that feature.
"""

from __future__ import annotations

from typing import Any

from tests.golden.coordinator import (
    consumer_scripts,
    migration_scripts,
    share_scripts,
    transaction_scripts,
)

FEATURE = "transaction.version"
_older = {name: transaction_scripts.SCRIPTS[name] for name in transaction_scripts.OLDER_VERSIONS}
# Clients do not use the requests of transaction version 2 with version 0; Kafka then fails inside
# and leaves the transactional id blocked.
_OF_VERSION_2 = (
    "add-v5", "offsets-v5", "offsets-without-the-group-v5", "end-v5", "end-5-of-nothing",
    "end-5-in-a-row", "produce-v12", "transaction-of-version-2-times-out",
)  # fmt: skip
_oldest = {name: steps for name, steps in _older.items() if name not in _OF_VERSION_2}

SETS: dict[str, tuple[dict[str, Any], dict[str, list[Any]]]] = {
    "transactions": (transaction_scripts.SETTINGS, transaction_scripts.SCRIPTS),
    "transactions-expiry": (
        transaction_scripts.EXPIRY_SETTINGS,
        transaction_scripts.EXPIRY_SCRIPTS,
    ),
    "transactions-version-1": ({**transaction_scripts.SETTINGS, FEATURE: 1}, _older),
    "transactions-version-0": ({**transaction_scripts.SETTINGS, FEATURE: 0}, _oldest),
    "consumer-groups": (
        consumer_scripts.SETTINGS,
        {**consumer_scripts.SCRIPTS, **migration_scripts.SCRIPTS},
    ),
    "share-groups": (share_scripts.SETTINGS, share_scripts.SCRIPTS),
    **{
        f"migration-{policy}": (migration_scripts.settings_of(policy), scripts)
        for policy, scripts in migration_scripts.BY_POLICY.items()
    },
}

_INTERNAL = (
    "Kafka 4.4 fails inside (UNKNOWN_SERVER_ERROR) when a producer names its last epoch but one of "
    "an exhausted producer id; here it is refused, or answered again, as with any other epoch"
)
#: Script of "transactions" -> answers (by number) that are to differ, and why. What such a script
#: leaves in the logs is not compared.
DIFFERENCES: dict[str, tuple[tuple[int, ...], str]] = {
    "init-when-the-epoch-is-exhausted": ((3, 4), _INTERNAL),
    "owner-continues-with-an-exhausted-epoch": ((3,), _INTERNAL),
    "share-offsets-of-a-negative-partition": (
        (0,),
        "Kafka 4.4 fails inside (UNKNOWN_SERVER_ERROR); here there is no such partition",
    ),
}
