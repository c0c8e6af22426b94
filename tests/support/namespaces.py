"""A small network of this machine's own: namespaces on a bridge, links cut in one direction.

with Network(("1", "2", "3"), tag) as network: # each a namespace with an address of its own
    network.prefix("1")                        # command words that run a program in there
    network.cut("1", "2")                      # what 1 sends to 2 is lost, not the reverse
    network.heal()

The hub is a namespace too (`network.prefix(HUB)`): nothing is seen outside, and no address but
those made here (10.213.N.0/24) is ever spoken to. A cut is a neighbour entry with an address that
nobody has: frames go to the bridge and nowhere else, as on a cable that is broken. `missing()` says
why this machine cannot (no root, no `ip`, no namespaces), or None.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

HUB = "hub"
NOBODY = "02:00:00:00:00:ff"


def _ip(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True, timeout=30)


def missing() -> str | None:
    """What this machine lacks for network namespaces."""
    if shutil.which("ip") is None:
        return "needs the ip command"
    name = f"kwire-try-{os.getpid()}"
    if _ip("netns", "add", name, check=False).returncode:
        return "needs the right to make network namespaces"
    try:
        made = _ip("-n", name, "link", "add", "name", "both", "type", "bridge", check=False)
        pair = _ip(
            "-n",
            name,
            "link",
            "add",
            "name",
            "one",
            "type",
            "veth",
            "peer",
            "name",
            "two",
            check=False,
        )
        if made.returncode or pair.returncode:
            return "needs bridges and veth pairs"
    finally:
        _ip("netns", "del", name, check=False)
    return None


class Network:
    """See the module. `tag` tells one network of this machine from another: a process that runs
    inside makes no network, it names the one that it is in."""

    def __init__(self, members: Sequence[str], tag: int) -> None:
        self._members = (HUB, *members)
        self._cuts: list[tuple[str, str]] = []
        self.tag = tag

    def namespace(self, member: str) -> str:
        return f"kwire-{self.tag}-{member}"

    def address(self, member: str) -> str:
        return f"10.213.{self.tag % 250}.{self._members.index(member) + 1}"

    def prefix(self, member: str) -> tuple[str, ...]:
        return ("ip", "netns", "exec", self.namespace(member))

    def __enter__(self) -> Network:
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for member in self._members:
            _ip("netns", "del", self.namespace(member), check=False)

    def _make(self) -> None:
        hub = self.namespace(HUB)
        for member in self._members:
            _ip("netns", "add", self.namespace(member))
            _ip("-n", self.namespace(member), "link", "set", "lo", "up")
        _ip("-n", hub, "link", "add", "name", "bridge", "type", "bridge")
        _ip("-n", hub, "link", "set", "bridge", "up")
        _ip("-n", hub, "address", "add", f"{self.address(HUB)}/24", "dev", "bridge")
        for member in self._members[1:]:
            inside, outside = "eth0", f"to-{member}"
            namespace = self.namespace(member)
            _ip(
                *("-n", hub, "link", "add", "name", outside, "type", "veth"),
                *("peer", "name", inside, "netns", namespace),
            )
            _ip("-n", hub, "link", "set", outside, "master", "bridge", "up")
            _ip("-n", namespace, "address", "add", f"{self.address(member)}/24", "dev", inside)
            _ip("-n", namespace, "link", "set", inside, "up")

    def cut(self, source: str, target: str) -> None:
        """Lose what `source` sends to `target` from now on."""
        device = "bridge" if source == HUB else "eth0"
        _ip(
            *("-n", self.namespace(source), "neigh", "replace", self.address(target)),
            *("lladdr", NOBODY, "dev", device, "nud", "permanent"),
        )
        self._cuts.append((source, target))

    def heal(self) -> None:
        """Undo every cut."""
        for source, target in self._cuts:
            device = "bridge" if source == HUB else "eth0"
            _ip(
                *("-n", self.namespace(source), "neigh", "del", self.address(target)),
                *("dev", device),
            )
        self._cuts = []
