"""``thalweg submit``: run a topology on a cluster, through Spark's own spark-submit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from thalweg.cli.bars import bar
from thalweg.cli.loading import check_file, split_target
from thalweg.cli.showing import error_console
from thalweg.cli.spark_options import SPARK, SparkOptions
from thalweg.config import setting
from thalweg.errors import UsageError, explain
from thalweg.runtimes.spark.deploying import (
    AUTHENTICATE,
    SECRET_VARIABLE,
    DeployMode,
    Submission,
    check_authenticated,
    is_near,
    is_secret,
    read_properties,
    shown,
    shown_settings,
)
from thalweg.runtimes.spark.gateway import NOISE
from thalweg.runtimes.spark.packing import pack
from thalweg.runtimes.spark.reaching import check_installed, check_master
from thalweg.runtimes.spark.session import (
    DEFAULTS,
    log_file,
    spark_defaults,
    spark_home,
    write_properties,
)

_LAUNCHER = "run_thalweg.py"
_PROPERTIES = "spark.properties"
_ARCHIVE = "environment.tar.gz"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


@dataclass(frozen=True)
class SubmitOptions:
    """How to hand a run to a cluster; each field is an option of the command."""

    deploy_mode: Annotated[
        DeployMode, typer.Option(help="Where the driver runs: here, or in the cluster.")
    ] = DeployMode.CLIENT
    archive: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A packed Python environment for the hosts (.tar.gz)."),
    ] = None
    pack: Annotated[
        bool, typer.Option("--pack", help="Pack this Python environment for the hosts.")
    ] = False
    py_files: Annotated[
        str | None,
        typer.Option(metavar="FILES", help="Modules for a driver in the cluster, with commas."),
    ] = None
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A setting of Spark; may be repeated."),
    ] = None
    properties: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file with settings of Spark, also secret ones."),
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be run, without secrets.")
    ] = False


def submit(target: str, own: Sequence[str], spark: SparkOptions, how: SubmitOptions) -> int:
    """Run ``thalweg run`` with the options ``own`` on a cluster; gives its exit code."""
    job = submission(target, own, spark, how)
    secret = os.environ.get(SECRET_VARIABLE)
    given = job.settings(sys.executable, secret)
    check_authenticated(job.master, given, spark_defaults())
    settings = {**DEFAULTS, **given}
    if job.mode is DeployMode.CLIENT:
        logging = f"-Dlog4j2.configurationFile={log_file()}"
        settings[_JAVA_OPTIONS] = " ".join(filter(None, [settings.get(_JAVA_OPTIONS), logging]))
    if how.dry_run:
        _show(job, settings)
        return 0
    check_installed()
    check_master(job.master)
    with tempfile.TemporaryDirectory(prefix="thalweg-") as name:
        folder = Path(name)
        if how.pack:
            error_console().print("packing this Python environment", markup=False)
            with bar("packing"):
                pack(folder / _ARCHIVE)
            job = replace(job, archive=str(folder / _ARCHIVE))
        (folder / _LAUNCHER).write_text("from thalweg.cli import main\n\nmain()\n")
        properties = write_properties(folder, settings)
        command = job.command(_spark_submit(), str(properties), str(folder / _LAUNCHER))
        return _run(command, job.mode)


def submission(
    target: str, own: Sequence[str], spark: SparkOptions, how: SubmitOptions
) -> Submission:
    """Make of the options what is to be submitted; raises when they make no sense together."""
    spark.runtime(SPARK)
    file, name = split_target(target)
    check_file(file)
    if not spark.master:
        raise typer.BadParameter("--master: expected spark://HOST:PORT, yarn or k8s://...")  # noqa: EM101 (usage)
    if how.archive and (how.pack or not how.archive.is_file()):
        got = "--pack as well" if how.pack else "no such file"
        hint = "--pack alone makes one of this Python environment"
        text = explain(f"--archive {how.archive}", "", "one packed environment", got, hint)
        raise UsageError(text)
    _check_kept(spark, how.deploy_mode)
    kept = {f.name: getattr(spark, f.name) for f in fields(spark)}
    options = [
        word
        for option, value in kept.items()
        if value is not None and option not in ("master", "insecure")
        for word in (f"--{option}", str(value))
    ]
    return Submission(
        master=spark.master,
        file=file,
        name=name,
        arguments=(*own, *options),
        mode=how.deploy_mode,
        archive=_ARCHIVE if how.pack else str(how.archive) if how.archive else None,
        py_files=tuple(filter(None, (how.py_files or "").split(","))),
        given=given_settings(how) | ({AUTHENTICATE: "false"} if spark.insecure else {}),
    )


def given_settings(how: SubmitOptions) -> dict[str, str]:
    """Read Spark's settings; secrets may come from a file that nobody else can read."""
    found: dict[str, str] = {}
    if how.properties:
        found |= _read(how.properties)
    for key, value in (setting(text, "--conf") for text in how.conf or ()):
        if is_secret(key):
            hint = "write it into a file for --properties"
            got = "on the command line, which every user of this machine can read"
            raise UsageError(explain(f"setting {key!r}", "", "in a file", got, hint))
        found[key] = value
    return found


def _read(file: Path) -> dict[str, str]:
    try:
        found = read_properties(file.read_text(encoding="utf-8"))
        open_to_others = file.stat().st_mode & 0o077
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(explain(f"--properties {file}", "", "a text file", str(error))) from error
    if open_to_others and any(map(is_secret, found)):
        got = "one that others can read, with secrets in it"
        hint = f"chmod 600 {file}"
        raise UsageError(explain(f"--properties {file}", "", "a file of yours alone", got, hint))
    return found


def _check_kept(spark: SparkOptions, mode: DeployMode) -> None:
    """Refuse state that the hosts of a cluster could not share."""
    kept = spark.state or spark.checkpoint
    if not kept and not is_near(spark.master or ""):
        expected = "a location that all hosts share, for a cluster"
        hint = "as --checkpoint s3://BUCKET/FOLDER, or a folder that all of them mount"
        raise UsageError(explain("--state or --checkpoint", "", expected, "none", hint))
    for place in filter(None, (spark.state, spark.checkpoint)):
        if mode is DeployMode.CLUSTER and "://" not in place and not os.path.isabs(place):
            expected = "a URI or an absolute path, because the driver runs elsewhere"
            raise UsageError(explain("--state or --checkpoint", "", expected, place))


def _spark_submit() -> str:
    return str(spark_home() / "bin" / "spark-submit")


def _show(job: Submission, settings: dict[str, str]) -> None:
    command = job.command(_spark_submit(), f"FOLDER/{_PROPERTIES}", f"FOLDER/{_LAUNCHER}")
    heading = f"FOLDER/{_PROPERTIES}, which only you can read:"
    lines = [shown(command), heading, *(f"  {line}" for line in shown_settings(settings))]
    typer.echo("\n".join(lines))


def _run(command: list[str], mode: DeployMode) -> int:
    """Run spark-submit; of two presses of Ctrl-C the first is for the driver, if it runs here."""
    kept = {key: value for key, value in os.environ.items() if key != SECRET_VARIABLE}
    presses = 0

    def press(_signal: int, _frame: FrameType | None) -> None:
        nonlocal presses
        presses += 1
        if presses > 1 or mode is DeployMode.CLUSTER:
            process.terminate()

    # What is ignored here stays ignored in Spark's JVM, but not in the driver, which asks for it.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        env = {**kept, "SPARK_HOME": str(spark_home())}
        process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE)  # noqa: S603 (Spark's)
        signal.signal(signal.SIGINT, press)
        with process:
            for line in process.stderr or ():
                if not line.startswith(NOISE):
                    os.write(2, line)
    finally:
        signal.signal(signal.SIGINT, before)
    return process.returncode if process.returncode >= 0 else 128 - process.returncode
