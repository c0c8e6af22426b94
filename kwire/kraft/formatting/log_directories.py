"""Formatting log directories, with the meaning of Kafka's `kafka-storage format`.

Every directory gets `meta.properties`; on a controller the metadata directory also gets the
checkpoint `0-0` in `__cluster_metadata-0`: the quorum it starts with and the records that the
first leader appends (KIP-631, KIP-853, KIP-900). What is written, and every refusal's text, was
measured on Apache Kafka 4.4.

    quorum                  kraft.version   voters in the checkpoint
    controller.quorum.voters      0         none, they are configured
    --standalone                  1         this node
    --initial-controllers         1         those listed
    --no-initial-controllers      1         none: this node joins a quorum
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kwire.clock import Clock, Random
from kwire.kraft import features as facts
from kwire.kraft.formatting.errors import FeatureError, FormatError
from kwire.kraft.metadata_log import LOG_DIRECTORY
from kwire.kraft.metadata_version import (
    LATEST_PRODUCTION_LEVEL,
    METADATA_VERSIONS,
    from_name,
)
from kwire.kraft.raft.config import KRAFT_VERSION_MAX, KRAFT_VERSION_MIN
from kwire.kraft.raft.types import BOOTSTRAP_SNAPSHOT, Endpoint, ReplicaKey
from kwire.kraft.raft.voters import VoterNode, VoterSet
from kwire.kraft.snapshots.content import build_snapshot
from kwire.kraft.snapshots.files import SnapshotFiles
from kwire.log.directories.identity_files import META_PROPERTIES, encode_meta_properties
from kwire.log.files import Files, SystemFiles, write_atomically
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.metadata_records import VersionedRecord

CLUSTER_ID_BYTES_MAX = 255
RESERVED_DIRECTORY_IDS = 100
_FLAGS = "--standalone, --initial-controllers, or --no-initial-controllers"


@dataclass(frozen=True)
class FormatOptions:
    """What to format.

    `metadata_directory` is one of `directories` (metadata.log.dir or the first of log.dirs).
    `endpoint` is this controller's advertised listener, for `standalone`. `features` are
    NAME=LEVEL, `scram` MECHANISM=[name=...,...] as on Kafka's command line.
    """

    cluster_id: str
    node_id: int
    directories: list[str]
    metadata_directory: str
    is_controller: bool = True
    has_static_voters: bool = False
    endpoint: Endpoint | None = None
    listener_name: str = "CONTROLLER"
    standalone: bool = False
    initial_controllers: str | None = None
    no_initial_controllers: bool = False
    ignore_formatted: bool = False
    release_version: str | None = None
    features: list[str] = field(default_factory=list)
    scram: list[str] = field(default_factory=list)


def format_directories(
    options: FormatOptions, *, clock: Clock, random: Random, files: Files | None = None
) -> list[str]:
    """Format; returns the lines to show. Raises FormatError, and OSError from the disk.

    Everything is decided before anything is written; the metadata directory comes first.
    """
    files = files or SystemFiles()
    if not options.cluster_id or not options.cluster_id.isprintable():
        raise FormatError(f"{options.cluster_id!r} is no cluster id")
    voters = _voters(options, random)
    levels = effective_features(options)
    records = _bootstrap_records(options, levels, random)
    formatted = [
        directory
        for directory in options.directories
        if files.exists(f"{directory}/{META_PROPERTIES}")
    ]
    if formatted and not options.ignore_formatted:
        raise FormatError(
            f"Log directory {formatted[0]} is already formatted. Use --ignore-formatted to ignore "
            f"this directory and format the others."
        )
    missing = [directory for directory in options.directories if directory not in formatted]
    if not missing:
        return ["All of the log directories are already formatted."]
    lines = []
    version = METADATA_VERSIONS[levels[facts.METADATA_VERSION]].name
    missing.sort(key=lambda directory: directory != options.metadata_directory)
    for directory in missing:
        directory_id = random_directory_id(random)
        kind = "data directory"
        is_metadata = directory == options.metadata_directory
        if is_metadata:
            kind = _kind(options, voters)
            own = voters.get(options.node_id) if voters is not None else None
            if own is not None and own.key.directory_id is not None:
                directory_id = own.key.directory_id
        files.make_directory(directory)
        if is_metadata and options.is_controller:
            _write_checkpoint(files, directory, records, levels, voters, clock)
        content = encode_meta_properties(
            options.cluster_id, options.node_id, directory_id, clock.wall_ms()
        )
        # Last: what has meta.properties is formatted.
        write_atomically(files, f"{directory}/{META_PROPERTIES}", content)
        lines.append(f"Formatting {kind} {directory} with metadata.version {version}.")
    return lines


def random_directory_id(random: Random) -> bytes:
    """128 random bits, none of Kafka's reserved directory ids (0 to 99)."""
    while True:
        directory_id = random.random_bytes(16)
        if int.from_bytes(directory_id, "big") >= RESERVED_DIRECTORY_IDS:
            return directory_id


def _kind(options: FormatOptions, voters: VoterSet | None) -> str:
    if voters is None or not (options.standalone or options.initial_controllers):
        return "metadata directory"
    is_voter = voters.get(options.node_id) is not None
    return "dynamic metadata voter directory" if is_voter else "dynamic metadata directory"


def _write_checkpoint(
    files: Files,
    directory: str,
    records: list[VersionedRecord],
    levels: dict[str, int],
    voters: VoterSet | None,
    clock: Clock,
) -> None:
    path = f"{directory}/{LOG_DIRECTORY}"
    files.make_directory(path)
    batches = build_snapshot(
        records,
        epoch=0,
        clock=clock,
        last_timestamp_ms=clock.wall_ms(),
        kraft_version=levels[facts.KRAFT_VERSION],
        voters=voters,
    )
    SnapshotFiles(files, path).write(BOOTSTRAP_SNAPSHOT, batches)


# ---- the quorum


def _is_dynamic(options: FormatOptions) -> bool:
    return (
        options.standalone
        or options.initial_controllers is not None
        or options.no_initial_controllers
    )


def _voters(options: FormatOptions, random: Random) -> VoterSet | None:
    """The voters for the checkpoint; None with static voters or when this node joins."""
    if options.standalone and not options.is_controller:
        raise FormatError("You can only use --standalone on a controller.")
    if options.initial_controllers is not None and not options.is_controller:
        raise FormatError("You can only use --initial-controllers on a controller.")
    if options.has_static_voters and (options.standalone or options.initial_controllers):
        raise FormatError(
            "You cannot specify controller.quorum.voters and format the node with "
            "--initial-controllers or --standalone. If you want to use dynamic quorum, please "
            "remove controller.quorum.voters and specify controller.quorum.bootstrap.servers "
            "instead."
        )
    if options.is_controller and not options.has_static_voters and not _is_dynamic(options):
        raise FormatError(
            "Because controller.quorum.voters is not set on this controller, you must specify one "
            f"of the following: {_FLAGS}."
        )
    if options.standalone:
        if options.endpoint is None:
            raise FormatError("No listener of this controller is known.")
        key = ReplicaKey(options.node_id, uuids.random_uuid(random))
        return VoterSet([_voter(key, options.endpoint)])
    if options.initial_controllers is not None:
        return parse_initial_controllers(options.initial_controllers, options.listener_name)
    return None


def _voter(key: ReplicaKey, endpoint: Endpoint) -> VoterNode:
    return VoterNode(key, (endpoint,), KRAFT_VERSION_MIN, KRAFT_VERSION_MAX)


def parse_initial_controllers(text: str, listener_name: str) -> VoterSet:
    """`ID@HOST:PORT:DIRECTORY-ID,...`, an IPv6 host in brackets. Raises FormatError."""
    voters: dict[int, VoterNode] = {}
    for entry in text.split(","):
        node = _initial_controller(entry.strip(), listener_name)
        if node.key.id in voters:
            raise FormatError(f"Node {node.key.id} is twice among the initial controllers.")
        voters[node.key.id] = node
    return VoterSet(voters.values())


def _initial_controller(entry: str, listener_name: str) -> VoterNode:
    node_id, at, rest = entry.partition("@")
    if not at:
        raise FormatError(f"No @ found in dynamic voter string '{entry}'.")
    if not node_id.isdecimal() or len(node_id) > 10:
        raise FormatError(f"Failed to parse node id in dynamic voter string '{entry}'.")
    if rest.startswith("["):
        host, bracket, rest = rest[1:].partition("]")
        if not bracket or not rest.startswith(":"):
            raise FormatError(f"Hostname began with left bracket, but no right bracket: '{entry}'.")
        rest = rest[1:]
        host = _java_ipv6(host)
    else:
        host, colon, rest = rest.partition(":")
        if not colon:
            raise FormatError("No colon following hostname could be found.")
    port, colon, directory = rest.partition(":")
    if not colon:
        raise FormatError("No colon following port could be found.")
    if not port.isdecimal() or not 0 <= int(port[:6]) <= 65535:
        raise FormatError(f"Failed to parse port in dynamic voter string '{entry}'.")
    try:
        directory_id = uuids.from_text(directory)
    except ValueError:
        raise FormatError(f"Failed to parse directory ID in dynamic voter '{entry}'.") from None
    key = ReplicaKey.of(int(node_id), directory_id)
    if key.directory_id is None:
        raise FormatError(f"The directory ID of dynamic voter '{entry}' is the zero UUID.")
    return _voter(key, Endpoint(listener_name, host, int(port)))


def _java_ipv6(host: str) -> str:
    """An IPv6 address as Java prints it, which is what Kafka writes: `0:0:0:0:0:0:0:1`."""
    import ipaddress

    try:
        groups = ipaddress.IPv6Address(host).exploded.split(":")
    except ValueError:
        return host
    return ":".join(f"{int(group, 16):x}" for group in groups)


# ---- features


def effective_features(options: FormatOptions) -> dict[str, int]:
    """Every feature with its level for this cluster, metadata.version first."""
    asked = _parse_features(options.features)
    level = _metadata_level(options, asked)
    levels = {facts.METADATA_VERSION: level}
    for name in sorted(facts.FEATURE_LEVELS):
        levels[name] = asked.get(name, facts.default_level(name, level))
    for name, wanted in asked.items():
        if name != facts.METADATA_VERSION:
            _check_level(name, wanted, levels)
    dynamic = _is_dynamic(options) and not options.has_static_voters
    kraft_version = asked.get(facts.KRAFT_VERSION)
    if dynamic and kraft_version == 0:
        raise FormatError(
            "Cannot set kraft.version to 0 if controller.quorum.voters is empty and one of the "
            f"flags {_FLAGS} is used. For dynamic controllers support, try removing the --feature "
            "flag for kraft.version."
        )
    if not dynamic and kraft_version:
        raise FormatError(
            f"Cannot set kraft.version to {kraft_version} unless controller.quorum.voters is empty "
            f"and one of the flags {_FLAGS} is used. For dynamic controllers support, try using "
            f"one of {_FLAGS} and removing controller.quorum.voters."
        )
    levels[facts.KRAFT_VERSION] = KRAFT_VERSION_MAX if dynamic else 0
    return levels


def _parse_features(texts: list[str]) -> dict[str, int]:
    asked: dict[str, int] = {}
    for text in texts:
        name, equals, level = text.partition("=")
        if not equals:
            raise FeatureError(f"Can't parse feature=level string {text}: equals sign not found.")
        name = name.strip()
        try:
            asked[name] = int(level.strip())
        except ValueError:
            raise FeatureError(
                f"Can't parse feature=level string {text}: unable to parse {level} as a short."
            ) from None
        if name not in facts.SUPPORTED_FEATURES:
            supported = ", ".join(sorted(facts.FEATURE_LEVELS))
            raise FeatureError(f"Unsupported feature: {name}. Supported features are: {supported}")
    return asked


def _metadata_level(options: FormatOptions, asked: dict[str, int]) -> int:
    level = asked.get(facts.METADATA_VERSION)
    if options.release_version is not None:
        if level is not None:
            raise FeatureError(
                "Use --release-version instead of --feature metadata.version=X to avoid ambiguity."
            )
        version = from_name(options.release_version)
        if version is None:
            names = ", ".join(
                version.name
                for version in METADATA_VERSIONS.values()
                if version.level <= LATEST_PRODUCTION_LEVEL
            )
            raise FeatureError(
                f"Unknown metadata.version '{options.release_version}'. Supported "
                f"metadata.version are: {names}"
            )
        level = version.level
    if level is None:
        return LATEST_PRODUCTION_LEVEL
    if level not in METADATA_VERSIONS:
        raise FeatureError(f"No feature:metadata.version with feature level {level}")
    if level > LATEST_PRODUCTION_LEVEL:
        raise FeatureError(f"metadata.version {METADATA_VERSIONS[level].name} is not yet stable.")
    return level


def _check_level(name: str, level: int, levels: dict[str, int]) -> None:
    known = facts.FEATURE_LEVELS[name].get(level)
    if known is None:
        raise FeatureError(f"No feature:{name} with feature level {level}")
    for other, least in known.dependencies.items():
        if levels.get(other, 0) < least:
            raise FeatureError(
                f"{name} could not be set to {level} because it depends on {other} level {least}"
            )


def _bootstrap_records(
    options: FormatOptions, levels: dict[str, int], random: Random
) -> list[VersionedRecord]:
    """What the first leader will append: feature levels, then SCRAM credentials."""
    records: list[VersionedRecord] = [
        (m.FeatureLevelRecord(name=name, feature_level=level), 0)
        for name, level in levels.items()
        if level > 0 and name != facts.KRAFT_VERSION
    ]
    if options.scram:
        from kwire.kraft.formatting.scram import scram_records

        if not METADATA_VERSIONS[levels[facts.METADATA_VERSION]].scram:
            raise FormatError("SCRAM is only supported in metadata.version 3.5-IV2 or later.")
        records.extend((record, 0) for record in scram_records(options.scram, random))
    return records
