"""``thalweg submit`` as far as no cluster is needed: options, refusals, what would be run."""

from __future__ import annotations

import os
import shlex
import signal
import stat
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from thalweg.cli import submitting
from thalweg.cli.app import app
from thalweg.cli.spark_options import SparkOptions
from thalweg.cli.spark_session import started
from thalweg.errors import UsageError
from thalweg.runtimes.spark import packing, session
from thalweg.runtimes.spark.deploying import SECRET_VARIABLE, DeployMode
from thalweg.runtimes.spark.runtime import Spark
from thalweg.runtimes.spark.session import settings_for, submitted, write_properties

FAR = ["--master", "spark://ant:7077", "--state", "s3://shop/state"]


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv(SECRET_VARIABLE, raising=False)
    (tmp_path / "program.py").touch()


def call(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["submit", "program.py", "--dry-run", *arguments])


def shown(*arguments: str) -> str:
    done = call(*arguments)
    assert done.exit_code == 0, done.stderr
    return str(done.stdout)


def refused(*arguments: str) -> str:
    done = call(*arguments)
    assert (done.exit_code, done.stdout) == (1, "")
    return str(done.stderr)


# --- what would be run ------------------------------------------------------------------------


def test_a_dry_run_shows_the_command_and_the_settings() -> None:
    text = shown("--master", "spark://127.0.0.1:7077", "--places", "3", "-q", "--set", "a=b c")
    command, heading, *settings = text.splitlines()
    assert shlex.split(command)[0].endswith("/bin/spark-submit")
    assert command.endswith("run program.py --on spark --set 'a=b c' --quiet --places 3")
    assert heading == "FOLDER/spark.properties, which only you can read:"
    assert "  spark.driver.host=127.0.0.1" in settings
    assert f"  spark.pyspark.python={sys.executable}" in settings


def test_scaling_goes_with_it() -> None:
    words = ("--scale", "ds2", "--most", "4", "--executors", "elastic", "-v")
    command, *_ = shown("--master", "spark://127.0.0.1:7077", *words).splitlines()
    assert command.endswith(
        "run program.py --on spark --verbose --most 4 --scale ds2 --executors elastic"
    )
    text = refused("--master", "spark://127.0.0.1:7077", "--scale", "ds2", "--loss", "0.1")
    assert "scaling loss on Spark: expected 0" in text


def test_a_secret_of_the_environment_is_used_and_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET_VARIABLE, "sesame")
    text = shown(*FAR)
    assert "spark.authenticate=true\n  spark.authenticate.secret=(hidden)" in text
    assert "sesame" not in text


def test_a_secret_of_a_file_is_used_and_hidden(tmp_path: Path) -> None:
    file = tmp_path / "mine.conf"
    file.write_text("spark.authenticate true\nspark.authenticate.secret sesame\n")
    file.chmod(0o600)
    text = shown(*FAR, "--properties", "mine.conf")
    assert "spark.authenticate.secret=(hidden)" in text
    assert "sesame" not in text


def test_a_packed_environment_is_unpacked_beside_the_executors() -> None:
    text = shown("--master", "local[2]", "--pack")
    assert "--archives 'environment.tar.gz#environment'" in text
    assert "spark.pyspark.python=./environment/bin/python" in text


# --- refusals ---------------------------------------------------------------------------------


def test_beyond_this_machine_authentication_is_required() -> None:
    assert "expected authentication, because it is not on this machine" in refused(*FAR)
    assert "spark.authenticate=false" in shown(*FAR, "--insecure")


def test_run_refuses_the_same() -> None:
    with (
        pytest.raises(UsageError, match="expected authentication"),
        started(Spark(master="spark://ant:7077"), "shop", print),
    ):
        pass
    insecure = SparkOptions(master="spark://ant:7077", insecure=True).runtime("spark")
    assert isinstance(insecure, Spark)
    assert settings_for(insecure.master, insecure.config)["spark.authenticate"] == "false"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [*FAR, "--conf", "spark.authenticate.secret=x"],
            "expected in a file, got on the",
        ),
        ([*FAR, "--archive", "no.tar.gz"], "expected one packed environment, got no such file"),
        ([*FAR, "--properties", "no.conf"], "expected a text file, got "),
        (["--master", "yarn"], "--state or --checkpoint: expected a location that all hosts share"),
        (
            ["--master", "yarn", "--deploy-mode", "cluster", "--state", "here"],
            "expected a URI or an absolute path, because the driver runs elsewhere, got here",
        ),
        ([*FAR, "--deploy-mode", "cluster"], "expected YARN or Kubernetes for --deploy-mode"),
        ([*FAR, "--places", "0"], "places: expected at least 1, got 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(arguments: list[str], message: str) -> None:
    assert message in refused(*arguments)


def test_a_file_with_secrets_that_others_can_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.conf").write_text("spark.authenticate.secret=sesame\n")
    (tmp_path / "mine.conf").chmod(0o644)
    text = refused(*FAR, "--properties", "mine.conf")
    assert "expected a file of yours alone" in text
    assert "sesame" not in text


def test_a_master_must_be_named() -> None:
    assert call().exit_code == 2


def test_under_spark_submit_the_master_is_not_ours_to_choose(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not submitted()
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    arguments = ["run", "program.py", "--on", "spark", "--master", "local[2]"]
    done = CliRunner().invoke(app, arguments)
    assert "--master: expected none under spark-submit, got local[2]" in done.stderr


# --- running ----------------------------------------------------------------------------------


def test_settings_are_written_for_their_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        file = write_properties(tmp_path, {"spark.authenticate.secret": "sesame"})
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == "spark.authenticate.secret=sesame\n"


def test_secrets_of_a_session_are_in_a_file_while_it_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    with session._whispered({"spark.authenticate.secret": "sesame"}):
        option, name, *_, last = shlex.split(os.environ["PYSPARK_SUBMIT_ARGS"])
        assert (option, last) == ("--properties-file", "pyspark-shell")
        assert Path(name).read_text() == "spark.authenticate.secret=sesame\n"
    assert not Path(name).exists()
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == "pyspark-shell"


def test_the_exit_code_and_what_is_said_are_passed_on(capfd: pytest.CaptureFixture[str]) -> None:
    script = "echo 'WARNING: Using incubator modules: x' >&2; echo oops >&2; exit 3"
    assert submitting._run(["sh", "-c", script], DeployMode.CLIENT) == 3
    assert capfd.readouterr().err == "oops\n"


def test_the_secret_is_not_in_the_environment_of_what_is_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(SECRET_VARIABLE, "sesame")
    script = f'test -z "${SECRET_VARIABLE}"'
    assert submitting._run(["sh", "-c", script], DeployMode.CLIENT) == 0


CTRL_C = "os.kill(os.getppid(), signal.SIGINT)"


@pytest.mark.parametrize(
    ("mode", "pressing", "code"),
    [
        (DeployMode.CLIENT, CTRL_C, 0),
        (DeployMode.CLIENT, f"while True: {CTRL_C}", 128 + signal.SIGTERM),
        (DeployMode.CLUSTER, f"while True: {CTRL_C}", 128 + signal.SIGTERM),
    ],
)
def test_ctrl_c_is_left_to_the_driver_once(mode: DeployMode, pressing: str, code: int) -> None:
    before = signal.getsignal(signal.SIGINT)
    program = f"import os, signal\n{pressing}"
    assert submitting._run([sys.executable, "-c", program], mode) == code
    assert signal.getsignal(signal.SIGINT) is before


# --- packing ----------------------------------------------------------------------------------


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a small virtual environment, and let it seem to be the one that runs here."""
    root = tmp_path / "small"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root], check=True)  # noqa: S603 (Python)
    site = root / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    for name in ("ours/__init__.py", "pyspark/__init__.py", "ours/__pycache__/x.pyc"):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).touch()
    (site / "_editable_impl_thalweg.pth").write_text("nowhere\n")
    monkeypatch.setattr(sys, "prefix", str(root))
    monkeypatch.setattr(packing.sysconfig, "get_path", lambda _name: str(site))
    return root


@pytest.mark.usefixtures("environment")
def test_a_packed_environment_runs_where_it_is_unpacked(tmp_path: Path) -> None:
    packing.pack(tmp_path / "e.tar.gz")
    with tarfile.open(tmp_path / "e.tar.gz") as archive:
        archive.extractall(tmp_path / "elsewhere", filter="fully_trusted")  # noqa: S202 (made above)
    python = tmp_path / "elsewhere" / "bin" / "python"
    code = "import ours, sys, importlib.util as u; print(sys.prefix, u.find_spec('pyspark'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603 (Python)
    assert done.stdout == f"{tmp_path / 'elsewhere'} None\n", done.stderr
    packed = {path.name for path in (tmp_path / "elsewhere").rglob("site-packages/*")}
    assert packed == {"ours", "thalweg"}


def test_packages_that_are_links_cannot_be_packed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(packing, "_editable", lambda: ["shop", "thalweg"])
    with pytest.raises(UsageError, match=r"expected installed ones, got links to \['shop'\] \("):
        packing.pack(tmp_path / "e.tar.gz")


def test_a_python_that_is_no_virtual_environment_cannot_be_packed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(UsageError, match="expected a virtual environment"):
        packing.pack(tmp_path / "e.tar.gz")
