"""Tokens, hosts, origins, names, and which files may be run."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import UsageError
from thalweg.server.access import Access, allowed_file, check_name, make_token, read_token
from thalweg.server.life import Refusal

TOKEN = "t" * 43
LOCAL = Access(TOKEN, "127.0.0.1", 7788)
BEARER = f"Bearer {TOKEN}"


def status(access: Access, host: str | None, origin: str | None = None, auth: str | None = BEARER):
    refused = access.refusal(host, origin, auth)
    return None if refused is None else refused.status


def test_a_token_is_made_once_and_is_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "token"
    made = make_token(path)
    assert len(made) >= 43
    assert make_token(path) == made == read_token(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o777])
def test_a_token_that_others_can_read_is_none(tmp_path: Path, mode: int) -> None:
    made = make_token(tmp_path / "token")
    (tmp_path / "token").chmod(mode)
    with pytest.raises(UsageError, match="chmod 600") as refused:
        make_token(tmp_path / "token")
    assert made not in str(refused.value)


def test_an_empty_token_is_none(tmp_path: Path) -> None:
    os.close(os.open(tmp_path / "token", os.O_CREAT | os.O_WRONLY, 0o600))
    with pytest.raises(UsageError, match="a token"):
        make_token(tmp_path / "token")


def test_no_token_is_in_what_people_see() -> None:
    assert TOKEN not in repr(LOCAL)
    assert TOKEN not in str(LOCAL.refusal("127.0.0.1:7788", None, "Bearer nearly" + TOKEN))


@given(st.text())
def test_only_the_token_opens(text: str) -> None:
    assert status(LOCAL, "127.0.0.1:7788", None, text) == 401
    assert status(LOCAL, "127.0.0.1:7788", None, f"Bearer {text}") == (
        None if text.strip() == TOKEN else 401
    )


@pytest.mark.parametrize(
    "host", ["127.0.0.1:7788", "localhost:7788", "LOCALHOST:7788", "[::1]:7788"]
)
def test_names_of_this_machine_are_heard(host: str) -> None:
    assert status(LOCAL, host) is None


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example:7788",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.0.0.1.evil.example:7788",
        "localhost.evil.example:7788",
        "10.0.0.1:7788",
        "localhost:7788@evil.example:80",
    ],
)
def test_another_host_is_not_heard_even_with_the_token(host: str | None) -> None:
    assert status(LOCAL, host) == 421


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104 (as an owner may say)
def test_a_server_for_all_addresses_hears_addresses_and_the_name_of_its_machine(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "VM.lab.example")
    everywhere = Access(TOKEN, host, 7788)
    for name in ("10.0.0.1", "localhost", "vm", "vm.lab.example", "VM"):
        assert status(everywhere, f"{name}:7788") is None
        assert status(everywhere, f"{name}:7789") == 421
    for name in ("evil.example", "lab.example", "vm.evil.example", "vm.lab.example.evil.example"):
        assert status(everywhere, f"{name}:7788") == 421
    assert status(everywhere, "vm:7788", "http://vm:7788") is None
    assert status(everywhere, "vm:7788", "http://evil.example:7788") == 403


def test_who_uses_another_name_is_told_how_to_let_it_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "vm")
    refused = Access(TOKEN, "0.0.0.0", 7788).stranger("other:7788", None)  # noqa: S104 (as above)
    assert "expected an address of this machine or vm, with port 7788" in str(refused)
    assert "--ui-host NAME" in str(refused)


def test_a_server_for_one_address_hears_no_name_of_its_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "vm")
    for host in ("10.0.0.1", "127.0.0.1"):
        assert status(Access(TOKEN, host, 7788), "vm:7788") == 421


def test_a_server_for_one_address_hears_that_one() -> None:
    one = Access(TOKEN, "10.0.0.1", 7788)
    assert status(one, "10.0.0.1:7788") is None
    assert status(one, "10.0.0.2:7788") == 421
    assert status(one, "localhost:7788") == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:7788", ""])
def test_pages_from_elsewhere_are_not_heard(origin: str) -> None:
    assert status(LOCAL, "127.0.0.1:7788", origin) == 403


def test_a_page_of_its_own_is_heard() -> None:
    assert status(LOCAL, "127.0.0.1:7788", "http://localhost:7788") is None


@pytest.mark.parametrize("name", ["shop", "a" * 64, "Shop_2-b", "0"])
def test_plain_names_are_names(name: str) -> None:
    assert check_name(name) == name


@given(st.text(max_size=80))
def test_a_name_is_one_folder(name: str) -> None:
    try:
        check_name(name)
    except Refusal:
        return
    assert Path("root", name).parent == Path("root")
    assert name not in (".", "..")
    assert name.isascii()


def test_a_file_below_an_allowed_folder_may_be_run(tmp_path: Path) -> None:
    (tmp_path / "in/deep").mkdir(parents=True)
    file = tmp_path / "in/deep/shop.py"
    file.touch()
    (tmp_path / "in/link.py").symlink_to(file)
    allowed = [(tmp_path / "in").resolve()]
    assert allowed_file(str(file), allowed) == file.resolve()
    assert allowed_file(str(tmp_path / "in/link.py"), allowed) == file.resolve()
    assert allowed_file(str(tmp_path / "in/deep/../deep/shop.py"), allowed) == file.resolve()


def test_no_way_leads_out(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "inside-out").mkdir()
    outside = tmp_path / "inside-out/shop.py"
    outside.touch()
    (tmp_path / "in/link.py").symlink_to(outside)
    (tmp_path / "in/folder").symlink_to(tmp_path / "inside-out")
    ways = ["in/../inside-out/shop.py", "in/link.py", "in/folder/shop.py", "inside-out/shop.py"]
    for way in ways:
        with pytest.raises(Refusal, match="--allow") as refused:
            allowed_file(str(tmp_path / way), [(tmp_path / "in").resolve()])
        assert refused.value.status == 403


@pytest.mark.parametrize("path", ["in", "in/none.py", "", "in/\0", "in/loop.py"])
def test_what_is_no_file_is_not_run(tmp_path: Path, path: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/loop.py").symlink_to(tmp_path / "in/loop.py")
    with pytest.raises(Refusal):
        allowed_file(f"{tmp_path}/{path}", [(tmp_path / "in").resolve()])


PARTS = st.sampled_from(["in", "out", "a", "b", "..", ".", "shop.py", "to-out", "to-in", "to-file"])


@given(st.lists(PARTS, min_size=1, max_size=6))
def test_whatever_the_path_what_is_run_is_inside(parts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for each in ("in/a", "in/b", "out/a"):
            (folder / each).mkdir(parents=True)
            (folder / each / "shop.py").touch()
        (folder / "in/to-out").symlink_to("../out")
        (folder / "out/to-in").symlink_to(folder / "in")
        (folder / "in/to-file").symlink_to("a/../../out/a/shop.py")
        try:
            found = allowed_file(str(folder.joinpath(*parts)), [folder / "in"])
        except Refusal:
            return
        assert found.is_relative_to(folder / "in")
        assert found == found.resolve(strict=True)
        assert found.is_file()
