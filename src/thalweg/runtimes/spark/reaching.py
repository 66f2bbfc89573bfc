"""What can be known before Spark is started: that it is there, and that its master answers."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import socket
import subprocess

from thalweg.errors import UsageError, explain

#: Seconds for a master to answer; Spark itself would try for minutes.
_PATIENCE = 3.0
#: The oldest Java that Spark runs on.
OLDEST_JAVA = 17


def check_installed() -> None:
    """Refuse to begin without PySpark, or without a Java that it can use."""
    if importlib.util.find_spec("pyspark") is None:
        hint = "pip install 'thalweg[spark]'"
        raise UsageError(explain("Spark", expected="pyspark to be installed", hint=hint))
    home, java = os.environ.get("JAVA_HOME"), found_java()
    got = "none on PATH" if java is None else _too_old(java)
    hint = "on Debian or Ubuntu: apt-get install openjdk-17-jre-headless"
    if home and java is None:
        got = f"none at JAVA_HOME, which is {home}"
        hint = f"set JAVA_HOME to the folder of one, or unset it; {hint}"
    if got:
        raise UsageError(
            explain("Java", "", f"version {OLDEST_JAVA} or newer for Spark", got, hint)
        )


def found_java() -> str | None:
    """Find the Java that Spark would use; None where there is none."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", "java") if home else "java")


def java_version(java: str) -> int | None:
    """Ask a Java for its version; None for an answer that cannot be read."""
    asked = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603 (the user's own Java)
    found = re.search(r' version "(?:1\.)?(\d+)', asked.stderr)
    return int(found[1]) if found else None


def _too_old(java: str) -> str:
    """Say which version a Java is if it is too old for Spark; nothing if it will do."""
    version = java_version(java)
    return f"version {version} ({java})" if version is not None and version < OLDEST_JAVA else ""


def check_master(master: str) -> None:
    """Refuse a master that is none, or a standalone one that nobody answers for."""
    if not re.fullmatch(r"local(\[.+\])?|local-cluster\[.+\]|yarn|(spark|k8s)://.+", master):
        expected = "one such as local[4], spark://HOST:PORT, yarn or k8s://..."
        raise UsageError(explain(f"Spark master {master!r}", expected=expected))
    addresses = standalone_addresses(master)
    reasons = [reason for host, port in addresses if (reason := _unreachable(host, port))]
    if addresses and len(reasons) == len(addresses):
        hint = "is the address right, and does the master run?"
        subject = f"Spark master {master!r}"
        raise UsageError(explain(subject, "", "a master that answers", reasons[0], hint))


def standalone_addresses(master: str) -> list[tuple[str, int]]:
    """Read the addresses of a standalone master; there are several where one stands by.

    >>> standalone_addresses("spark://a:7077,b:7078"), standalone_addresses("local[2]")
    ([('a', 7077), ('b', 7078)], [])
    """
    found = re.fullmatch(r"spark://(.+)", master)
    pairs = [part.rpartition(":") for part in found[1].split(",")] if found else []
    if not all(host and port.isdecimal() for host, _, port in pairs):
        expected = "spark://HOST:PORT, as in spark://localhost:7077"
        raise UsageError(explain(f"Spark master {master!r}", expected=expected))
    return [(host.strip("[]"), int(port)) for host, _, port in pairs]


def _unreachable(host: str, port: int) -> str:
    """Say why an address cannot be reached; nothing if it can."""
    try:
        with socket.create_connection((host, port), _PATIENCE):
            return ""
    except TimeoutError:
        return f"no answer within {_PATIENCE:.0f} s"
    except (OSError, OverflowError) as error:
        return getattr(error, "strerror", None) or str(error)
