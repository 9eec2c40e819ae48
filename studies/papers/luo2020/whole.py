"""Whole collectives as in figures 10, 12, 13 and 14 of Luo et al. 2020: hierarchical ones against flat ones.

The schedule engine times everything at every size. SMPI times the choices that the schedule engine found best where
their messages are not too many, and its own selectors on fewer nodes: when a communicator is first used, most of them
have every process look for the leaders of all, which takes minutes from 400 processes on.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from collwise.algorithms.catalogue import Catalogue
from collwise.common.units import format_size
from collwise.platforms import HostPlatform, load, placed
from collwise.platforms.placement import CYCLIC
from collwise.simulator.sweeps.context import SCHEDULE, SMPI, SimulationContext, smpi_selecting
from collwise.simulator.sweeps.smpi_runner import cost_of
from collwise.simulator.timing import Case
from collwise.studies.papers.luo2020.tables import (
    CRAY,
    INTEL,
    KIB,
    LARGE,
    LARGEST_BYTES,
    MIB,
    MVAPICH2,
    OPENMPI,
    SMALL,
    SMALL_BYTES,
    SPEED_UPS,
)
from collwise.validation.library_defaults.baselines import BASELINES, Baseline
from collwise.validation.openmpi.builtin_decisions import decide, decide_allreduce
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import ChoicesAt, builtin_cases, candidates, cases


@dataclass(frozen=True)
class Machine:
    """A machine of the paper, the processes of its figures, one per core, and the message sizes here."""

    name: str
    title: str
    procs: int
    per_node: int
    sizes: tuple[int, ...] = ()


QUICK_SIZES = (4, 2 * KIB, SMALL_BYTES, 8 * MIB, LARGEST_BYTES)
SIZES = (*(4 * 8**k for k in range(9)), LARGEST_BYTES)
"""Message sizes from 4 B to 128 MiB; 128 KiB, the last small one, is among them."""
SHAHEEN = Machine("shaheen-ii", "Shaheen II", 4096, 32, QUICK_SIZES)
STAMPEDE2 = Machine("stampede2", "Stampede2", 1536, 48, SIZES)
FEW_NODES = {
    SHAHEEN: Machine("shaheen-ii", "4 nodes of Shaheen II", 64, 16),
    STAMPEDE2: Machine("stampede2", "4 nodes of Stampede2", 64, 16),
}
"""Parts of the machines that SMPI's selectors reach; each has a power of two of processes, which some of them need."""
FIGURES = {
    10: (SHAHEEN, "bcast"),
    12: (STAMPEDE2, "bcast"),
    13: (SHAHEEN, "allreduce"),
    14: (STAMPEDE2, "allreduce"),
}

SEGMENTS = (8 * KIB, 64 * KIB, 512 * KIB)
LEADERS = (4,)
"""How many processes of each node drive the network, in the algorithms that let several do so."""
SEARCHED_SIZES = {"bcast": "4B:128MiB:x2", "allreduce": "4B:32MiB:x2"}
SEARCHED = {"segments": "32KiB:2MiB:x4", "pieces": "0,32KiB"}
"""The message sizes, segment sizes and pieces of the searches."""

# What SMPI is asked for: cases of so many messages, 8 for each process among them, and the largest message.
_SMPI_MESSAGES = 20_000
_SMPI_LARGEST_BYTES = 8 * MIB
# More segments than that hardly ever help, and the engine would take minutes for them.
_MOST_SEGMENTS = 256
# Around a ring every process sends P - 1 blocks, millions of messages: it is left out where blocks are so short that
# the latencies alone take longer than any tree. Blocks of a ring have 85 KiB at most here: they are not cut.
_RINGS = {"scatter_ring_allgather", "ring"}
_LEAST_BLOCK_BYTES = 256
# A library may choose such a ring all the same. One of 4096 processes takes the engine a minute, and is left out, too.
_MOST_BLOCKS = 10_000_000
# MPI's own non-blocking collectives, which tasks_library uses, cannot be recorded; tasks_ring sends each segment around
# a ring of its own, more messages than all others together.
_LEFT_OUT = {"segmented_ring", "tasks_library", "tasks_ring"}

HIERARCHICAL, FLAT, DEFAULT = "best hierarchical", "best flat", f"{OPENMPI}'s decision"
DECISIONS = {f"{BASELINES[name].title}'s decision": BASELINES[name] for name in ("openmpi-4.1", "mpich-4")}
"""What newer libraries decide untuned for one process on each node; the paper's are not known to the engine."""
DECISION_OF = {OPENMPI: DEFAULT, CRAY: "MPICH 4's decision"}
SELECTOR_OF = {INTEL: "impi", MVAPICH2: "mvapich2"}
"""The decision or the selector of SMPI that stands for a library of the paper."""


@dataclass(frozen=True)
class Whole:
    """One figure: seconds by size and source, of the schedule engine and of SMPI, and the engine's `choices`.

    The sources of `smpi` are those of `seconds`, with the same choices, and SMPI's selectors; nan where SMPI was not
    asked or failed. `failures` are the reasons, by selector and size.
    """

    machine: Machine
    collective: str
    seconds: pd.DataFrame
    choices: pd.DataFrame
    smpi: pd.DataFrame
    failures: Mapping[str, str]

    def speed_ups(self, smpi: bool = False) -> pd.DataFrame:
        """The speed-up of the best hierarchical choice over every other source, by size, all by the same engine."""
        seconds = self.smpi if smpi else self.seconds
        return seconds.drop(columns=HIERARCHICAL).div(seconds[HIERARCHICAL], axis=0)


def choices_at(collective: str, by_node: bool, procs: int, message_bytes: int) -> list[Choice]:
    """The hierarchical or the flat choices that compete at a point."""
    entries = [one for one in Catalogue.load().algorithms(collective) if one.name not in _LEFT_OUT]
    names = [one.name for one in entries if (one.by_node if by_node else one.selectable)]
    if _has_short_blocks(procs, message_bytes):
        names = [name for name in names if name not in _RINGS]
    segments = [0, *(one for one in SEGMENTS if one < message_bytes <= _MOST_SEGMENTS * one)]
    led = [name for name in names if Catalogue.load().algorithm(collective, name).count_parameter == "leaders"]
    found = candidates(collective, segments, [name for name in names if name not in led])
    many = [candidates(collective, segments, led, {"leaders": [count]}) for count in LEADERS if led]
    return [*found, *itertools.chain.from_iterable(many)]


def _has_short_blocks(procs: int, message_bytes: int) -> bool:
    return message_bytes < procs * _LEAST_BLOCK_BYTES


def _is_played(case: Case) -> bool:
    """Whether the engine plays a case: not long rings of short blocks."""
    long = case.algorithm in _RINGS and case.procs**2 > _MOST_BLOCKS
    return not (long and _has_short_blocks(case.procs, case.message_bytes))


def _label(case: Case) -> str:
    """'chain, 8 KiB', 'multi_leader_chain, 8 KiB, 2 leaders'."""
    label = Choice(case.algorithm, case.segment_bytes).label
    return f"{label}, {case.fanout} leaders" if case.algorithm.startswith("multi_leader") else label


def default_choice(collective: str, procs: int, message_bytes: int) -> Choice:
    """What Open MPI 4.0 decides untuned; its broadcast decision is that of 3.1."""
    if collective == "allreduce":
        return decide_allreduce(procs, message_bytes)
    return decide(collective, procs, message_bytes)


def _decided(collective: str, baseline: Baseline, procs: int, message_bytes: int) -> list[Choice]:
    """The choice of a library; none if the catalogue does not have its algorithm."""
    choice = baseline.choice(collective, procs, message_bytes)
    return [choice] if choice is not None else []


def simulate_whole(
    machine: Machine,
    collective: str,
    sizes: Sequence[int],
    context: SimulationContext,
    selectors: Sequence[str] = (),
    smpi_sizes: Sequence[int] = QUICK_SIZES,
) -> Whole:
    """Times a collective on a machine by both engines, in SMPI at some sizes, and there by these of its selectors, too.

    Raises CollwiseError when a case of the schedule engine fails.
    """
    sources: dict[str, ChoicesAt] = {
        HIERARCHICAL: partial(choices_at, collective, True),
        FLAT: partial(choices_at, collective, False),
        DEFAULT: lambda procs, size: [default_choice(collective, procs, size)],
        **{name: partial(_decided, collective, baseline) for name, baseline in DECISIONS.items()},
    }
    platform, label = load(machine.name), f"{machine.title}: {collective}"
    best, seconds = _fastest(platform, machine.procs, machine.per_node, sizes, sources, context, collective, label)
    asked = [(SMPI, {(source, size): case for source in sources for size, case in best[source].dropna().items()})]
    for name in selectors:
        own = builtin_cases(collective, [machine.procs], sizes, machine.per_node)
        asked.append((smpi_selecting(collective, name), {(name, case.message_bytes): case for case in own}))
    by_smpi = pd.DataFrame(np.nan, list(sizes), [*sources, *selectors])
    failures: dict[str, str] = {}
    for engine, by_place in asked:
        reached = {
            place: case
            for place, case in by_place.items()
            if cost_of(case) <= _SMPI_MESSAGES
            and case.message_bytes <= _SMPI_LARGEST_BYTES
            and case.message_bytes in smpi_sizes
        }
        smpi = replace(context, engine=engine).simulate(platform, list(reached.values()), f"{label}, SMPI")
        for (source, size), case in reached.items():
            by_smpi.loc[size, source] = smpi.timings[case].seconds
            if not smpi.timings[case].ok:
                failures[f"{source}, {format_size(size)}"] = smpi.timings[case].error
    labels = best.map(_label, na_action="ignore").fillna("")
    return Whole(machine, collective, seconds, labels, by_smpi, failures)


def _fastest(
    platform: HostPlatform,
    procs: int,
    per_node: int,
    sizes: Sequence[int],
    sources: Mapping[str, ChoicesAt],
    context: SimulationContext,
    collective: str = "bcast",
    label: str = "",
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The case of the fastest choice and its seconds by the schedule engine, by size and source; nan without a case.

    Raises CollwiseError when a case fails.
    """
    wanted = {
        source: {
            size: [case for case in cases(collective, at, [procs], [size], per_node) if _is_played(case)]
            for size in sizes
        }
        for source, at in sources.items()
    }
    every = list(dict.fromkeys(case for by_size in wanted.values() for found in by_size.values() for case in found))
    timings = replace(context, engine=SCHEDULE).simulate(platform, every, label).complete().timings
    best = {
        source: {size: min(found, key=lambda case: timings[case].seconds) for size, found in by_size.items() if found}
        for source, by_size in wanted.items()
    }
    found = pd.DataFrame(best, list(sizes), list(sources))
    return found, found.map(lambda case: timings[case].seconds, na_action="ignore").astype(float)


# What the parts cost.


def parts(machine: Machine, sizes: Sequence[int], context: SimulationContext) -> pd.DataFrame:
    """Seconds of the best flat broadcast among the leaders alone and among the processes of one node alone, by size.

    One needs the network only, the other the node's memory only.
    """
    nodes = machine.procs // machine.per_node
    platform, flat = load(machine.name), partial(choices_at, "bcast", False)
    between = _fastest(platform, nodes, 1, sizes, {"between nodes alone": flat}, context)
    within = _fastest(platform, machine.per_node, machine.per_node, sizes, {"within a node alone": flat}, context)
    return pd.concat([between[1], within[1]], axis=1)


def cyclic(machine: Machine, sizes: Sequence[int], context: SimulationContext) -> pd.DataFrame:
    """Seconds of the best hierarchical and the best flat broadcast if ranks are placed cyclically, by size."""
    platform = placed(load(machine.name), CYCLIC)
    sources = {HIERARCHICAL: partial(choices_at, "bcast", True), FLAT: partial(choices_at, "bcast", False)}
    return _fastest(platform, machine.procs, machine.per_node, sizes, sources, context)[1]


def messages(machine: Machine, sizes: Sequence[int], context: SimulationContext) -> pd.Series:
    """Seconds of one message between two nodes, by size."""
    sources: dict[str, ChoicesAt] = {"": lambda procs, size: [Choice("linear")]}
    return _fastest(load(machine.name), 2, 1, sizes, sources, context)[1][""]


# Beside what the paper says.


def compared(whole: Mapping[int, Whole], few: Mapping[int, Whole]) -> pd.DataFrame:
    """The speed-ups that the paper states beside simulated ones, a row each.

    Over Open MPI 4.0.0 and Cray MPI on the whole machine, by decisions and the schedule engine, MPICH 4's for Cray MPI,
    which descends from MPICH; over the others on few nodes, by SMPI with the selector that stands for the library.
    """
    rows = []
    for stated in SPEED_UPS:
        one = (whole if stated.over in DECISION_OF else few)[stated.figure]
        if stated.over in DECISION_OF:
            ratios = one.speed_ups()[DECISION_OF[stated.over]]
        else:
            ratios = one.speed_ups(smpi=True)[SELECTOR_OF[stated.over]]
        ours = ratios[(ratios.index <= SMALL_BYTES) == (stated.sizes == SMALL)].dropna()
        shown = f"{ours.min():.2f} to {ours.max():.2f}" if len(ours) else "not simulated"
        rows.append(
            (
                *(stated.figure, stated.machine, stated.collective, stated.sizes, stated.over, stated.words, shown),
                "" if not len(ours) else format_size(int(ours.idxmax())),
            )
        )
    columns = ["figure", "machine", "collective", "messages", "HAN over", "the paper", "simulated", "greatest at"]
    return pd.DataFrame(rows, columns=columns)


def by_range(speed_ups: pd.Series) -> dict[str, dict[str, float]]:
    """The least and greatest speed-up, and its geometric mean, among small and among large messages.

    Nothing where no speed-up is known.
    """
    ranges = {SMALL: speed_ups.index <= SMALL_BYTES, LARGE: speed_ups.index > SMALL_BYTES}
    return {
        name: {"least": float(of.min()), "mean": float(np.exp(np.log(of).mean())), "greatest": float(of.max())}
        if len(of)
        else {}
        for name, chosen in ranges.items()
        for of in (speed_ups[chosen].dropna(),)
    }
