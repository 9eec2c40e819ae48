"""Compares the decisions of installed libraries with those of the baselines.

The program `openmpi_defaults` replaces Open MPI's algorithms to see which one is called. MPICH's decisions are read
from tables in its library file.
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
from collwise.validation.libraries.mpich_untuned import BARRIER, BARRIER_WITH_RADIX, mpichs_algorithm
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


def check(baseline: Baseline, points: Sequence[Point]) -> list[CheckedDecision]:
    """Asks the installed library what it would choose at each point.

    Raises UsageError if the library is not installed, and CollwiseError if it fails. Open MPI is not asked about
    collectives that its component `tuned` does not decide.
    """
    library, _, version = baseline.name.partition("-")
    installation = mpi_installation(library)
    if installation.version.split(".")[: len(version.split("."))] != version.split("."):
        raise UsageError(f"{baseline.title} is not installed; {installation.label} is")
    if library == "mpich":
        tables = _selection_tables(installation)
        found = [(point, baseline.decide(*point).algorithm, mpichs_algorithm(tables, *point)) for point in points]
    else:
        asked = [point for point in points if point[0] not in BASIC]
        names = zip(asked, _openmpis_algorithms(asked), strict=True)
        found = [(point, decided_name(*point), name) for point, name in names]
    return [CheckedDecision(*one) for one in found]


def _openmpis_algorithms(points: Sequence[Point]) -> list[str]:
    """The algorithms that the installed Open MPI runs for each call, by the catalogue's names."""
    with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
        file = Path(directory, "points")
        file.write_text("".join(f"{collective} {procs} {size}\n" for collective, procs, size in points))
        words, limit = parameter_options({"coll": "^han,adapt"}), _TIME_LIMIT_SECONDS
        run = run_program("openmpi", "openmpi_defaults", 2, [str(file)], timeout_seconds=limit, launcher_args=words)
    if run.returncode != 0 or len(run.output_lines) != len(points):
        raise CollwiseError(f"Open MPI does not say what it decides: {run.problem}")
    names = tomllib.loads(Path(__file__).with_name("openmpi_functions.toml").read_text(encoding="utf-8"))
    found = []
    for (collective, _, _), function in zip(points, run.output_lines, strict=True):
        name = re.sub(rf"^{collective}_(intra_)?", "", function)
        found.append(names.get(collective, {}).get(name) or names["every"].get(name, name))
    return found


def _selection_tables(installation: Installation) -> Mapping[str, Any]:
    """The tables by which the installed MPICH selects algorithms. Raises CollwiseError if it contains none."""
    program = installation.program("latency")
    loaded = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    match = re.search(r"libmpich\S* => (\S+)", loaded)
    content = Path(match[1]).read_bytes() if match else b""
    for found in re.finditer(rb'\{"collective=', content):
        text = content[found.start() : content.index(b"\0", found.start())].decode()
        if "algorithm=MPIR_" in text:
            text = text.replace(f'"{BARRIER_WITH_RADIX}":{{"k=2":{{}}}}', f'"{BARRIER}":{{}}')
            tables: Mapping[str, Any] = json.loads(text)
            return tables
    raise CollwiseError(f"no selection tables in the library of {installation.label}")
