"""WordCount on Apache Storm's LocalCluster and on Thalweg, in turn, on the same machine.

    python bench/peers/storm/compare.py --json FILE

Needs Java 17 and Maven, which gets Storm and what it needs. See README.md beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from thalweg.bench.measuring import apart, environment
from thalweg.workloads.stormmc.vocabulary import sentences
from thalweg.workloads.stormmc.words import SENTENCES

HERE = Path(__file__).parent
BUILD = HERE / "build"
#: Storm with its default of one tuple per batch between executors, and with large batches.
STORM = {
    "storm": ("false", "1"),
    "storm, batches of 1000": ("false", "1000"),
    "storm, acked": ("true", "1"),
}
OURS = {
    "thalweg": "wordcount",
    "thalweg, acked": "wordcount_acked",
    "thalweg, blocks": "wordcount_blocks",
}


def build() -> Path:
    """Compile, and bring all jars here; give the file of sentences."""
    folder = f"-Dbuild.folder={BUILD / 'target'}"
    goals = ["compile", "dependency:copy-dependencies", f"-DoutputDirectory={BUILD / 'lib'}"]
    subprocess.run(["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), folder, *goals], check=True)  # noqa: S603, S607 (Maven)
    path = BUILD / "sentences.txt"
    path.write_text("\n".join(sentences(SENTENCES)) + "\n", encoding="utf-8")
    return path


def storm(name: str, path: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    """Run Storm once."""
    acking, batch = STORM[name]
    jars = f"{BUILD / 'target' / 'classes'}:{BUILD / 'lib'}/*"
    times = [str(chosen.warm), str(chosen.seconds)]
    arguments = [str(path), str(chosen.degree), *times, acking, batch]
    command = ["java", "-Xmx4g", "-cp", jars, "peers.WordCount", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 (Java)
    found = next(line for line in done.stdout.splitlines() if line.startswith('{"sentences"'))
    result: dict[str, Any] = json.loads(found)
    return result


def ours(name: str, chosen: argparse.Namespace) -> dict[str, Any]:
    """Run Thalweg once."""
    times = (str(chosen.warm), str(chosen.seconds))
    return apart("thalweg.bench.storm_mc", OURS[name], str(chosen.degree), "-", *times)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--degree", type=int, default=1, help="tasks of each component")
    parser.add_argument("--seconds", type=float, default=20, help="seconds that are measured")
    parser.add_argument("--warm", type=float, default=15, help="seconds before that")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, help="a file for all figures")
    return parser.parse_args()


def main() -> None:
    """Measure all in turn, and print words per second, best and median."""
    chosen = arguments()
    path = build()
    turns: dict[str, list[dict[str, Any]]] = {name: [] for name in (*STORM, *OURS)}
    for turn in range(chosen.repeat):
        for name, found in turns.items():
            load = os.getloadavg()[0]
            seen = storm(name, path, chosen) if name in STORM else ours(name, chosen)
            found.append(seen | {"load_before": load})
            text = f"{seen['per_second']:,.0f} words/s, {seen['cpu']:.2f} cores, load {load:.1f}"
            sys.stderr.write(f"{turn + 1}/{chosen.repeat} {name}: {text}\n")
    rates = {name: [each["per_second"] for each in found] for name, found in turns.items()}
    summary = {
        name: {"best": max(each), "median": statistics.median(each)} for name, each in rates.items()
    }
    for name, each in summary.items():
        against = " ".join(f"{each[kind] / summary['storm'][kind]:5.2f}" for kind in each)
        line = f"{name:24} {each['best']:12,.0f} {each['median']:12,.0f}   {against} of storm\n"
        sys.stdout.write(line)
    if chosen.json:
        whole = {"environment": environment() | {"degree": chosen.degree}, "results": turns}
        chosen.json.write_text(json.dumps(whole | {"summary": summary}, indent=2) + "\n")


if __name__ == "__main__":
    main()
