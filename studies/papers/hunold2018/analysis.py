"""The paper's machines and libraries in simulation, and their violations compared with the paper's findings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

import collwise
from collwise.algorithms.catalogue import Catalogue
from collwise.common.units import format_size
from collwise.simulator.sweeps.context import SMPI_SELECTORS, SimulationContext
from collwise.simulator.timing import Case
from collwise.studies.papers.published import measured_for, row_of, tables_of
from collwise.validation.guidelines.checks import GUIDELINES, PATTERN, Call, Share, guidelines_of
from collwise.validation.guidelines.library import CaseTimes, Library
from collwise.validation.guidelines.own_algorithms import OwnChecked
from collwise.validation.guidelines.workflow import GuidelinesResult, run
from collwise.validation.libraries.baselines import BASELINES
from collwise.validation.times.choice import Choice
from collwise.validation.times.files import AllTimes

SIZES = (8, 64, 512, 1024, 4096, 10_000, 32768, 98304)
"""The paper's sizes, rounded to whole numbers of doubles. The paper's figure 4 has 1 to 100000 bytes."""
NREP_AT = {"machine": "two processes of one machine", "bed": "8 nodes at 25 Mbit/s, emulated"}
"""The places at which NREP was tried under a real Open MPI."""


@dataclass(frozen=True)
class StatedViolation:
    """A violation that the paper's text states: one of the `guidelines` is violated in a range of message sizes.

    `gain` is the default's time divided by the tuned time, if the text has a number. `explanation` says why simulations
    may not show the violation.
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


FINDINGS = tuple(row_of(StatedViolation, item) for item in tables_of("hunold2018")["findings"])


@dataclass(frozen=True)
class Setting:
    """A machine and a library, with nodes and processes per node as `printed` in the paper and as `simulated`.

    `stand_in` stands for the library: a selector of SMPI, or a baseline whose decisions the schedule engine plays.
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
# SMPI takes minutes for a single call of 32 x 16 or 64 x 16 processes, so it simulates fewer processes. The schedule
# engine simulates all processes, for the libraries whose decisions are known.
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
RECORDED = SETTINGS[5]
"""The setting of figure 4a, by the schedule engine."""
MCA_TUNED = SETTINGS[6]
"""The setting of section 4.4, in which the paper compares mock-ups with all that MCA parameters can choose."""
NEW_SINCE_2_1 = "rabenseifner"
_MCA_SEGMENTS = (0, *(2**k for k in range(10, 18)))
_MIN_LONG_BYTES = 4096
LAUNCHES, NOISE, SEEDS = 10, 0.05, range(5)
"""Launches, the deviation of their medians, and seeds of the draws, to judge a library as if it were measured."""


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
    """The settings that simulate the machine, library and processes of a finding."""
    key = (finding.machine, finding.library, (finding.nodes, finding.per_node))
    return tuple(setting for setting in SETTINGS if (setting.machine, setting.library, setting.printed) == key)


def compared(found: Mapping[Setting, GuidelinesResult], findings: Sequence[StatedViolation] = FINDINGS) -> pd.DataFrame:
    """A row for each statement of the paper and each setting that simulates it, if the setting was simulated."""
    return pd.DataFrame([
        _row(finding, setting, found[setting])
        for finding in findings
        for setting in settings_of(finding)
        if setting in found
    ])  # fmt: skip


def _row(finding: StatedViolation, setting: Setting, simulated: GuidelinesResult) -> dict[str, object]:
    """A row. The simulation agrees if at least half of the sizes are violated, and half of the gain is reached."""
    compared = [
        comparison
        for comparison in simulated.before.comparisons
        if comparison.kind == PATTERN
        and comparison.guideline in finding.guidelines
        and finding.min_bytes <= comparison.call.message_bytes <= finding.max_bytes
    ]
    sizes = {comparison.call.message_bytes for comparison in compared}
    violated = sorted({comparison.call.message_bytes for comparison in compared if comparison.violated})
    ratio = max((comparison.ratio for comparison in compared), default=math.nan)
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
    """The reasons why simulations do not show findings in full. A reason is 'open' if nobody knows it."""
    reasons = {
        (violation.where, violation.collective, ", ".join(violation.guidelines)): violation.explanation
        for violation in FINDINGS
    }
    lacking = compared[compared.agrees != "yes"].drop_duplicates(["where", "collective", "guidelines"])
    places = zip(lacking["where"], lacking.collective, lacking.guidelines, strict=True)
    return [f"{', '.join(place)}: {reasons[place]}." for place in places]


# Section 4.4: figures 5 and 6.


def exhaustive(setting: Setting, collective: str, context: SimulationContext) -> AllTimes:
    """Times of every algorithm of Open MPI 4.1 at every segment size: all that MCA parameters can choose."""
    nodes, per_node = setting.simulated
    entries = Catalogue.load().algorithms(collective)
    names = [entry.name for entry in entries if "4.1" in entry.openmpi and entry.selectable]
    return collwise.simulate(
        setting.machine, collective, nodes * per_node, _long_sizes(setting), algorithms=names, segments=_MCA_SEGMENTS,
        ppn=per_node, context=context,
    )  # fmt: skip


def by_algorithm(times: AllTimes) -> pd.DataFrame:
    """Seconds of each algorithm at its fastest segment size: a row for each message size.

    Rabenseifner's algorithm is called `new`, since Open MPI 2.1 had it neither for reduce nor for allreduce.
    """
    table = times.frame().pivot_table("seconds", "message_bytes", "algorithm", aggfunc="min")
    return table.rename(columns={NEW_SINCE_2_1: f"new: {NEW_SINCE_2_1}"})


def mock_ups(setting: Setting, collective: str, found: GuidelinesResult) -> pd.DataFrame:
    """Seconds of the library's default, and of its mock-ups by guideline: a row for each message size."""
    nodes, per_node = setting.simulated
    calls = {size: Call(collective, nodes * per_node, size) for size in _long_sizes(setting)}
    seconds = {"default": {size: found.own[call].seconds for size, call in calls.items()}}
    for guideline in guidelines_of(collective):
        seconds[f"{guideline.name}: {guideline.label}"] = {
            size: found.mockups[guideline.name, call].seconds for size, call in calls.items()
        }
    return pd.DataFrame(seconds)


def combined(setting: Setting, times: AllTimes, context: SimulationContext) -> OwnChecked:
    """Compares mock-ups whose parts use their fastest algorithms with Open MPI's fastest algorithm (contribution 5)."""
    return collwise.check_decisions(collwise.select(times), setting.machine, [*times], context=context)


def of_fastest_parts(found: OwnChecked) -> pd.DataFrame:
    """Seconds of mock-ups whose parts run by their fastest algorithms: a row for each message size."""
    seconds: dict[str, dict[int, float]] = {}
    for item in found.checked.comparisons:
        if item.guideline in GUIDELINES:
            name = f"{item.guideline}: fastest {GUIDELINES[item.guideline].label}"
            seconds.setdefault(name, {})[item.call.message_bytes] = item.other.seconds
    return pd.DataFrame(seconds).sort_index().sort_index(axis=1)


def _long_sizes(setting: Setting) -> list[int]:
    return [size for size in setting.sizes if size >= _MIN_LONG_BYTES]


# Repairs, judged by times other than those that chose the repairs.


def with_noise(library: Library, seed: int) -> Library:
    """The library as if it were measured: each request for a time draws the medians of LAUNCHES launches anew.

    A launch's median is the exact time multiplied by a factor. The factor's logarithm has the standard deviation NOISE.
    """
    random = np.random.default_rng(seed)

    def drawn(times: CaseTimes) -> CaseTimes:
        return {
            case: replace(launches, medians=tuple(launches.seconds * np.exp(random.normal(0, NOISE, LAUNCHES))))
            if launches.medians
            else launches
            for case, launches in times.items()
        }

    def in_turn(cases: Sequence[Case], rules: str, chosen: Mapping[Case, Choice]) -> tuple[CaseTimes, CaseTimes]:
        default, repaired = library.times_in_turn(cases, rules, chosen)
        return drawn(default), drawn(repaired)

    return replace(library, times=lambda cases: drawn(library.times(cases)), times_in_turn=in_turn, launches=LAUNCHES)


def judged_anew(exact: GuidelinesResult, criterion: Share, seeds: Sequence[int] = SEEDS) -> dict[str, object]:
    """The numbers of violations, repairs and spurious repairs by a criterion, averaged over draws of noise.

    A repair is spurious if its mock-up is not faster than the default according to the times of `exact`.
    """
    plan = replace(exact.plan, criterion=criterion, kinds=(PATTERN,))
    found = [run(with_noise(exact.library, seed), plan) for seed in seeds]
    made = [(guideline.name, call) for result in found for call, guideline in result.repairs.items()]
    spurious = [(name, call) for name, call in made if exact.mockups[name, call].seconds >= exact.own[call].seconds]
    after = [result.tuned.checked.counts()[PATTERN] if result.tuned else 0 for result in found]
    return {
        "criterion": criterion.description,
        "violations": sum(result.before.counts()[PATTERN] for result in found) / len(found),
        "repairs": len(made) / len(found),
        "of them spurious": len(spurious) / len(found),
        "violations after": sum(after) / len(found),
    }


def nrep_choices() -> tuple[pd.DataFrame, dict[str, str]]:
    """Repetitions that NREP chose under a real Open MPI with the errors of their medians, and facts on the measurement.

    A row for each place, standard error of one-byte messages, collective and size. `repetitions` are those of each
    launch; `error` and `worst_error` are the median and the greatest relative error of the launches' medians. The
    reference is the median over launches with many repetitions; in the file, these have a standard error of 0.
    """
    measured, facts = measured_for("hunold2018", "nrep")
    case = ["where", "collective", "message_bytes"]
    many = measured[measured.standard_error == 0].groupby(case).seconds.median()
    chosen = measured[measured.standard_error > 0].join(many.rename("right"), on=case)
    chosen = chosen.assign(error=(chosen.seconds / chosen.right - 1).abs(), where=chosen["where"].map(NREP_AT))
    rows = chosen.groupby(["where", "standard_error", *case[1:]], sort=False)
    found = rows.agg(repetitions=("repetitions", list), error=("error", "median"), worst_error=("error", "max"))
    return found.reset_index(), facts
