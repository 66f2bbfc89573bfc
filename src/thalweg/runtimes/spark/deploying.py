"""Handing a run to a cluster: what spark-submit is told, and what nobody else may see.

Everything here is a function of what it is given; nothing is run or written.
"""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from thalweg.errors import UsageError, explain
from thalweg.runtimes.spark.reaching import standalone_addresses

#: Where the secret of a standalone cluster is looked for.
SECRET_VARIABLE = "THALWEG_SPARK_SECRET"  # noqa: S105 (the name of a variable)
#: The folder beside an executor into which the archive is unpacked.
UNPACKED = "environment"
AUTHENTICATE = "spark.authenticate"
SECRET = "spark.authenticate.secret"  # noqa: S105 (the name of a setting)
LOOPBACK: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
HIDDEN = "(hidden)"

_TELLING = r"secret|passw|token|credential|access[._-]?key|private[._-]?key"
_SECRET_KEY = re.compile(rf"(?!.*(?:file|path|enabled|length|provider)$).*(?:{_TELLING})", re.I)


class DeployMode(Enum):
    """Where the driver runs."""

    CLIENT = "client"
    CLUSTER = "cluster"


# --- the network --------------------------------------------------------------------------------


def is_near(master: str, settings: Mapping[str, str] | None = None) -> bool:
    """Say whether a run stays on this machine: its master, and the address of its driver.

    >>> is_near("local[2]"), is_near("spark://127.0.0.1:7077"), is_near("spark://ant:7077")
    (True, True, False)
    >>> is_near("spark://localhost:7077", {"spark.driver.host": "10.0.0.7"})
    False
    """
    if not master.startswith(("local", "spark://")):
        return False
    hosts = [host for host, _ in standalone_addresses(master)]
    known = settings or {}
    hosts += [known[name] for name in LOOPBACK if name in known]
    return all(map(_is_loopback, hosts))


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def network_settings(master: str, secret: str | None) -> dict[str, str]:
    """Give the settings of the network that suit a master: loopback, or authentication.

    On YARN and Kubernetes Spark makes a secret for each run; a standalone cluster has one already.
    """
    if is_near(master):
        return dict(LOOPBACK)
    if secret:
        return {AUTHENTICATE: "true", SECRET: secret}
    return {} if master.startswith("spark://") else {AUTHENTICATE: "true"}


def check_authenticated(master: str, given: Mapping[str, str], defaults: Mapping[str, str]) -> None:
    """Refuse traffic beyond this machine that does not have to say who it is.

    ``given`` is what this run was told: there, ``false`` is a decision. ``defaults`` are those of
    Spark's own file, where it is not.
    """
    known = {**defaults, **given}
    if is_near(master, known) or given.get(AUTHENTICATE) == "false":
        return
    needs_secret = master.startswith("spark://") and SECRET not in known
    if known.get(AUTHENTICATE) == "true" and not needs_secret:
        return
    got = f"no {SECRET}" if known.get(AUTHENTICATE) == "true" else f"no {AUTHENTICATE}"
    hint = (
        f"put the secret of the cluster into the environment as {SECRET_VARIABLE}, or "
        f"{AUTHENTICATE} and {SECRET} into spark-defaults.conf or a file for thalweg submit "
        f"--properties, never on the command line; --insecure, or {AUTHENTICATE}=false in config, "
        "goes without"
    )
    expected = "authentication, because it is not on this machine"
    raise UsageError(explain(f"Spark master {master!r}", "", expected, got, hint))


# --- secrets ------------------------------------------------------------------------------------


def is_secret(key: str) -> bool:
    """Say whether the value of a setting must not be seen.

    >>> is_secret("spark.authenticate.secret"), is_secret("spark.authenticate.secret.file")
    (True, False)
    """
    return _SECRET_KEY.match(key) is not None


def masked(word: str) -> str:
    """Hide what is secret in a word of a command.

    >>> masked("password=x y"), masked("s3://me:key@shop/state?region=x&secret_key=abc")
    ('password=(hidden)', 's3://***@shop/state?region=x&secret_key=(hidden)')
    """
    key, equals, _ = word.partition("=")
    if equals and "?" not in key and re.search(_TELLING, key, re.I):
        return f"{key}={HIDDEN}"
    word = re.sub(r"//[^/@\s]*@", "//***@", word)
    return re.sub(rf"([?&][^=&]*(?:{_TELLING})[^=&]*=)[^&]*", rf"\1{HIDDEN}", word, flags=re.I)


def shown(command: list[str]) -> str:
    """Write a command as a shell would take it, without its secrets."""
    return shlex.join(map(masked, command))


def shown_settings(settings: Mapping[str, str]) -> list[str]:
    """Write settings line by line, without their secrets."""
    return [
        f"{key}={HIDDEN if is_secret(key) else masked(value)}"
        for key, value in sorted(settings.items())
    ]


def properties_text(settings: Mapping[str, str]) -> str:
    """Write settings as a file of properties, which is where Spark looks for them."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in sorted(settings.items()))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def read_properties(text: str) -> dict[str, str]:
    r"""Read a file of properties as Spark does, but for lines that go on in the next one.

    >>> read_properties("# mine\nspark.authenticate  true\nspark.driver.memory=2g\n")
    {'spark.authenticate': 'true', 'spark.driver.memory': '2g'}
    """
    lines = [line.strip(" \t\f\r") for line in text.split("\n")]
    pairs = [re.split(r"\s*[=:\s]\s*", line, maxsplit=1) for line in lines if line[:1] not in "#!"]
    return {key: _unescaped(rest[0]) if rest else "" for key, *rest in pairs}


def _unescaped(value: str) -> str:
    ends = {"n": "\n", "r": "\r", "t": "\t"}
    return re.sub(r"\\(.)", lambda found: ends.get(found[1], found[1]), value)


# --- the command --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Submission:
    """What is to run on which cluster."""

    master: str
    file: Path
    #: Which topology of the file; None where there is only one.
    name: str | None = None
    #: Options of ``thalweg run``.
    arguments: tuple[str, ...] = ()
    mode: DeployMode = DeployMode.CLIENT
    #: A packed Python environment.
    archive: str | None = None
    py_files: tuple[str, ...] = ()
    #: Spark's settings as they were given.
    given: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.mode is DeployMode.CLUSTER and self.master.startswith(("local", "spark://")):
            expected = "YARN or Kubernetes for --deploy-mode cluster"
            hint = "Spark has no such mode for Python there; start the driver near the cluster"
            raise UsageError(explain(f"master {self.master!r}", expected=expected, hint=hint))

    def settings(self, python: str, secret: str | None) -> dict[str, str]:
        """Give Spark's settings; ``python`` is the one that runs here."""
        found = network_settings(self.master, secret)
        if self.mode is DeployMode.CLIENT:
            found["spark.pyspark.driver.python"] = python
        if self.archive:
            found["spark.pyspark.python"] = f"./{UNPACKED}/bin/python"
        elif is_near(self.master):
            found["spark.pyspark.python"] = python
        return {**found, **self.given}

    def command(self, spark_submit: str, properties: str, launcher: str) -> list[str]:
        """Give the command that runs ``thalweg run`` where the cluster wants its driver."""
        far = self.mode is DeployMode.CLUSTER
        file = self.file.name if far else str(self.file)
        options = {
            "--master": self.master,
            "--deploy-mode": self.mode.value,
            "--name": f"thalweg {self.file.stem}",
            "--archives": f"{self.archive}#{UNPACKED}" if self.archive else None,
            "--py-files": ",".join(self.py_files) or None,
            "--files": str(self.file) if far else None,
            "--properties-file": properties,
        }
        words = [word for name, value in options.items() if value for word in (name, value)]
        target = f"{file}:{self.name}" if self.name else file
        run = ["run", target, "--on", "spark", *self.arguments]
        return [spark_submit, *words, "--load-spark-defaults", launcher, *run]
