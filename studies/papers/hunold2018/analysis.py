"""The paper's machines and libraries in simulation, and their violations beside those that the paper states."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

import collwise
from collwise.common.units import format_size
from collwise.simulator.sweeps.context import SMPI_SELECTORS, SimulationContext
from collwise.studies.papers.published import row_of, tables_of
from collwise.validation.guidelines.checks import PATTERN
from collwise.validation.guidelines.workflow import GuidelinesResult
from collwise.validation.libraries.baselines import BASELINES

SIZES = (8, 64, 512, 1024, 4096, 10_000, 32768, 98304)
"""The paper's sizes, rounded so that they are whole numbers of doubles. It has 1 to 100000 bytes in figure 4."""


@dataclass(frozen=True)
class StatedViolation:
    """A violation that the text states: the guidelines, any of which may be the one, and the message sizes.

    `gain` is the default's time over the tuned one's, where the text has a number; `explanation` says why simulations
    may not show it.
    """

    where: str
    machine: str
    library: str
    nodes: int
    per_node: int
    collective: str
    guidelines: tuple[str, ...]
    min_bytes: int
    max_bytes: int
    words: str
    gain: float | None = None
    explanation: str = "open"


FINDINGS = tuple(row_of(StatedViolation, one) for one in tables_of("hunold2018")["findings"])


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
"""The additional sizes of section 4.4."""
_FEW = (16, 4)
_OPENMPI, _MVAPICH2 = ("jupiter", "Open MPI 2.1.0"), ("jupiter", "MVAPICH2-2.2")
_INTEL, _BG_MPI = ("vsc-3", "Intel MPI 2017 (Update 2)"), ("juqueen", "IBM BG MPI")
# SMPI takes minutes for one of many calls of so many processes: fewer stand for 32 x 16 and 64 x 16. The schedule
# engine takes all of them, for the libraries whose decisions are known.
SETTINGS = (
    Setting(*_OPENMPI, "ompi", (32, 1), (32, 1), _ALL),
    Setting(*_MVAPICH2, "mvapich2", (32, 1), (32, 1), _ALL),
    Setting(*_OPENMPI, "ompi", (32, 16), _FEW, ("reduce", "allreduce")),
    Setting(*_INTEL, "impi", (64, 16), _FEW, ("gather", "reduce_scatter_block", "allreduce")),
    Setting(*_BG_MPI, "mpich", (64, 16), _FEW, ("allgather", "scatter")),
    Setting(*_OPENMPI, "openmpi-4.1", (32, 1), (32, 1), _ALL),
    Setting(*_OPENMPI, "openmpi-4.1", (32, 16), (32, 16), ("reduce", "allreduce"), (*SIZES, *_LONG)),
    Setting(*_INTEL, "mpich-4", (64, 16), (64, 16), ("gather", "reduce_scatter_block", "allreduce")),
    Setting(*_BG_MPI, "mpich-4", (64, 16), (64, 16), ("allgather", "scatter")),
)
QUICK = SETTINGS[:1]


def checked(setting: Setting, context: SimulationContext) -> GuidelinesResult:
    """The guidelines of a setting in simulation, before and after repair."""
    nodes, per_node = setting.simulated
    found = collwise.guidelines(
        setting.machine, setting.stand_in, setting.collectives, nodes * per_node, setting.sizes,
        ppn=per_node, context=context,
    )  # fmt: skip
    if found.problem is not None:
        raise found.problem
    [one] = found.values()
    return one


def settings_of(finding: StatedViolation) -> tuple[Setting, ...]:
    """The settings that simulate what the paper ran."""
    key = (finding.machine, finding.library, (finding.nodes, finding.per_node))
    return tuple(one for one in SETTINGS if (one.machine, one.library, one.printed) == key)


def compared(found: Mapping[Setting, GuidelinesResult], findings: Sequence[StatedViolation] = FINDINGS) -> pd.DataFrame:
    """The paper's statements beside each simulation of them, a row each; only of settings that were simulated."""
    return pd.DataFrame([
        _row(finding, setting, found[setting])
        for finding in findings
        for setting in settings_of(finding)
        if setting in found
    ])  # fmt: skip


def _row(finding: StatedViolation, setting: Setting, simulated: GuidelinesResult) -> dict[str, object]:
    """A row of the table, which says if the finding agrees. Half of the checked sizes must show it, and the ratio
    exceed 1 by half as much as stated.
    """
    compared = [
        one
        for one in simulated.before.comparisons
        if one.kind == PATTERN
        and one.guideline in finding.guidelines
        and finding.min_bytes <= one.call.message_bytes <= finding.max_bytes
    ]
    sizes = {one.call.message_bytes for one in compared}
    violated = sorted({one.call.message_bytes for one in compared if one.violated})
    ratio = max((one.ratio for one in compared), default=math.nan)
    is_found = 2 * len(violated) >= len(sizes) > 0 and ratio - 1 >= ((finding.gain or 1) - 1) / 2
    return {
        "where": finding.where,
        "library": finding.library,
        "processes": f"{finding.nodes} x {finding.per_node}",
        "collective": finding.collective,
        "guidelines": ", ".join(finding.guidelines),
        "the paper": finding.words,
        "simulated": setting.simulation,
        "engine": setting.engine,
        "sizes": len(sizes),
        "violated at": ", ".join(map(format_size, violated)) or "-",
        "largest ratio": f"{ratio:.2f}" if sizes else "-",
        "agrees": "yes" if is_found else "in part" if violated else "no",
    }


def remarks(compared: pd.DataFrame) -> list[str]:
    """The reasons for findings that a simulation does not show, or shows in part; those without one are open."""
    reasons = {(one.where, one.collective, ", ".join(one.guidelines)): one.explanation for one in FINDINGS}
    lacking = compared[compared.agrees != "yes"].drop_duplicates(["where", "collective", "guidelines"])
    places = zip(lacking["where"], lacking.collective, lacking.guidelines, strict=True)
    return [f"{', '.join(place)}: {reasons[place]}." for place in places]
