"""The commands of ``scripts/cluster``.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 this machine does not permit it, 4 in use.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sparkcluster import machine, spark
from sparkcluster.machine import IN_USE, USAGE, Net, Refused, name_of
from sparkcluster.spark import MOST, Settings

DEFAULT_ID = 77


def main(words: Sequence[str]) -> int:
    """Do one command; gives the exit code."""
    options = _parser().parse_args(words)
    net = Net(options.id)
    try:
        if options.command == "status":
            _show(net, options.json)
        else:
            with _lock(net):
                options.do(net, options)
    except Refused as refusal:
        print(f"cluster: {refusal}", file=sys.stderr)
        return refusal.code
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/cluster", description=__doc__)
    parser.add_argument("--id", type=_id, default=DEFAULT_ID, help="addresses are 10.ID.0.x")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start a master and N hosts with a worker each")
    up.add_argument("hosts", type=int, metavar="N")
    up.add_argument("--rate", type=_rate, default="200mbit", help="of each link, both ways")
    up.add_argument("--cores", type=int, default=1, help="of each worker")
    up.add_argument("--memory", default="1g", help="of each worker")
    up.add_argument("--owner", type=int, help="process that it is for: when that has ended, the "
                    "next 'up' removes the cluster")  # fmt: skip
    up.set_defaults(do=_up)
    status = commands.add_parser("status", help="say what there is")
    status.add_argument("--json", action="store_true")
    commands.add_parser("add", help="start one more host").set_defaults(do=_add)
    commands.add_parser("down", help="remove everything").set_defaults(do=_down)
    for name, do, text in (
        ("remove", _remove, "decommission a host, then remove it"),
        ("kill", _kill, "kill all of a host's processes and destroy its disk"),
        ("relaunch", _relaunch, "start a killed host again, with an empty disk"),
        ("cut", _cut, "take the link of a host down for SECONDS"),
        ("slow", _slow, "give the link of a host another RATE, until it is started again"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("host", metavar="HOST")
        if name == "cut":
            command.add_argument("seconds", type=float, metavar="SECONDS")
        if name == "slow":
            command.add_argument("rate", type=_rate, metavar="RATE", help="2mbit, 500kbit ...")
            command.add_argument("--towards", action="store_true", help="not away from the host")
        command.set_defaults(do=do)
    return parser


def _id(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 254:
        raise argparse.ArgumentTypeError("expected a number from 1 to 254, got " + repr(text))
    return int(text)


def _rate(text: str) -> str:
    if not re.fullmatch(r"\d+(\.\d+)?[kmg]?bit", text):
        raise argparse.ArgumentTypeError("expected a rate such as 2mbit, got " + repr(text))
    return text


class _lock:
    """One command at a time for a cluster; a name in memory, so that no file is left."""

    def __init__(self, net: Net) -> None:
        self._name = f"\0thalweg-cluster-{net.id}"
        self._socket = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> None:
        machine.until(self._taken, "no other command at work on this cluster")

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _taken(self) -> bool:
        try:
            self._socket.bind(self._name)
        except OSError:
            return False
        return True


# --- the cluster ----------------------------------------------------------------------------------


def _up(net: Net, options: argparse.Namespace) -> None:
    if not 1 <= options.hosts <= MOST:
        raise Refused("hosts", f"1 to {MOST}", f"{options.hosts}", code=USAGE)
    machine.check_machine()
    _check_free(net)
    machine.remove_all(net)
    owner = None if options.owner is None else (options.owner, _started(options.owner) or "")
    settings = Settings(options.rate, options.cores, options.memory, owner, ())
    try:
        _make_folder(net)
        spark.make_secret(net)
        spark.save(net, settings)
        machine.make_bridge(net)
        spark.start_master(net, settings)
        spark.start_workers(net, settings, range(1, options.hosts + 1))
    except BaseException:
        machine.remove_all(net)
        raise
    _show(net, False)


def _check_free(net: Net) -> None:
    """Refuse when a cluster is there that somebody uses; what a crash left is no such cluster."""
    settings = spark.load(net)
    if settings is None:
        return
    if settings.owner is None:
        used = 0 in machine.firsts(net)
    else:
        pid, started = settings.owner
        used = _started(pid) == started
    if used:
        hint = f"scripts/cluster --id {net.id} down, or choose another id"
        raise Refused(f"cluster {net.id}", "none", "one in use", hint, IN_USE)


def _started(pid: int) -> str | None:
    """Say when a process began, in ticks; None when it is not there."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return text.rpartition(")")[2].split()[19]


def _make_folder(net: Net) -> None:
    net.folder.mkdir(mode=0o700)
    for name in ("disk", "logs", "shared"):
        (net.folder / name).mkdir()
    names = "".join(f"{net.address(i)} {name_of(i)}\n" for i in range(MOST + 1))
    (net.folder / "hosts").write_text(f"127.0.0.1 localhost\n{names}")


def _down(net: Net, _: argparse.Namespace) -> None:
    machine.remove_all(net)


# --- hosts ----------------------------------------------------------------------------------------


def _add(net: Net, _: argparse.Namespace) -> None:
    settings = spark.expect(net)
    free = [number for number in range(1, MOST + 1) if number not in settings.hosts]
    if not free:
        raise Refused("hosts", f"at most {MOST}", f"{MOST + 1}", code=USAGE)
    spark.start_workers(net, settings, free[:1])
    print(name_of(free[0]))


def _kill(net: Net, options: argparse.Namespace) -> None:
    number, _ = _running(net, options.host)
    machine.end_host(net, number)


def _relaunch(net: Net, options: argparse.Namespace) -> None:
    settings = spark.expect(net)
    number = _known(settings, options.host)
    if number in machine.firsts(net):
        raise Refused(f"host {options.host}", "a killed one", "one that runs", code=USAGE)
    spark.start_workers(net, settings, [number])


def _remove(net: Net, options: argparse.Namespace) -> None:
    number, _ = _running(net, options.host)
    for worker in machine.running(net, number, spark.WORKER):
        os.kill(worker, signal.SIGPWR)  # asks it to decommission itself
    address = net.address(number)
    machine.until(lambda: not spark.alive(net, address), "the worker to leave the master")
    busy = partial(machine.running, net, number, spark.EXECUTOR)
    machine.until(lambda: not busy(), "its executors to finish (or kill it)")
    machine.end_host(net, number)
    spark.save(net, spark.expect(net).without(number))


def _cut(net: Net, options: argparse.Namespace) -> None:
    if not options.seconds > 0:
        raise Refused("seconds", "more than 0", f"{options.seconds}", code=USAGE)
    number, first = _running(net, options.host)
    machine.cut_link(net, number, first, options.seconds)


def _slow(net: Net, options: argparse.Namespace) -> None:
    number, first = _running(net, options.host)
    machine.slow_link(net, number, first, options.rate, options.towards)


def _known(settings: Settings, host: str) -> int:
    numbers = {name_of(number): number for number in settings.hosts}
    if host not in numbers:
        raise Refused("host", f"one of {', '.join(numbers)}", host, code=USAGE)
    return numbers[host]


def _running(net: Net, host: str) -> tuple[int, int]:
    number = _known(spark.expect(net), host)
    first = machine.firsts(net).get(number)
    if first is None:
        hint = f"scripts/cluster relaunch {host}"
        raise Refused(f"host {host}", "one that runs", "a killed one", hint, USAGE)
    return number, first


# --- status ---------------------------------------------------------------------------------------


def _show(net: Net, as_json: bool) -> None:
    status = describe(net)
    if as_json:
        print(json.dumps(status, indent=2))
        return
    print(f"master  {status['master']}")
    for key, value in status["driver"].items():
        print(f"driver  {key}={value}")
    print(f"secret  in {status['properties']}")
    print(f"shared  {status['shared']}")
    for host in status["hosts"]:
        print("host    {name} {address} {state} worker={worker} local={local}".format(**host))


def describe(net: Net) -> dict[str, Any]:
    """Say what there is: master, settings for drivers, hosts and their states."""
    settings = spark.expect(net)
    firsts = machine.firsts(net)
    seen = {worker["host"]: worker["state"] for worker in spark.workers(net)}
    hosts = [
        {
            "name": name_of(number),
            "address": net.address(number),
            "state": _state(net, number, firsts),
            "worker": seen.get(net.address(number)),
            "local": str(spark.local_folder(number)),
            "pid": firsts.get(number),
            "link": net.link(number),
        }
        for number in settings.hosts
    ]
    return {
        "id": net.id,
        "master": spark.master_url(net),
        "ui": f"http://{net.address(0)}:{spark.UI_PORT}",
        "driver": {"spark.driver.host": net.driver, "spark.driver.bindAddress": net.driver},
        "properties": str(spark.properties_file(net)),
        "shared": str(net.folder / "shared"),
        "hosts": hosts,
    }


def _state(net: Net, number: int, firsts: dict[int, int]) -> str:
    if number not in firsts:
        return "killed"
    return "up" if machine.is_connected(net, number) else "cut"
