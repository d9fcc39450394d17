"""Machines on one machine: network namespaces on a bridge, with a cable each that can be cut.

The bridge lies in a namespace of its own, where whoever plays lives, too: nothing that is sent
ever reaches the machine's own network. The kernel removes cables with their namespaces.
"""

import os
import shutil
import subprocess
from contextlib import ExitStack
from typing import Self

NETWORK = "10.77.0.0/24"
CALLERS, DATABASE, TARGETS = "10.77.0.1", "10.77.0.2", "10.77.0.3"  # all on the bridge
FIRST_HOST = 11
TOOLS = ("ip", "unshare")


def impossible() -> str:
    """Why no namespaces can be made here; "": they can."""
    missing = [name for name in TOOLS if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} missing: apt-get install iproute2 util-linux"
    if os.geteuid() != 0:
        return "network namespaces are made by root"
    probe = f"bk{os.getpid()}probe"
    made = subprocess.run(
        ["ip", "netns", "add", probe], capture_output=True, text=True, check=False
    )
    if made.returncode:
        return f"network namespaces are not allowed here: {made.stderr.strip()}"
    run("ip", "netns", "del", probe)
    return ""


def run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")


class Network:
    """`with Network(3) as network`; `hub` and `hosts` are names of namespaces."""

    def __init__(self, hosts: int) -> None:
        name = f"bk{os.getpid()}"
        self.hub = f"{name}hub"
        self.hosts = [f"{name}h{number}" for number in range(hosts)]
        self._made = ExitStack()

    def __enter__(self) -> Self:
        try:
            self._namespace(self.hub)
            self._in_hub("ip", "link", "add", "br0", "type", "bridge")
            for address in (CALLERS, DATABASE, TARGETS):
                self._in_hub("ip", "addr", "add", f"{address}/24", "dev", "br0")
            self._in_hub("ip", "link", "set", "br0", "up")
            for number, host in enumerate(self.hosts):
                self._namespace(host)
                cable = f"c{number}"
                self._in_hub("ip", "link", "add", cable, "type", "veth",
                             "peer", "name", "eth0", "netns", host)  # fmt: skip
                self._in_hub("ip", "link", "set", cable, "master", "br0", "up")
                run("ip", "-n", host, "addr", "add", f"{address_of(number)}/24", "dev", "eth0")
                run("ip", "-n", host, "link", "set", "eth0", "up")
        except BaseException:
            self._made.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._made.close()

    def _namespace(self, name: str) -> None:
        run("ip", "netns", "add", name)
        self._made.callback(run, "ip", "netns", "del", name)
        run("ip", "-n", name, "link", "set", "lo", "up")

    def _in_hub(self, *words: str) -> None:
        run("ip", "netns", "exec", self.hub, *words)


def address_of(host: int) -> str:
    return f"10.77.0.{FIRST_HOST + host}"


def cut(host: str, address: str) -> None:
    """What this host sends there is lost without a word: it goes to a card that nobody has."""
    run("ip", "-n", host, "neigh", "replace", address, "lladdr", "02:00:00:00:00:99",
        "dev", "eth0", "nud", "permanent")  # fmt: skip


def mend(host: str, address: str) -> None:
    run("ip", "-n", host, "neigh", "del", address, "dev", "eth0")
