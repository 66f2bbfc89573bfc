"""What spark-submit is told, what must not be seen, and who is refused without authentication."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import StateError, UsageError
from thalweg.runtimes.spark.deploying import (
    AUTHENTICATE,
    LOOPBACK,
    SECRET,
    DeployMode,
    Submission,
    check_authenticated,
    is_near,
    is_secret,
    masked,
    network_settings,
    properties_text,
    read_properties,
    shown,
    shown_settings,
)
from thalweg.runtimes.spark.starting import Greeting, _check, _no_answer
from thalweg.statelog.location import Location
from thalweg.version import __version__

FAR = "spark://ant:7077"

# --- near and far -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "master", ["local", "local[2]", "spark://localhost:1", "spark://127.0.0.2:1", "spark://[::1]:1"]
)
def test_near_masters_use_loopback_and_need_no_secret(master: str) -> None:
    assert is_near(master)
    assert network_settings(master, "unused") == LOOPBACK
    check_authenticated(master, LOOPBACK, {})


@pytest.mark.parametrize(
    "master",
    [FAR, "spark://10.0.0.1:1", "spark://127.0.0.1:1,ant:1", "yarn", "k8s://https://[::1]"],
)
def test_all_others_are_far(master: str) -> None:
    assert not is_near(master)
    with pytest.raises(UsageError, match=r"expected authentication.* got no spark\.authenticate "):
        check_authenticated(master, {}, {})


def test_a_driver_with_an_address_of_its_own_is_far() -> None:
    with pytest.raises(UsageError, match="expected authentication"):
        check_authenticated("spark://127.0.0.1:1", {"spark.driver.host": "10.0.0.7"}, {})


def test_yarn_and_kubernetes_make_their_own_secret() -> None:
    settings = network_settings("yarn", None)
    assert settings == {AUTHENTICATE: "true"}
    check_authenticated("yarn", settings, {})


def test_a_standalone_cluster_needs_its_secret() -> None:
    with pytest.raises(UsageError, match=r"got no spark\.authenticate\.secret \(put the secret"):
        check_authenticated(FAR, {AUTHENTICATE: "true"}, {})
    check_authenticated(FAR, network_settings(FAR, "x"), {})
    check_authenticated(FAR, {}, {AUTHENTICATE: "true", SECRET: "x"})


def test_only_this_run_can_decide_to_go_without() -> None:
    check_authenticated(FAR, {AUTHENTICATE: "false"}, {})
    with pytest.raises(UsageError, match="expected authentication"):
        check_authenticated(FAR, {}, {AUTHENTICATE: "false"})


def test_a_refusal_does_not_repeat_the_secret() -> None:
    with pytest.raises(UsageError) as caught:
        check_authenticated(FAR, {SECRET: "open sesame"}, {})
    assert "sesame" not in str(caught.value)


# --- secrets ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [SECRET, "spark.ssl.keyPassword", "spark.hadoop.fs.s3a.access.key", "spark.x.oauthToken"],
)
def test_values_of_secret_settings_are_hidden(key: str) -> None:
    assert is_secret(key)
    assert shown_settings({key: "sesame"}) == [f"{key}=(hidden)"]


@pytest.mark.parametrize("key", ["spark.driver.host", "spark.a.oauthTokenFile", AUTHENTICATE])
def test_other_settings_are_shown(key: str) -> None:
    assert shown_settings({key: "x"}) == [f"{key}=x"]


@pytest.mark.parametrize(
    "word",
    ["api_token=sesame", "s3://me:sesame@shop", "s3://shop?secret_key=sesame", "PASSWD=sesame"],
)
def test_secrets_of_a_command_are_hidden(word: str) -> None:
    assert "sesame" not in shown(["--set", word])


def test_plain_words_are_shown_as_they_are() -> None:
    assert masked("posts=50_000") == "posts=50_000"
    assert masked("hdfs://shop/state") == "hdfs://shop/state"


keys = st.from_regex(r"[a-z][a-zA-Z0-9.]{0,20}", fullmatch=True)
values = st.text(st.characters(exclude_categories=["C", "Z"]) | st.sampled_from("\\\n #=:"))


@given(st.dictionaries(keys, values.map(str.strip)))
def test_properties_are_read_as_they_were_written(settings: dict[str, str]) -> None:
    # Spaces and ends of lines at either end are no part of a value, for Spark neither.
    assert read_properties(properties_text(settings)) == settings


# --- the command ------------------------------------------------------------------------------


def command(job: Submission) -> list[str]:
    return job.command("bin/spark-submit", "spark.properties", "run_thalweg.py")


def test_a_driver_that_runs_here_reads_the_file_where_it_is() -> None:
    job = Submission(FAR, Path("jobs/shop.py"), "revenue", ("--places", "4"))
    said = command(job)
    assert said[said.index("run_thalweg.py") :] == [
        *("run_thalweg.py", "run", "jobs/shop.py:revenue", "--on", "spark", "--places", "4")
    ]
    assert "--files" not in said
    assert job.settings("/usr/bin/python", None) == {
        "spark.pyspark.driver.python": "/usr/bin/python"
    }


def test_a_driver_in_the_cluster_gets_the_file_and_uses_the_archive() -> None:
    job = Submission(
        *("yarn", Path("jobs/shop.py"), None, ()),
        mode=DeployMode.CLUSTER,
        archive="e.tar.gz",
        py_files=("a.py", "b.zip"),
    )
    said = command(job)
    options = dict(zip(said[1::2], said[2::2], strict=False))
    assert options["--files"] == "jobs/shop.py"
    assert options["--archives"] == "e.tar.gz#environment"
    assert options["--py-files"] == "a.py,b.zip"
    assert said[-4:] == ["run", "shop.py", "--on", "spark"]
    assert job.settings("/usr/bin/python", None) == {
        AUTHENTICATE: "true",
        "spark.pyspark.python": "./environment/bin/python",
    }


def test_what_is_given_wins_and_settings_stay_off_the_command_line() -> None:
    job = Submission(FAR, Path("shop.py"), given={"spark.pyspark.python": "python9", SECRET: "x"})
    assert job.settings("here", None)["spark.pyspark.python"] == "python9"
    assert not [word for word in command(job) if "python9" in word or SECRET in word]


@pytest.mark.parametrize("master", ["local[2]", FAR])
def test_no_driver_in_a_standalone_cluster(master: str) -> None:
    with pytest.raises(UsageError, match="expected YARN or Kubernetes for --deploy-mode cluster"):
        Submission(master, Path("shop.py"), mode=DeployMode.CLUSTER)


# --- greetings --------------------------------------------------------------------------------

HERE = Location.of("state")
LOST = "Lost task 0.0 in stage 0.0 (TID 3) (ant executor 1): "


def test_a_host_that_sees_the_state_and_has_our_version_is_welcome() -> None:
    _check(Greeting("ant", "3.11.7", __version__, sees=True), HERE)


def test_a_host_that_does_not_see_the_state_is_named() -> None:
    with pytest.raises(StateError, match="on host 'ant': expected what the driver wrote there"):
        _check(Greeting("ant", "3.11.7", __version__, sees=False), HERE)


def test_a_host_with_another_version_is_named() -> None:
    with pytest.raises(UsageError, match=f"on host 'ant': expected version {__version__}, got 0.0"):
        _check(Greeting("ant", "3.11.7", "0.0", sees=True), HERE)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (
            "No module named 'thalweg'",
            r"Python of the workers on host 'ant'.*no module 'thalweg' \(",
        ),
        (
            "No module named 'msgspec'",
            "on host 'ant': expected thalweg and what it needs, got no mo",
        ),
        ("No module named 'thalweg.new'", "thalweg on host 'ant': expected version .* another one"),
        (
            "AttributeError: Can't get attribute '_answer' on <module 'thalweg.runtimes.spark.s'>",
            "thalweg on host 'ant': expected version .* another one, whose code differs",
        ),
        (
            "Python in worker has different version: 3.9 than that in driver: 3.11, PySpark cannot",
            r"workers on host 'ant': expected 3\.\d+ as in the driver, got 3\.9 \(",
        ),
        (
            'IOException: Cannot run program "py9": error=2',
            "on host 'ant': expected a program, got no py9",
        ),
        ("FetchFailedException: x", "first job on host 'ant': expected an answer .* FetchFailed"),
    ],
)
def test_a_host_that_cannot_answer_is_named_with_the_reason(told: str, message: str) -> None:
    for error in (_no_answer(LOST + told, None), _no_answer(told, "ant")):
        with pytest.raises(UsageError, match=message):
            raise error
