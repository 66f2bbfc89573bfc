"""Packs the Python environment that runs here, for hosts that have nothing but Python and Spark.

``python -m thalweg.runtimes.spark.packing FILE.tar.gz`` does it from a script. What is packed:
Thalweg, what is installed beside it, and the links that make a virtual environment of it. What is
not: Python itself, which each host must have where this one has it, and PySpark, which the cluster
brings in the version that it runs.
"""

from __future__ import annotations

import json
import sys
import sysconfig
import tarfile
from importlib import metadata
from pathlib import Path

from thalweg.errors import UsageError, explain

#: Brought by the cluster, or of no use there.
LEFT_OUT = frozenset({"__pycache__", "pip", "py4j", "pyspark", "setuptools", "wheel"})
#: Native wheels hardly get smaller with more effort, only slower.
_EFFORT = 1


def pack(to: Path) -> None:
    """Write this environment into a ``.tar.gz`` whose ``bin/python`` runs wherever it is unpacked.

    Raises for an environment that would not run elsewhere.
    """
    if sys.prefix == sys.base_prefix:
        hint = "make one with scripts/pack-environment, or use conda-pack for one of conda"
        raise UsageError(explain("this Python", "", "a virtual environment", sys.prefix, hint))
    if names := [name for name in _editable() if name != "thalweg"]:
        hint = "install them without -e, or send their files with --py-files"
        raise UsageError(
            explain("packages to pack", "", "installed ones", f"links to {names}", hint)
        )
    site = Path(sysconfig.get_path("purelib"))
    with tarfile.open(to, "w:gz", compresslevel=_EFFORT) as archive:
        archive.add(Path(sys.prefix) / "pyvenv.cfg", "pyvenv.cfg")
        for link in sorted((Path(sys.prefix) / "bin").glob("python*")):
            archive.add(link, f"bin/{link.name}")
        for folder in {site, Path(sysconfig.get_path("platlib"))}:
            archive.add(folder, _inside(folder), filter=_wanted)
        source = Path(__file__).parents[2]
        if not source.is_relative_to(site):
            archive.add(source, f"{_inside(site)}/thalweg", filter=_wanted)


def _inside(folder: Path) -> str:
    return str(folder.relative_to(sys.prefix))


def _wanted(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    path = Path(member.name)
    project = path.name.partition("-")[0] if path.suffix == ".dist-info" else path.name
    link = path.suffix == ".pth" and "editable" in path.name
    return None if project in LEFT_OUT or link else member


def _editable() -> list[str]:
    """Name the packages that are links to a folder of this machine."""
    found = []
    for package in metadata.distributions():
        text = package.read_text("direct_url.json")
        if text and json.loads(text).get("dir_info", {}).get("editable"):
            found.append(package.metadata["Name"])
    return sorted(found)


if __name__ == "__main__":
    try:
        pack(Path(sys.argv[1]))
    except UsageError as error:
        sys.exit(f"error: {error}")
