"""The decisions of the installed libraries, for comparing them with the decisions of the baselines.

The program `openmpi_defaults` asks Open MPI itself: it replaces Open MPI's algorithms to see which one is called. MPICH
contains its selection as tables in JSON, which are read from MPICH's library file.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collwise.common.errors import CollwiseError, UsageError
from collwise.simulator.execution.installations import Installation, mpi_installation
from collwise.simulator.execution.launchers import parameter_options, run_program
from collwise.validation.libraries.baselines import Baseline
from collwise.validation.libraries.mpich_untuned import mpichs_algorithm
from collwise.validation.libraries.openmpi_untuned import BASIC, decided_name

Point = tuple[str, int, int]
"""Collective, P and message size."""

_TIME_LIMIT_SECONDS = 200.0


@dataclass(frozen=True)
class CheckedDecision:
    """A call, the algorithm that the baseline names for it, and the one that the installed library selects."""

    point: Point
    expected: str
    found: str

    @property
    def agrees(self) -> bool:
        """True if the two algorithms are the same."""
        return self.expected == self.found


def installed_library(baseline: Baseline) -> Installation:
    """The installed library of a baseline's version. Raises UsageError if that version is not installed."""
    library, _, version = baseline.name.partition("-")
    found = mpi_installation(library)
    if found.version.split(".")[: len(version.split("."))] != version.split("."):
        raise UsageError(f"{baseline.title} is not installed; {found.label} is")
    return found


def check(baseline: Baseline, points: Sequence[Point]) -> list[CheckedDecision]:
    """Asks the installed library about calls. Raises UsageError if it is not installed, and CollwiseError if it fails.

    Open MPI is not asked about collectives that its component `tuned` does not decide.
    """
    installation = installed_library(baseline)
    if installation.library == "mpich":
        tables = selection_tables(installation)
        return [
            CheckedDecision(point, baseline.decide(*point).algorithm, mpichs_algorithm(tables, *point))
            for point in points
        ]
    asked = [point for point in points if point[0] not in BASIC]
    found = zip(asked, openmpis_algorithms(asked), strict=True)
    return [CheckedDecision(point, decided_name(*point), name) for point, name in found]


def openmpis_algorithms(points: Sequence[Point]) -> list[str]:
    """The algorithms that the installed Open MPI runs for each call, by the catalogue's names."""
    with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
        file = Path(directory, "points")
        file.write_text("".join(f"{collective} {procs} {size}\n" for collective, procs, size in points))
        run = run_program(
            "openmpi",
            "openmpi_defaults",
            2,
            [str(file)],
            timeout_seconds=_TIME_LIMIT_SECONDS,
            launcher_args=parameter_options({"coll": "^han,adapt"}),
        )
    if run.returncode != 0 or len(run.output_lines) != len(points):
        raise CollwiseError(f"Open MPI does not say what it decides: {run.problem}")
    names = tomllib.loads(Path(__file__).with_name("openmpi_functions.toml").read_text(encoding="utf-8"))
    return [_from_function(names, point[0], line) for point, line in zip(points, run.output_lines, strict=True)]


def _from_function(names: Mapping[str, Mapping[str, str]], collective: str, function: str) -> str:
    name = re.sub(rf"^{collective}_(intra_)?", "", function)
    return names.get(collective, {}).get(name) or names["every"].get(name, name)


def selection_tables(installation: Installation) -> Mapping[str, Any]:
    """The tables by which the installed MPICH selects algorithms. Raises CollwiseError if it contains none."""
    program = installation.program("latency")
    loaded = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    match = re.search(r"libmpich\S* => (\S+)", loaded)
    content = Path(match[1]).read_bytes() if match else b""
    for found in re.finditer(rb'\{"collective=', content):
        text = content[found.start() : content.index(b"\0", found.start())].decode()
        if "algorithm=MPIR_" in text:
            tables: Mapping[str, Any] = json.loads(text)
            return tables
    raise CollwiseError(f"no selection tables in the library of {installation.label}")
