"""The paper's machines and libraries in simulation, and their violations beside those that the paper states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

import collwise
from collwise.guideline_checks import LibraryGuidelines
from collwise.simulator.sweeps.context import SimulationContext
from collwise.studies.papers.hunold2018.tables import (
    BG_MPI,
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

SIZES = (8, 64, 512, 1024, 4096, 10_000, 32768, 98304)
"""Those of the paper, rounded so that they are whole numbers of doubles: it has 1 to 100000 bytes in figure 4."""


@dataclass(frozen=True)
class Setting:
    """A machine with a library and a number of processes, of the paper and of the simulation.

    `selector` is that of SMPI which stands for the library.
    """

    machine: str
    library: str
    selector: str
    printed: tuple[int, int]
    simulated: tuple[int, int]
    collectives: tuple[str, ...]

    @property
    def title(self) -> str:
        """'Jupiter, Open MPI 2.1.0, 32 x 1'."""
        return f"{self.machine}, {self.library}, {self.printed[0]} x {self.printed[1]}"


_ALL = ("allgather", "allreduce", "alltoall", "bcast", "gather", "reduce", "reduce_scatter_block", "scan", "scatter")
_FEW = (16, 4)
# SMPI takes minutes for one of many calls of so many processes: fewer stand for 32 x 16 and 64 x 16.
SETTINGS = (
    Setting(JUPITER, OPENMPI, "ompi", (32, 1), (32, 1), _ALL),
    Setting(JUPITER, MVAPICH2, "mvapich2", (32, 1), (32, 1), _ALL),
    Setting(JUPITER, OPENMPI, "ompi", (32, 16), _FEW, ("reduce", "allreduce")),
    Setting(VSC_3, INTEL, "impi", (64, 16), _FEW, ("gather", "reduce_scatter_block", "allreduce")),
    Setting(JUQUEEN, BG_MPI, "mpich", (64, 16), _FEW, ("allgather", "scatter")),
)
QUICK = SETTINGS[:1]


def checked(setting: Setting, sizes: Sequence[int], context: SimulationContext) -> LibraryGuidelines:
    """The guidelines of a setting in simulation, before and after repair."""
    nodes, per_node = setting.simulated
    return collwise.guidelines(
        setting.selector, setting.collectives, nodes * per_node, sizes, platform=setting.machine, ppn=per_node,
        context=context,
    )  # fmt: skip


def setting_of(finding: Finding) -> Setting:
    """The setting in which the paper found something."""
    key = (finding.machine, finding.library, (finding.nodes, finding.per_node))
    return next(one for one in SETTINGS if (one.machine, one.library, one.printed) == key)


def compared(found: Mapping[Setting, LibraryGuidelines]) -> pd.DataFrame:
    """What the paper states beside the simulation, a row each; only of settings that were simulated."""
    rows = [_row(finding, found[setting_of(finding)]) for finding in FINDINGS if setting_of(finding) in found]
    columns = ["where", "library", "processes", "collective", "guidelines", "the paper", "violated in simulation at"]
    return pd.DataFrame(rows, columns=[*columns, "largest ratio", "agrees"])


def _row(finding: Finding, simulated: LibraryGuidelines) -> tuple[object, ...]:
    from collwise.common.units import format_size

    mine = [
        one
        for one in simulated.result.before.violations
        if one.kind == PATTERN
        and one.guideline in finding.guidelines
        and finding.least_bytes <= one.call.message_bytes <= finding.most_bytes
    ]
    sizes = ", ".join(dict.fromkeys(format_size(one.call.message_bytes) for one in mine))
    return (
        finding.where,
        finding.library,
        f"{finding.nodes} x {finding.per_node}",
        finding.collective,
        ", ".join(finding.guidelines),
        finding.words,
        sizes or "-",
        f"{max(one.ratio for one in mine):.2f}" if mine else "-",
        bool(mine),
    )
