"""Which folder is the project of a topology: never one that somebody else may have put there."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from thalweg.errors import UsageError
from thalweg.storm.bounds import Bounds
from thalweg.storm.projects import Project

STREAMPARSE = json.dumps({"topology_specs": "topologies/", "envs": {"prod": {}}})


def laid_out(folder: Path, config: str | None = STREAMPARSE) -> Path:
    """Make a project, and give the file of its topology."""
    (folder / "src").mkdir(parents=True)
    (folder / "topologies").mkdir()
    if config is not None:
        (folder / "config.json").write_text(config)
    file = folder / "topologies/words.py"
    file.write_text("")
    return file


def test_the_project_is_the_folder_with_the_configuration_of_streamparse(tmp_path: Path) -> None:
    project = Project.around(laid_out(tmp_path))
    assert (project.root, project.modules) == (tmp_path, tmp_path / "src")
    assert project.programs == tmp_path / "src"
    (tmp_path / "resources").mkdir()
    assert project.programs == tmp_path / "resources"


@pytest.mark.parametrize("config", [None, "{}", "[]", '{"name": "somebody else\'s"}'])
def test_a_folder_above_is_no_project_because_it_has_src(
    tmp_path: Path, config: str | None
) -> None:
    file = laid_out(tmp_path, config)
    project = Project.around(file)
    assert project.root == project.modules == project.programs == file.parent


def test_src_beside_the_topology_has_its_modules(tmp_path: Path) -> None:
    laid_out(tmp_path, None)
    file = tmp_path / "topology.yaml"
    file.write_text("")
    assert Project.around(file).modules == tmp_path / "src"


def test_what_lies_outside_of_the_folders_that_are_allowed_is_not_looked_at(
    tmp_path: Path,
) -> None:
    file = laid_out(tmp_path, "no JSON, and nobody reads it")
    project = Project.around(file, Bounds.around(file, [file.parent]))
    assert project.root == project.modules == file.parent
    with pytest.raises(UsageError, match="streamparse's configuration"):
        Project.around(file, Bounds.around(file, [tmp_path]))


def test_a_link_out_of_the_folders_that_are_allowed_is_not_followed(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    file = laid_out(inside)
    outside.mkdir()
    (inside / "resources").symlink_to(outside)
    assert Project.around(file, Bounds.around(file, [inside])).programs == inside / "src"
    assert Project.around(file, Bounds.around(file, [tmp_path])).programs == inside / "resources"


def test_what_belongs_to_somebody_else_is_no_project(tmp_path: Path) -> None:
    file, others = laid_out(tmp_path), Bounds(frozenset([os.getuid() + 1]))
    assert Project.around(file, others).root == file.parent
    beside = tmp_path / "beside.py"
    assert Project.around(beside, others).modules == tmp_path


def test_an_environment_is_one_of_the_configuration_or_of_a_degree(tmp_path: Path) -> None:
    project = Project.around(laid_out(tmp_path))
    for name in (None, "prod", "beta"):
        project.check_environment(name, [1, {"beta": 2}])
    with pytest.raises(UsageError, match=r"'prodd': .* \['prod'\] \(did you mean 'prod'\?\)"):
        project.check_environment("prodd", [1])
    nothing = Project(tmp_path)
    nothing.check_environment(None, [])
    with pytest.raises(UsageError, match=r"'prod': expected none .*neither envs of config\.json"):
        nothing.check_environment("prod", [1])


def test_the_serializer_of_an_environment_counts_more_than_that_of_the_project(
    tmp_path: Path,
) -> None:
    environments = {"short": {"serializer": "msgpack"}, "long": {}}
    told = {"envs": environments, "serializer": "json"}
    project = Project.around(laid_out(tmp_path, json.dumps(told)))
    named = {name: project.hosting(name).serializer for name in ("short", "long", None)}
    assert named == {"short": "msgpack", "long": "json", None: "json"}
    assert project.hosting("short", "json").serializer == "json"  # as the command says
