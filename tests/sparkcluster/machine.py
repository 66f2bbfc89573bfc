"""Hosts on one machine: groups of namespaces on a bridge, with shaped links.

A host is found by what its processes have in their environment, so that nothing has to be written
down to remove it, also after a crash.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Private on each host; not what TMPDIR says, because the JVM does not ask that.
TMP = Path("/tmp")  # noqa: S108 (the folder of a cluster is made with mkdir, which follows no link)
REPOSITORY = Path(__file__).resolve().parents[2]
HOST_SCRIPT = Path(__file__).with_name("host.sh")
#: Its value in the environment of a host's processes is ``ID/NUMBER``.
MARK = "THALWEG_CLUSTER_HOST"
#: Seconds for anything that is waited for: far more than it takes on a busy machine.
PATIENCE = 300.0
TOOLS = ("ip", "tc", "unshare", "nsenter", "mount", "hostname", "java")
_NAMESPACES = ("--net", "--mount", "--uts", "--pid", "--mount-proc")
_PRIVATE = ("unshare", *_NAMESPACES, "--fork", "--kill-child", "--")
#: What a host needs, tried in namespaces that vanish at once.
_TRIAL = """
ip link add name trial type bridge && ip link add name end type veth peer name other &&
tc qdisc add dev end root tbf rate 10mbit burst 1mb latency 50ms &&
hostname trial && mount -t tmpfs trial /var/tmp
"""


FAILED, USAGE, NOT_PERMITTED, IN_USE = 1, 2, 3, 4


class Refused(Exception):
    """A command that was not done; ``code`` is the exit code.

    Words like those of `thalweg.errors.explain`, which would take a second to import: too long
    for a command that kills a host in the middle of a batch.
    """

    def __init__(
        self, subject: str, expected: str, got: str, hint: str = "", code: int = FAILED
    ) -> None:
        after = f" ({hint})" if hint else ""
        super().__init__(f"{subject}: expected {expected}, got {got}{after}")
        self.code = code


@dataclass(frozen=True)
class Net:
    """Names and addresses of a cluster, all derived from its id. Host 0 is the master."""

    id: int

    @property
    def bridge(self) -> str:
        """Give the bridge that all hosts are on."""
        return f"tw{self.id}"

    @property
    def driver(self) -> str:
        """Give the address of the bridge: where drivers listen."""
        return f"10.{self.id}.0.1"

    @property
    def folder(self) -> Path:
        """Give the folder with everything that the cluster keeps on disk."""
        return TMP / f"thalweg-cluster-{self.id}"

    def address(self, number: int) -> str:
        """Give the address of a host."""
        return f"10.{self.id}.0.{10 + number}"

    def link(self, number: int) -> str:
        """Give the link of a host, as it is called on the bridge's side."""
        return f"tw{self.id}h{number}"


def name_of(number: int) -> str:
    """Give the name of a host.

    >>> name_of(0), name_of(2)
    ('master', 'h2')
    """
    return f"h{number}" if number else "master"


# --- what the machine can do ----------------------------------------------------------------------


def check_machine() -> None:
    """Refuse machines on which there can be no hosts."""
    if os.geteuid() != 0:
        raise Refused("cluster", "root", f"user {os.geteuid()}", code=NOT_PERMITTED)
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        hint = "scripts/setup installs it; Debian: apt-get install iproute2 openjdk-17-jre-headless"
        got = f"no {', '.join(missing)}"
        raise Refused("cluster", ", ".join(TOOLS), got, hint, NOT_PERMITTED)
    tried = subprocess.run(  # noqa: S603 (our own command)
        [*_PRIVATE, "bash", "-c", _TRIAL], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        got = tried.stderr.strip() or f"exit code {tried.returncode}"
        hint = "containers often forbid them"
        raise Refused("cluster", "namespaces and shaped links", got, hint, NOT_PERMITTED)


def do(*words: str | int) -> str:
    """Run a command of the system; gives its output."""
    command = [str(word) for word in words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (ours)
    if done.returncode:
        raise Refused(" ".join(command), "success", done.stderr.strip())
    return done.stdout


def until(condition: Callable[[], bool], what: str, log: Path | None = None) -> None:
    """Wait for a condition; raises with the end of a log when it does not come true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            told = log.read_text(errors="replace")[-2000:] if log and log.exists() else "nothing"
            raise Refused("cluster", f"{what} within {PATIENCE:.0f} s", told)
        time.sleep(0.05)


# --- processes ------------------------------------------------------------------------------------


def members(net: Net) -> dict[int, int]:
    """Find all processes of a cluster: process id -> number of its host."""
    found = {}
    for pid in (int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
        number = _number(net, pid)
        if number is not None:
            found[pid] = number
    return found


def firsts(net: Net) -> dict[int, int]:
    """Find the first process of each host: number of the host -> process id."""
    return {number: pid for pid, number in members(net).items() if _is_first(pid)}


def running(net: Net, number: int, main: str) -> list[int]:
    """Find the JVMs of a host that run a class; its first process has the name in it too."""
    words = {
        pid: _read(pid, "cmdline").split(b"\0") for pid, at in members(net).items() if at == number
    }
    return [
        pid for pid, line in words.items() if line[0].endswith(b"/java") and main.encode() in line
    ]


def end(pid: int) -> None:
    """Kill a process and wait until it is gone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        select.select([handle], [], [], PATIENCE)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)


def _number(net: Net, pid: int) -> int | None:
    head = f"{MARK}={net.id}/".encode()
    lines = _read(pid, "environ").split(b"\0")
    return next((int(line[len(head) :]) for line in lines if line.startswith(head)), None)


def _is_first(pid: int) -> bool:
    """Say whether a process is number 1 in its own view."""
    lines = _read(pid, "status").splitlines()
    ids = next((line.split()[1:] for line in lines if line.startswith(b"NSpid:")), [])
    return len(ids) > 1 and ids[-1] == b"1"


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:  # it has ended
        return b""


# --- hosts ----------------------------------------------------------------------------------------


def make_bridge(net: Net) -> None:
    """Make the bridge; refuses when the addresses are somebody else's."""
    taken = [
        f"{entry['ifname']} {address['local']}"
        for entry in json.loads(do("ip", "-json", "-4", "addr"))
        for address in entry.get("addr_info", ())
        if address.get("local", "").startswith(f"10.{net.id}.")
    ]
    if taken:
        subject, hint = f"addresses 10.{net.id}.0.0/24", "choose another id with --id"
        raise Refused(subject, "nobody there", ", ".join(taken), hint, IN_USE)
    do("ip", "link", "add", "name", net.bridge, "type", "bridge")
    do("ip", "addr", "add", f"{net.driver}/24", "dev", net.bridge)
    do("ip", "link", "set", net.bridge, "up")


def start_host(
    net: Net, number: int, rate: str, environment: Mapping[str, str], command: Sequence[str]
) -> None:
    """Start a host that runs a command; what it prints goes to a log in the folder."""
    drop_link(net.link(number))
    script = [*_PRIVATE, "bash", HOST_SCRIPT, name_of(number), net.address(number), rate]
    with open(log_of(net, number), "ab") as log:
        host = subprocess.Popen(  # noqa: S603 (our own command)
            [*map(str, [*script, net.folder, REPOSITORY]), *command],
            env={**environment, MARK: f"{net.id}/{number}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    assert host.stdin is not None
    assert host.stdout is not None
    if host.stdout.readline() != b"ready\n":
        told = log_of(net, number).read_text(errors="replace")[-2000:]
        raise Refused(f"host {name_of(number)}", "a start", told)
    _connect(net, number, rate, host.pid)
    host.stdin.write(b"go\n")
    host.stdin.close()
    host.stdout.close()


def _connect(net: Net, number: int, rate: str, pid: int) -> None:
    link = net.link(number)
    do("ip", "link", "add", "name", link, "type", "veth", "peer", "name", "e0", "netns", pid)
    shape = ("tbf", "rate", rate, "burst", "1mb", "latency", "50ms")
    do("tc", "qdisc", "add", "dev", link, "root", *shape)
    do("ip", "link", "set", link, "master", net.bridge, "up")


def log_of(net: Net, number: int) -> Path:
    """Give the file with what a host printed."""
    return net.folder / "logs" / f"{name_of(number)}.log"


def cut_link(net: Net, number: int, pid: int, seconds: float) -> None:
    """Take the link of a host down; it comes up again by itself, from inside the host."""
    inside = ("nsenter", "--target", str(pid), "--net", "--pid", "--mount")
    do(*inside, "ip", "link", "set", "e0", "down")
    later = f"sleep {seconds}; ip link set e0 up"
    subprocess.Popen(  # noqa: S603 (our own command)
        [*inside, "bash", "-c", later],
        env={**os.environ, MARK: f"{net.id}/{number}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def slow_link(net: Net, number: int, pid: int, rate: str, towards: bool) -> None:
    """Change the rate of a link: both ways, or only towards the host."""
    # Little may pass at once, or short messages would not notice.
    shape = ("tbf", "rate", rate, "burst", "32kb", "latency", "50ms")
    for where, end in _ends(net.link(number), pid)[: 1 if towards else 2]:
        do(*where, "tc", "qdisc", "replace", "dev", end, "root", *shape)


def look_at_link(link: str, pid: int) -> list[dict[str, Any]]:
    """Say how each end of a host's link is shaped and what has passed there, as tc has it."""
    look = ("tc", "-json", "-statistics", "qdisc", "show", "dev")
    return [json.loads(do(*where, *look, end))[0] for where, end in _ends(link, pid)]


def _ends(link: str, pid: int) -> list[tuple[tuple[str, ...], str]]:
    """Give both ends of a link: how to get there, and what it is called there."""
    return [((), link), (("nsenter", "--target", str(pid), "--net"), "e0")]


def is_connected(net: Net, number: int) -> bool:
    """Say whether the link of a host is up."""
    state = Path(f"/sys/class/net/{net.link(number)}/operstate")
    return state.exists() and state.read_text().strip() == "up"


def drop_link(name: str) -> None:
    """Remove a link, if it is there."""
    if Path(f"/sys/class/net/{name}").exists():
        subprocess.run(["ip", "link", "del", name], capture_output=True, check=False)  # noqa: S603, S607 (it may vanish meanwhile)


def end_host(net: Net, number: int) -> None:
    """Kill all processes of a host; its disk and its link go with them."""
    while found := [pid for pid, at in members(net).items() if at == number]:
        for pid in found:
            end(pid)
    drop_link(net.link(number))


def remove_all(net: Net) -> None:
    """Remove everything that a cluster has on this machine."""
    while found := members(net):
        for number in {*found.values()}:
            end_host(net, number)
    names = os.listdir("/sys/class/net")
    for link in [name for name in names if name.startswith(f"{net.bridge}h")] + [net.bridge]:
        drop_link(link)
    shutil.rmtree(net.folder, ignore_errors=True)
