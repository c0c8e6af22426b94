#!/usr/bin/env python3
"""Let Apache Kafka read a broker's data directory, and print what it found as JSON.

    read_by_kafka.py [options] DATADIR

1. Dumps every segment, index, transaction index, producer snapshot, metadata log and metadata snapshot with
   Kafka's own dump tool, deep iteration on. Any error, bad checksum, index mismatch or gap is a failure.
2. Copies the directory, starts Apache Kafka on the copy and asks it everything a client can see.

The directory must have been stopped cleanly, unless --killed is given: then step 1 is done on the copy, after
Kafka has recovered it and has been stopped cleanly.
Exit status: 0 good, 1 Kafka found fault (listed on stderr and under "faults"), 2 the facts differ from --expect.
"""

import argparse
import collections
import gzip
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
DUMP = "org.apache.kafka.tools.DumpLogSegments"
METADATA = "__cluster_metadata"
DECODERS = {
    METADATA: "--cluster-metadata-decoder",
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__share_group_state": "--share-group-state-decoder",
}
# Under these a directory of any age keeps its records, offsets, producers and transactions while it is looked at.
KEEP = [
    "log.retention.ms=-1",
    "log.cleaner.enable=false",
    "log.initial.task.delay.ms=2000000000",
    "offsets.retention.minutes=2147483647",
    "offsets.retention.check.interval.ms=2000000000",
    "producer.id.expiration.ms=2147483647",
    "transactional.id.expiration.ms=2147483647",
    "transaction.max.timeout.ms=2147483647",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms=2000000000",
    "transaction.remove.expired.transaction.cleanup.interval.ms=2000000000",
    "metadata.log.max.record.bytes.between.snapshots=2000000000",
    "metadata.log.max.snapshot.interval.ms=0",
    "log.index.size.max.bytes=1048576",
    "delegation.token.secret.key=any",
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users=User:ANONYMOUS",
    "allow.everyone.if.no.acl.found=true",
]
# A slow machine, and a coordinator that starts to load under one leader epoch and again under the next.
HARMLESS = (
    "EventPerformanceMonitor",
    "because the partition is not online or is no longer the leader",
)
# Of what Kafka logs as ERROR, the part that is about the directory; the rest (time-outs and the like) is only reported.
ABOUT_DATA = re.compile(
    r"\((?:[\w.]*\.)?(?:storage|fault|image|coordinator|raft|log)\.[\w.$]+\)$|Log(Manager|Loader|Segment)|Checkpoint|"
    r"Corrupt|CRC",
    re.ASCII,
)
BAD = re.compile(
    r"isvalid: false|invalid bytes|Mismatches in|mismatch|out of order|[Cc]orrupt|Exception|"
    r"failed sanity|not a valid|Unknown (record|message)|Could not (dump|deserialize)|Error",
    re.ASCII,
)
BATCH = re.compile(
    r"baseOffset: (?P<base>\d+) lastOffset: (?P<last>\d+) count: (?P<count>\d+) .*?producerId: (?P<pid>-?\d+) "
    r"producerEpoch: (?P<pepoch>-?\d+) partitionLeaderEpoch: (?P<epoch>-?\d+) isTransactional: (?P<tx>\w+) "
    r"isControl: (?P<control>\w+) deleteHorizonMs: (?P<horizon>\S+) position: (?P<pos>\d+) (?P<tstype>\w+): (?P<ts>-?\d+) "
    r"size: (?P<size>\d+) magic: (?P<magic>\d+) compresscodec: (?P<codec>\w+) crc: (?P<crc>\d+) isvalid: (?P<valid>\w+)"
)
PAYLOAD = re.compile(r"^\| offset: (\d+) .*? payload: (\{.*\})$")


def topic_of(folder):
    return folder.rsplit("-", 1)[0]


def say(text):
    print(f"read_by_kafka: {text}", file=sys.stderr, flush=True)


def run_dump(libs, options, files):
    """Dump files in one JVM; returns {file: lines}, the messages that name no file, and the exit status."""
    cmd = [
        "java",
        "-Xmx512m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{libs}/*",
        DUMP,
        *options,
        "--max-message-size",
        str(64 << 20),
        "--files",
        ",".join(map(str, files)),
    ]
    done = subprocess.run(cmd, capture_output=True, text=True, errors="replace")
    out, current = {}, []
    for line in done.stdout.splitlines():
        if line.startswith("Dumping "):
            current = out.setdefault(line[len("Dumping ") :], [])
        else:
            current.append(line)
    return out, done.stderr.splitlines(), done.returncode


def log_facts(lines, size):
    facts = {"kind": "log", "size": size, "batches": 0, "records": 0, "end_position": 0}
    codecs, seen = collections.Counter(), collections.Counter()
    for line in lines:
        m = BATCH.match(line)
        if not m:
            continue
        if not facts["batches"]:
            facts["first_offset"] = int(m["base"])
        facts["batches"] += 1
        facts["records"] += int(m["count"])
        facts["last_offset"] = int(m["last"])
        facts["end_position"] = int(m["pos"]) + int(m["size"])
        facts["max_timestamp"] = max(facts.get("max_timestamp", -1), int(m["ts"]))
        codecs[m["codec"]] += 1
        seen["control"] += m["control"] == "true"
        seen["transactional"] += m["tx"] == "true"
        seen["with_delete_horizon"] += m["horizon"] != "OptionalLong.empty"
        seen["log_append_time"] += m["tstype"] == "LogAppendTime"
        facts.setdefault("leader_epochs", [])
        if int(m["epoch"]) not in facts["leader_epochs"]:
            facts["leader_epochs"].append(int(m["epoch"]))
    facts["codecs"] = dict(sorted(codecs.items()))
    facts.update({k: v for k, v in sorted(seen.items()) if v})
    return facts


def pairs(lines):
    """'a: 1 b: 2' lines as rows."""
    rows = []
    for line in lines:
        row = {}
        for key, value in re.findall(r"(\w+): (\S+)", line):
            value = re.sub(r"^OptionalLong\[(-?\d+)\]$", r"\1", value)
            row[key] = (
                int(value)
                if re.fullmatch(r"-?\d+", value)
                else None
                if value == "OptionalLong.empty"
                else value
            )
        if row:
            rows.append(row)
    return rows


def raw_index(path):
    """The entries of an index file up to its zeros."""
    raw, base = path.read_bytes(), int(path.stem)
    if path.suffix == ".index":
        rows = [
            {"offset": base + a, "position": b}
            for a, b in struct.iter_unpack(">ii", raw[: len(raw) // 8 * 8])
        ]
    else:
        rows = [
            {"timestamp": a, "offset": base + b}
            for a, b in struct.iter_unpack(">qi", raw[: len(raw) // 12 * 12])
        ]
    while rows and base in rows[-1].values() and 0 in rows[-1].values():
        rows.pop()
    return rows


def undecoded(lines):
    """Records of an internal topic or of the metadata log for which the tool shows no content."""
    control = False
    for line in lines:
        m = BATCH.match(line)
        if m:
            control = m["control"] == "true"
        elif (
            line.startswith("| ")
            and not control
            and " payload: {" not in line
            and " payload: <DELETE>" not in line
        ):
            yield line


def payloads(lines):
    out = []
    for line in lines:
        m = PAYLOAD.match(line)
        if m:
            try:
                out.append(json.loads(m[2]))
            except ValueError:
                out.append({"type": "UNREADABLE", "text": m[2]})
    return out


def inspect(libs, data):
    """Step 1. Returns (facts per file, metadata facts, faults)."""
    files = sorted(
        p
        for p in data.rglob("*")
        if p.is_file()
        and p.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")
    )
    faults, facts, compacted, image = [], {}, {"__consumer_offsets", "__transaction_state"}, {}
    groups = collections.defaultdict(list)
    # On a clean stop Kafka leaves the two indexes of the metadata log's newest segment at their full, preallocated length;
    # its own dump tool and sanity check trip over the zeros, so those two are only read, here.
    newest = max(
        (p.stem for p in files if p.suffix == ".log" and topic_of(p.parent.name) == METADATA),
        default=None,
    )
    untrimmed = {
        p
        for p in files
        if p.suffix in (".index", ".timeindex")
        and topic_of(p.parent.name) == METADATA
        and p.stem == newest
    }
    for path in files:
        topic = topic_of(path.parent.name)
        if path in untrimmed:
            facts[str(path.relative_to(data))] = {
                "kind": path.suffix[1:],
                "size": path.stat().st_size,
                "entries": raw_index(path),
            }
            continue
        record_like = path.suffix in (".log", ".checkpoint")
        groups[DECODERS.get(topic) if record_like else "", record_like].append(path)
    gaps = []

    def note(stderr):
        """Kafka prints gaps and mismatches to stderr: a title with the file's name, then indented lines."""
        title = within = None
        for line in stderr:
            step = re.match(r"\s+(-?\d+) is followed by (\d+)", line)
            if line.startswith("Non-consecutive offsets in"):
                title, within = None, pathlib.Path(line.split(" in ", 1)[1].strip())
            elif step and within:
                # a segment that does not start at 0 is reported as "-1 is followed by its base offset": no gap
                if not (int(step[1]) == -1 and int(step[2]) == int(within.stem)):
                    gaps.append((within, line.strip()))
            elif line.startswith(
                (
                    "Mismatches in",
                    "Found timestamp mismatch",
                    "Found out of order",
                    "Index timestamp",
                )
            ):
                title = line
                faults.append(line)
            elif line.startswith(" "):
                if title and len(faults) < 200:
                    faults.append(line.strip())
            elif BAD.search(line):
                faults.append(line)

    for (decoder, record_like), paths in groups.items():
        options = ["--deep-iteration"] + ([decoder] if decoder else []) if record_like else []
        while paths:
            dumped, stderr, code = run_dump(libs, options, paths)
            if not code:
                break
            # The tool ends at a file it cannot bear and reports its findings only at the end: say so, leave that file out, again.
            culprit = next((p for p in reversed(paths) if str(p) in dumped), paths[0])
            why = next(
                (line for line in stderr if "Exception" in line or "Error" in line),
                "no reason given",
            )
            faults.append(f"{culprit.relative_to(data)}: the dump tool failed on it: {why[:300]}")
            paths = [p for p in paths if p != culprit]
        if not paths:
            continue
        note(stderr)
        for path in paths:
            name = str(path.relative_to(data))
            lines = dumped.get(str(path))
            if lines is None:
                faults.append(f"{name}: the dump tool said nothing about it")
                continue
            for line in lines:
                head = line if not line.startswith("| ") else line[:120]
                if BAD.search(head):
                    faults.append(f"{name}: {line[:300]}")
            if record_like:
                one = log_facts(lines, path.stat().st_size)
                if one["end_position"] != one["size"]:
                    faults.append(
                        f"{name}: {one['size']} bytes, batches end at {one['end_position']}"
                    )
                if decoder:
                    faults += [f"{name}: not decoded: {line[:300]}" for line in undecoded(lines)]
                if decoder == DECODERS[METADATA]:
                    records = payloads(lines)
                    one["record_types"] = dict(
                        sorted(collections.Counter(r.get("type", "?") for r in records).items())
                    )
                    for r in records:
                        d = r.get("data", {})
                        if (
                            r.get("type") == "CONFIG_RECORD"
                            and d.get("resourceType") == 2
                            and d.get("name") == "cleanup.policy"
                            and "compact" in (d.get("value") or "")
                        ):
                            compacted.add(d["resourceName"])
                    if path.suffix == ".checkpoint":
                        one["kind"] = "metadata snapshot"
                        image = {"newest_snapshot": name, "records": records}
            else:
                one = {
                    "kind": path.suffix[1:],
                    "size": path.stat().st_size,
                    "entries": pairs(lines),
                }
                entry = {".index": 8, ".timeindex": 12, ".txnindex": 34}.get(path.suffix, 1)
                if one["size"] % entry:
                    faults.append(
                        f"{name}: {one['size']} bytes are no whole number of entries of {entry}"
                    )
            facts[name] = one
    left = [p for p in files if p.suffix in (".index", ".timeindex") and p not in untrimmed]
    while left:
        dumped, stderr, _ = run_dump(libs, ["--index-sanity-check"], left)
        for n, path in enumerate(left):
            if not any(
                "passed sanity check" in line or line.endswith("is empty.")
                for line in dumped.get(str(path), [])
            ):
                # the tool ends at the first bad file: note it and go on with those after it
                why = next((line for line in stderr if "Exception" in line), "no answer")
                faults.append(f"{path.relative_to(data)}: index sanity: {why[:300]}")
                left = left[n + 1 :]
                break
        else:
            left = []
    for path, step in gaps:
        if topic_of(path.parent.name) not in compacted:
            faults.append(f"{path.relative_to(data)}: {step}, and the topic is not compacted")
    for path in sorted(data.glob("*/leader-epoch-checkpoint")):
        rows = path.read_text().split("\n")[2:]
        facts[str(path.relative_to(data))] = {
            "kind": "leader epochs",
            "entries": [list(map(int, r.split())) for r in rows if r],
        }
    for path in sorted(data.glob("*-checkpoint")):
        rows = path.read_text().split("\n")[2:]
        facts[path.name] = {"kind": "checkpoint", "entries": sorted(r for r in rows if r)}
    return dict(sorted(facts.items())), image, faults


def free_ports():
    for _ in range(50):
        with socket.socket() as a:
            a.bind(("127.0.0.1", 0))
            port = a.getsockname()[1]
            with socket.socket() as b:
                try:
                    b.bind(("127.0.0.1", port + 1))
                    return port
                except OSError:
                    continue
    raise SystemExit("no two neighbouring free ports")


def properties(path):
    lines = (line.strip() for line in path.read_text().splitlines())
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def quorum(data, node, port):
    """The quorum setting that fits the directory: voters kept in the log, or given by configuration."""
    path = data / f"{METADATA}-0" / "quorum-state"
    static = False
    if path.exists():
        state = json.loads(path.read_text())
        static = state.get("data_version", 0) == 0
        voters = {v["voterId"] for v in state.get("currentVoters") or []}
        if static and voters - {node}:
            raise SystemExit(
                f"this node is one of the voters {sorted(voters)}; only a quorum of one can be started alone"
            )
    return (
        [
            "--prop",
            f"controller.quorum.voters={node}@127.0.0.1:{port + 1}",
            "--prop",
            "controller.quorum.bootstrap.servers=",
        ]
        if static
        else []
    )


def ask(args, source, work):
    """Step 2. Returns (facts, the copy, what Kafka logged at WARN and above)."""
    home = work / "kafka"
    shutil.rmtree(home, ignore_errors=True)
    copy = home / "node-1" / "data"
    copy.parent.mkdir(parents=True)
    subprocess.run(["cp", "-a", "--sparse=always", f"{source}/.", str(copy)], check=True)
    (copy / ".lock").unlink(missing_ok=True)
    port = args.port or free_ports()
    node = int(properties(copy / "meta.properties")["node.id"])
    cmd = [
        str(HERE / "run-kafka.sh"),
        "start",
        "--libs",
        str(args.libs),
        "--dir",
        str(home),
        "--port",
        str(port),
        "--id",
        str(node),
        "--wait",
        str(args.wait),
    ]
    for prop in KEEP + args.prop:
        cmd += ["--prop", prop]
    began = time.time()
    try:
        bootstrap = subprocess.run(
            cmd + quorum(copy, node, port),
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env=dict(os.environ, JIT_LEVEL="1"),
        ).stdout.strip()
    except subprocess.CalledProcessError:
        raise SystemExit("Kafka did not start on this directory")
    say(f"Kafka started on a copy in {time.time() - began:.1f} s")
    try:
        classes = work / "classes"
        if (
            not (classes / "Facts.class").exists()
            or (classes / "Facts.class").stat().st_mtime < (HERE / "Facts.java").stat().st_mtime
        ):
            subprocess.run(
                ["javac", "-cp", f"{args.libs}/*", "-d", str(classes), str(HERE / "Facts.java")],
                check=True,
            )
        out = subprocess.run(
            [
                "java",
                "-Xmx512m",
                "-XX:+UseSerialGC",
                "-cp",
                f"{classes}:{args.libs}/*",
                "Facts",
                bootstrap,
            ],
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
    finally:
        subprocess.run([str(HERE / "run-kafka.sh"), "stop", "--dir", str(home)], check=True)
    log = (home / "node-1" / "server.log").read_text(errors="replace").splitlines()
    return json.loads(out), copy, log


def normal(facts, now):
    """What two brokers must agree on: without what depends on the clock or on how often a broker was started."""
    facts = json.loads(json.dumps(facts))
    for part in (
        "made_by",
        "files",
        "files_after_recovery",
        "faults",
        "metadata",
        "kafka_log",
        "killed",
    ):
        facts.pop(part, None)
    for group in facts["groups"].values():
        group.pop("state", None)
    for topic in facts["topics"].values():
        for p in topic["partitions"].values():
            if isinstance(p["producers"], list):
                p["producers"] = [
                    x
                    for x in p["producers"]
                    if x["txn_start_offset"] != -1 or x["last_timestamp"] > now - 86_400_000
                ]
            for answer in p["list_offsets"]:
                if answer.get("offset") == p["log_end_offset"]:
                    answer.pop("leader_epoch", None)
    return facts


def align(a, b):
    """After a kill, group members that never came back are timed out while we look: __consumer_offsets grows. Its common
    beginning must agree all the same."""
    for number, p in a["topics"].get("__consumer_offsets", {}).get("partitions", {}).items():
        q = b["topics"].get("__consumer_offsets", {}).get("partitions", {}).get(number)
        if not q:
            continue
        n = min(len(p["records"]), len(q["records"]))
        for part in (p, q):
            for key in (
                "list_offsets",
                "read_committed_offsets",
                "high_watermark",
                "log_end_offset",
                "last_stable_offset",
            ):
                part.pop(key, None)
            part["records"] = part["records"][:n]


def differences(a, b, where=""):
    if type(a) is not type(b):
        yield f"{where}: expected {a!r:.200}, found {b!r:.200}"
    elif isinstance(a, dict):
        for key in sorted(a.keys() | b.keys()):
            if key not in a:
                yield f"{where}/{key}: not expected: {b[key]!r:.200}"
            elif key not in b:
                yield f"{where}/{key}: missing, expected {a[key]!r:.200}"
            else:
                yield from differences(a[key], b[key], f"{where}/{key}")
    elif isinstance(a, list):
        if len(a) != len(b):
            yield f"{where}: expected {len(a)} entries, found {len(b)}"
        for i, (x, y) in enumerate(zip(a, b)):
            yield from differences(x, y, f"{where}[{i}]")
    elif a != b:
        yield f"{where}: expected {a!r:.200}, found {b!r:.200}"


def load(path):
    raw = pathlib.Path(path).read_bytes()
    return json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)


def default_libs():
    cache = (
        pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
        / "peers"
        / "kafka"
    )
    done = subprocess.run(
        [str(HERE / "fetch-kafka.sh"), str(cache)], check=True, stdout=subprocess.PIPE, text=True
    )
    return pathlib.Path(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datadir", type=pathlib.Path, help="a data directory, or a .tar.gz of one")
    parser.add_argument(
        "--libs",
        type=pathlib.Path,
        help="jar folder (default: filled by fetch-kafka.sh under ~/.cache/peers)",
    )
    parser.add_argument(
        "--port", type=int, default=0, help="first of two ports (default: free ones)"
    )
    parser.add_argument(
        "--prop", action="append", default=[], help="more broker properties for the copy, key=value"
    )
    parser.add_argument(
        "--killed", action="store_true", help="the broker was killed: recover first, then inspect"
    )
    parser.add_argument("--no-inspect", action="store_true", help="leave out step 1")
    parser.add_argument("--no-start", action="store_true", help="leave out step 2")
    parser.add_argument(
        "--expect", type=pathlib.Path, help="facts to compare with (.json or .json.gz)"
    )
    parser.add_argument("--out", type=pathlib.Path, help="write the JSON here instead of stdout")
    parser.add_argument(
        "--work", type=pathlib.Path, help="work folder, kept (default: a temporary one, removed)"
    )
    parser.add_argument("--wait", type=int, default=300, help="seconds to wait for Kafka to start")
    args = parser.parse_args()
    args.libs = (args.libs or default_libs()).resolve()
    work = (args.work or pathlib.Path(tempfile.mkdtemp(prefix="read-by-kafka-"))).resolve()
    (work / "classes").mkdir(parents=True, exist_ok=True)
    try:
        source = args.datadir.resolve()
        if source.is_file():
            shutil.rmtree(work / "unpacked", ignore_errors=True)
            (work / "unpacked").mkdir()
            subprocess.run(["tar", "-xSf", str(source), "-C", str(work / "unpacked")], check=True)
            source = work / "unpacked"
        if not (source / "meta.properties").exists():
            raise SystemExit(f"{source} is no data directory: it holds no meta.properties")
        result = {"made_by": "Apache Kafka 4.4.0 read this directory", "killed": args.killed}
        faults = []
        if not args.no_inspect and not args.killed:
            result["files"], result["metadata"], faults = inspect(args.libs, source)
            say(f"{len(result['files'])} files inspected, {len(faults)} faults")
        if not args.no_start:
            facts, copy, log = ask(args, source, work)
            result.update(facts)
            result["kafka_log"] = [
                re.sub(r"^\[[^]]*\] ", "", line).replace(str(copy), "DATADIR")
                for line in log
                if re.match(r"\[[^]]*\] (ERROR|FATAL)", line)
                and not any(harmless in line for harmless in HARMLESS)
            ]
            faults += [
                f"Kafka logged: {line[:300]}"
                for line in result["kafka_log"]
                if ABOUT_DATA.search(line)
            ]
            if args.killed and not args.no_inspect:
                result["files_after_recovery"], result["metadata"], more = inspect(args.libs, copy)
                say(
                    f"{len(result['files_after_recovery'])} files inspected after recovery, {len(more)} faults"
                )
                faults += more
        result["faults"] = faults
        text = json.dumps(result, indent=None, separators=(",", ":"), sort_keys=True)
        # one line per partition keeps the file readable and its differences small
        text = text.replace('},"', '},\n"')
        if args.out:
            args.out.write_text(text + "\n")
        else:
            print(text)
        for fault in faults[:50]:
            say(f"fault: {fault}")
        if faults:
            sys.exit(1)
        if args.expect:
            now = int(time.time() * 1000)
            wanted, seen = normal(load(args.expect), now), normal(result, now)
            if args.killed:
                align(wanted, seen)
            found = list(differences(wanted, seen))
            for line in found[:100]:
                say(line)
            say(f"{len(found)} differences from {args.expect.name}")
            if found:
                sys.exit(2)
    finally:
        if not args.work:
            shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
