"""The paper's machines and libraries in simulation, and their violations beside those that the paper states."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

import collwise
from collwise.common.units import format_size
from collwise.guideline_checks import LibraryGuidelines
from collwise.simulator.sweeps.context import SMPI_SELECTORS, SimulationContext
from collwise.studies.papers.hunold2018.tables import (
    BG_MPI,
    EXPLANATIONS,
    FINDINGS,
    INTEL,
    JUPITER,
    JUQUEEN,
    MVAPICH2,
    OPENMPI,
    VSC_3,
    Finding,
)
from collwise.validation.guidelines.checks import PATTERN
from collwise.validation.library_defaults.baselines import BASELINES

SIZES = (8, 64, 512, 1024, 4096, 10_000, 32768, 98304)
"""Those of the paper, rounded so that they are whole numbers of doubles: it has 1 to 100000 bytes in figure 4."""


@dataclass(frozen=True)
class Setting:
    """A machine with a library and a number of processes, of the paper and of the simulation.

    `stand_in` is what stands for the library: a selector of SMPI, or a baseline whose decisions the engine plays.
    """

    machine: str
    library: str
    stand_in: str
    printed: tuple[int, int]
    simulated: tuple[int, int]
    collectives: tuple[str, ...]
    sizes: tuple[int, ...] = SIZES

    @property
    def title(self) -> str:
        """'Jupiter, Open MPI 2.1.0, 32 x 1'."""
        return f"{self.machine}, {self.library}, {self.printed[0]} x {self.printed[1]}"

    @property
    def engine(self) -> str:
        """The simulator: 'SMPI' or 'schedule engine'."""
        return "SMPI" if self.stand_in in SMPI_SELECTORS else "schedule engine"

    @property
    def simulation(self) -> str:
        """'SMPI's ompi on 16 nodes of 4'."""
        name = f"SMPI's {self.stand_in}" if self.engine == "SMPI" else BASELINES[self.stand_in].title
        return f"{name} on {self.simulated[0]} nodes of {self.simulated[1]}"


_ALL = ("allgather", "allreduce", "alltoall", "bcast", "gather", "reduce", "reduce_scatter_block", "scan", "scatter")
_LONG = (2**18, 2**19, 2**20)
"""Those of section 4.4 in addition."""
_FEW = (16, 4)
# SMPI takes minutes for one of many calls of so many processes: fewer stand for 32 x 16 and 64 x 16. The schedule
# engine takes all of them, for the libraries whose decisions are known.
SETTINGS = (
    Setting(JUPITER, OPENMPI, "ompi", (32, 1), (32, 1), _ALL),
    Setting(JUPITER, MVAPICH2, "mvapich2", (32, 1), (32, 1), _ALL),
    Setting(JUPITER, OPENMPI, "ompi", (32, 16), _FEW, ("reduce", "allreduce")),
    Setting(VSC_3, INTEL, "impi", (64, 16), _FEW, ("gather", "reduce_scatter_block", "allreduce")),
    Setting(JUQUEEN, BG_MPI, "mpich", (64, 16), _FEW, ("allgather", "scatter")),
    Setting(JUPITER, OPENMPI, "openmpi-4.1", (32, 1), (32, 1), _ALL),
    Setting(JUPITER, OPENMPI, "openmpi-4.1", (32, 16), (32, 16), ("reduce", "allreduce"), (*SIZES, *_LONG)),
    Setting(VSC_3, INTEL, "mpich-4", (64, 16), (64, 16), ("gather", "reduce_scatter_block", "allreduce")),
    Setting(JUQUEEN, BG_MPI, "mpich-4", (64, 16), (64, 16), ("allgather", "scatter")),
)
QUICK = SETTINGS[:1]


def checked(setting: Setting, context: SimulationContext) -> LibraryGuidelines:
    """The guidelines of a setting in simulation, before and after repair."""
    nodes, per_node = setting.simulated
    return collwise.guidelines(
        setting.stand_in, setting.collectives, nodes * per_node, setting.sizes, platform=setting.machine,
        ppn=per_node, context=context,
    )  # fmt: skip


def settings_of(finding: Finding) -> tuple[Setting, ...]:
    """The settings that simulate what the paper ran."""
    key = (finding.machine, finding.library, (finding.nodes, finding.per_node))
    return tuple(one for one in SETTINGS if (one.machine, one.library, one.printed) == key)


def compared(found: Mapping[Setting, LibraryGuidelines], findings: Sequence[Finding] = FINDINGS) -> pd.DataFrame:
    """The paper's statements beside each simulation of them, a row each; only of settings that were simulated."""
    rows = [
        _row(finding, setting, found[setting])
        for finding in findings
        for setting in settings_of(finding)
        if setting in found
    ]
    columns = ["where", "library", "processes", "collective", "guidelines", "the paper", "simulated", "engine"]
    return pd.DataFrame(rows, columns=[*columns, "sizes", "violated at", "largest ratio", "agrees"])


def _row(finding: Finding, setting: Setting, simulated: LibraryGuidelines) -> tuple[object, ...]:
    """The finding agrees if half of the checked sizes show it, and the ratio exceeds 1 by half as much as stated."""
    compared = [
        one
        for one in simulated.result.before.comparisons
        if one.kind == PATTERN
        and one.guideline in finding.guidelines
        and finding.least_bytes <= one.call.message_bytes <= finding.most_bytes
    ]
    sizes = {one.call.message_bytes for one in compared}
    violated = sorted({one.call.message_bytes for one in compared if one.violated})
    ratio = max((one.ratio for one in compared), default=math.nan)
    is_found = 2 * len(violated) >= len(sizes) > 0 and ratio - 1 >= ((finding.gain or 1) - 1) / 2
    return (
        finding.where,
        finding.library,
        f"{finding.nodes} x {finding.per_node}",
        finding.collective,
        ", ".join(finding.guidelines),
        finding.words,
        setting.simulation,
        setting.engine,
        len(sizes),
        ", ".join(map(format_size, violated)) or "-",
        f"{ratio:.2f}" if sizes else "-",
        "yes" if is_found else "in part" if violated else "no",
    )


def remarks(compared: pd.DataFrame) -> list[str]:
    """The reasons for findings that a simulation does not show, or shows in part; those without one are open."""
    lacking = compared[compared.agrees != "yes"].drop_duplicates(["where", "collective", "guidelines"])
    return [
        f"{row.where}, {row.collective}, {row.guidelines}: "
        f"{EXPLANATIONS.get((row.where, row.collective, row.guidelines), 'open')}."
        for row in lacking.itertuples()
    ]
