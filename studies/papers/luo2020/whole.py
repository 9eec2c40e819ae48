"""Whole collectives as in figures 10, 12, 13 and 14 of Luo et al. 2020: hierarchical ones against flat ones.

The schedule engine times everything at every size. SMPI times the choices that the schedule engine found best, unless
they send too many messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from collwise.algorithms.catalogue import Catalogue
from collwise.common.units import format_seconds, format_size, parse_size
from collwise.platforms import HostPlatform, load, placed
from collwise.platforms.hosts import CYCLIC
from collwise.simulator.bench import Simulated
from collwise.simulator.sweeps.context import SCHEDULE, SMPI, SimulationContext
from collwise.simulator.sweeps.smpi_runner import cost_of
from collwise.studies.figures.style import head, label_lines, seconds_axis, size_axis
from collwise.studies.papers.figures import in_order, panels
from collwise.studies.papers.published import tables_of
from collwise.validation.hierarchy.space import BETWEEN, PREFIX, WITHIN, Space, outputs
from collwise.validation.hierarchy.tuning import search
from collwise.validation.libraries.baselines import BASELINES
from collwise.validation.libraries.openmpi_3 import decide, decide_allreduce
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid, candidates, case_of
from collwise.validation.times.sources import simulate
from collwise.validation.times.times import Times

KIB, MIB = 2**10, 2**20
SMALL, LARGE = "small", "large"
SMALL_BYTES, LARGEST_BYTES = 128 * KIB, 128 * MIB
"""Section IV-A: small messages are those up to 128 KB, large ones up to 128 MB."""
OPENMPI, CRAY, INTEL, MVAPICH2 = "Open MPI 4.0.0", "Cray MPI 7.7.0", "Intel MPI 18.0.2", "MVAPICH2 2.3.1"
ChoicesAt = Callable[[int, int], Iterable[Choice]]
"""Returns the choices for a P and a message size."""

PUBLISHED = tables_of("luo2020")
MEASURED = tables_of("luo2020", "measured")
"""Times under a real Open MPI on a test bed."""
MEASURED_ON = (4, 2)
"""The test bed's nodes and the processes on each."""


SPEED_UPS = pd.DataFrame(PUBLISHED["speed_ups"])
"""The greatest speed-ups of HAN over each library for small or large messages (section IV-A), a row each."""


@dataclass(frozen=True)
class Machine:
    """A machine of the paper, with the processes of the paper's figures (one per core) and our message sizes."""

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
FIGURES = {
    10: (SHAHEEN, "bcast"),
    12: (STAMPEDE2, "bcast"),
    13: (SHAHEEN, "allreduce"),
    14: (STAMPEDE2, "allreduce"),
}

COLLECTIVES = ("bcast", "allreduce")
SEGMENTS = (8 * KIB, 64 * KIB, 512 * KIB)
LEADERS = {"leaders": (4,)}
"""The number of processes of each node that use the network, in algorithms that allow several."""
SEARCHED_SIZES = {"bcast": "4B:128MiB:x2", "allreduce": "4B:32MiB:x2"}
SEARCHED = {"segments": "32KiB:2MiB:x4", "pieces": "0,32KiB"}
"""The message sizes, segment sizes and pieces of the searches."""

# SMPI times cases of at most this cost (`cost_of`), and messages of at most this size.
_SMPI_MESSAGES = 20_000
_SMPI_LARGEST_BYTES = 8 * MIB
# More segments than this hardly ever help, and the engine would take minutes for them.
_MAX_SEGMENTS = 256
# Around a ring every process sends P - 1 blocks, which makes millions of messages. Rings are left out if blocks are so
# short that the latencies alone take longer than any tree. Blocks of a ring have at most 85 KiB here, and are not cut.
_RINGS = {"scatter_ring_allgather", "ring"}
_MIN_BLOCK_BYTES = 256
# A library may still choose such a ring. The ring is not played, as the engine takes a minute for 4096 processes.
_MAX_BLOCKS = 10_000_000
# tasks_library uses MPI's own non-blocking collectives, which cannot be recorded. tasks_ring sends each segment around
# a ring of its own, which makes more messages than all other algorithms together.
_LEFT_OUT = {"segmented_ring", "tasks_library", "tasks_ring"}

HAN = "HAN's pick"
HIERARCHICAL, FLAT, DEFAULT = "oracle, hierarchical", "oracle, flat", f"{OPENMPI}'s decision"
DECISIONS = {f"{BASELINES[name].title}'s decision": BASELINES[name] for name in ("openmpi-4.1", "mpich-4")}
"""Untuned decisions of newer libraries for one process on each node. The engine does not know the paper's libraries."""
DECISION_OF = {OPENMPI: DEFAULT, CRAY: "MPICH 4's decision"}
"""The decision that stands for a library of the paper. No decision stands for Intel MPI or MVAPICH2, because SMPI's
selectors with these names hardly differ, and lack the libraries' algorithms."""


@dataclass(frozen=True)
class Whole:
    """The data of a figure, by size and source: `choices`, and their `seconds` by the schedule engine.

    `smpi` has SMPI's seconds of the same choices, or nan for choices that SMPI did not time.
    """

    machine: Machine
    collective: str
    seconds: pd.DataFrame
    choices: pd.DataFrame
    smpi: pd.DataFrame

    @property
    def title(self) -> str:
        """'bcast on Stampede2, 1536 processes'."""
        return f"{self.collective} on {self.machine.title}, {self.machine.procs} processes"

    def speed_ups(self) -> pd.DataFrame:
        """The speed-up of HAN's pick over every other source, by size."""
        return self.seconds.drop(columns=HAN).div(self.seconds[HAN], axis=0)


def choices_at(collective: str, by_node: bool, procs: int, message_bytes: int) -> list[Choice]:
    """The hierarchical or the flat choices that compete at a point."""
    entries = [algorithm for algorithm in Catalogue.load().algorithms(collective) if algorithm.name not in _LEFT_OUT]
    names = [entry.name for entry in entries if (entry.by_node if by_node else entry.selectable)]
    if _has_short_blocks(procs, message_bytes):
        names = [name for name in names if name not in _RINGS]
    segments = [0, *(item for item in SEGMENTS if item < message_bytes <= _MAX_SEGMENTS * item)]
    # The first of equally fast choices is taken, so choices without several leaders come first.
    return sorted(candidates(collective, segments, names, LEADERS), key=lambda choice: choice.parameter > 0)


def _has_short_blocks(procs: int, message_bytes: int) -> bool:
    return message_bytes < procs * _MIN_BLOCK_BYTES


def _is_played(choice: Choice, procs: int, message_bytes: int) -> bool:
    """True if the engine plays a choice. It does not play long rings of short blocks."""
    long = choice.algorithm in _RINGS and procs**2 > _MAX_BLOCKS
    return not (long and _has_short_blocks(procs, message_bytes))


def _label(choice: Choice) -> str:
    """'chain, 8 KiB', 'multi_leader_chain, 8 KiB, 2 leaders'."""
    label = Choice(choice.algorithm, choice.segment_bytes).label
    return f"{label}, {choice.parameter} leaders" if choice.algorithm.startswith("multi_leader") else label


def default_choice(collective: str, procs: int, message_bytes: int) -> Choice:
    """The untuned decision of Open MPI 4.0. Its broadcast decision is the same as in 3.1."""
    if collective == "allreduce":
        return decide_allreduce(procs, message_bytes)
    return decide(collective, procs, message_bytes)


def han_picks(machine: Machine, collective: str, sizes: Sequence[int], context: SimulationContext) -> dict[int, Choice]:
    """HAN's pick for each size: the choice with the least cost by the cost model, which needs only times of tasks."""
    names = tuple(name for name in BETWEEN if PREFIX + name not in _LEFT_OUT)
    nodes = machine.procs // machine.per_node
    space = Space(collective, (nodes,), (machine.per_node,), tuple(sizes), SEGMENTS, names)
    timer = Simulated(load(machine.name), replace(context, engine=SCHEDULE))
    return {one.message_bytes: choice for one, choice in search("tasks", space.cases(), timer).best.items()}


def _sources(collective: str) -> dict[str, ChoicesAt]:
    """The choices of each source at a point; none if the catalogue lacks a library's algorithm."""

    def decided(by: Callable[[str, int, int], Choice | None], procs: int, message_bytes: int) -> list[Choice]:
        return [choice] if (choice := by(collective, procs, message_bytes)) is not None else []

    return {
        HIERARCHICAL: partial(choices_at, collective, True),
        FLAT: partial(choices_at, collective, False),
        DEFAULT: partial(decided, default_choice),
        **{name: partial(decided, baseline.choice) for name, baseline in DECISIONS.items()},
    }


def simulate_whole(
    machine: Machine,
    collective: str,
    sizes: Sequence[int],
    context: SimulationContext,
    smpi_sizes: Sequence[int] = QUICK_SIZES,
) -> Whole:
    """Times a collective on a machine by the schedule engine, and at some sizes by SMPI.

    Raises CollwiseError when a case fails.
    """
    label = f"{machine.title}: {collective}"
    picks, sources = han_picks(machine, collective, sizes, context), _sources(collective)
    # The best hierarchical choice may also be HAN's pick, since some picks have more segments than `choices_at` offers.
    sources[HIERARCHICAL] = lambda procs, size: [*choices_at(collective, True, procs, size), picks[size]]
    sources = {HAN: lambda _, size: [picks[size]], **sources}
    best, seconds = _fastest(machine, sizes, sources, context, collective, label)
    reached = {
        (source, size): choice
        for source in best
        for size, choice in best[source].dropna().items()
        if size <= _SMPI_LARGEST_BYTES
        and size in smpi_sizes
        and cost_of(case_of(collective, choice, machine.procs, size)) <= _SMPI_MESSAGES
    }
    places = [(size, choice) for (_, size), choice in reached.items()]
    times = _times(machine, collective, places, replace(context, engine=SMPI), f"{label}, SMPI").complete()
    by_smpi = pd.DataFrame(np.nan, list(sizes), list(seconds))
    for (source, size), choice in reached.items():
        by_smpi.loc[size, source] = times.seconds_of(choice, machine.procs, size)
    return Whole(machine, collective, seconds, best.map(_label, na_action="ignore").fillna(""), by_smpi)


def _times(
    machine: Machine,
    collective: str,
    choices: Iterable[tuple[int, Choice]],
    context: SimulationContext,
    label: str = "",
    platform: HostPlatform | None = None,
) -> Times:
    places = tuple(dict.fromkeys((machine.procs, size, choice) for size, choice in choices))
    sizes = tuple(sorted({size for _, size, _ in places}))
    grid = Grid(collective, (), (machine.procs,), sizes, machine.per_node, besides=places)
    return simulate(platform or load(machine.name), [grid], context, label=label)[0]


def _fastest(
    machine: Machine,
    sizes: Sequence[int],
    sources: Mapping[str, ChoicesAt],
    context: SimulationContext,
    collective: str = "bcast",
    label: str = "",
    platform: HostPlatform | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The fastest choice of each source and its seconds by the schedule engine, by size; nan without a choice."""
    wanted = {
        (source, size): [item for item in at(machine.procs, size) if _is_played(item, machine.procs, size)]
        for source, at in sources.items()
        for size in sizes
    }
    places = [(size, choice) for (_, size), choices in wanted.items() for choice in choices]
    times = _times(machine, collective, places, replace(context, engine=SCHEDULE), label, platform).complete()
    best = pd.DataFrame(np.nan, list(sizes), list(sources), dtype=object)
    seconds = best.astype(float)
    for (source, size), choices in wanted.items():
        known = times.at_point(machine.procs, size)
        if ours := [choice for choice in choices if choice in known]:
            best.at[size, source] = first = min(ours, key=known.__getitem__)
            seconds.at[size, source] = known[first]
    return best, seconds


# Tables I and II.


def configuration(nodes: int, per_node: int, message_bytes: int, collective: str, choice: Choice) -> pd.DataFrame:
    """A row of the inputs and the autotuned parameters of a choice, under the symbols of tables I and II."""
    inputs = {"n": nodes, "p": per_node, "m": format_size(message_bytes), "t": collective}
    tuned = {
        name: format_size(value) if isinstance(value, int) else value or "-"
        for name, value in outputs(collective, choice).items()
    }
    return pd.DataFrame([inputs | tuned])


def measured_configuration(measured: Mapping[str, Any], which: str) -> pd.DataFrame:
    """The row of `configuration` for an entry of MEASURED, on the nodes of docs/han_on_a_bed.py.

    `which` is 'best', or 'library' for the best choice with the library's own collectives between nodes.
    """
    between, segment, within = measured[which].split(", ")
    choice = Choice(PREFIX + between, parse_size(segment), WITHIN.index(within))
    return configuration(*MEASURED_ON, measured["message_bytes"], measured["collective"], choice)


# What the parts cost.


def parts(machine: Machine, sizes: Sequence[int], context: SimulationContext) -> pd.DataFrame:
    """Seconds, by size, of the best flat broadcast among only the leaders, and of that among only one node's processes.

    The first broadcast needs only the network, the second only the node's memory.
    """
    leaders = replace(machine, procs=machine.procs // machine.per_node, per_node=1)
    node, flat = replace(machine, procs=machine.per_node), partial(choices_at, "bcast", False)
    alone = {"between nodes alone": leaders, "within a node alone": node}
    return pd.concat([_fastest(item, sizes, {name: flat}, context)[1] for name, item in alone.items()], axis=1)


def cyclic(machine: Machine, sizes: Sequence[int], context: SimulationContext) -> pd.DataFrame:
    """Seconds of the best hierarchical and the best flat broadcast if ranks are placed cyclically, by size."""
    sources = {name: _sources("bcast")[name] for name in (HIERARCHICAL, FLAT)}
    return _fastest(machine, sizes, sources, context, platform=placed(load(machine.name), CYCLIC))[1]


# Comparison with what the paper says.


def compared(whole: Mapping[int, Whole]) -> pd.DataFrame:
    """The speed-ups that the paper states, beside the speed-ups of HAN's picks here, a row each.

    Our speed-ups are by the schedule engine, over the decisions of Open MPI 4.0.0 and of MPICH 4. MPICH 4 stands for
    Cray MPI, a descendant of MPICH.
    """
    rows = []
    for figure, *_, sizes, over, _ in SPEED_UPS.itertuples(index=False):
        ratios = whole[figure].speed_ups().get(DECISION_OF.get(over), pd.Series(dtype=float))
        ours = ratios[(ratios.index <= SMALL_BYTES) == (sizes == SMALL)].dropna()
        shown = f"{ours.min():.2f} to {ours.max():.2f}" if len(ours) else "not simulated"
        rows.append((shown, format_size(int(ours.idxmax())) if len(ours) else ""))
    columns = ["figure", "machine", "collective", "messages", "HAN over", "the paper"]
    found = pd.DataFrame(rows, columns=["simulated", "greatest at"])
    return pd.concat([SPEED_UPS.set_axis(columns, axis=1), found], axis=1)


def by_range(speed_ups: pd.Series) -> dict[str, dict[str, float]]:
    """The least and the greatest speed-up, and the geometric mean, for small and for large messages.

    If no speed-up of a range is known, the dictionary of this range is empty.
    """
    known = speed_ups.dropna()
    ranges = {SMALL: known[known.index <= SMALL_BYTES], LARGE: known[known.index > SMALL_BYTES]}
    return {
        name: {"least": float(of.min()), "mean": float(np.exp(np.log(of).mean())), "greatest": float(of.max())}
        if len(of)
        else {}
        for name, of in ranges.items()
    }


def span(of: Mapping[str, float]) -> str:
    """'0.98 to 1.05': the least and greatest speed-up of a range."""
    return f"{of['least']:.2f} to {of['greatest']:.2f}"


def means(speed_ups: Mapping[int, dict[str, dict[str, float]]], *figures: int) -> str:
    """'0.83 to 2.05': the least and the greatest mean of `by_range` in these figures, over small and large messages."""
    known = [of["mean"] for number in figures for of in speed_ups[number].values() if of]
    return f"{min(known):.2f} to {max(known):.2f}" if known else "unknown"


def shown(seconds: pd.DataFrame, choices: pd.DataFrame | None = None) -> pd.DataFrame:
    """Seconds by size for readers, with the choices in brackets."""
    rows = seconds.map(lambda value: "" if value != value else format_seconds(value))
    if choices is not None:
        rows = (rows + " (" + choices + ")").where(choices != "", "")
    return rows.set_axis(rows.index.map(format_size), axis=0).rename_axis("m").reset_index()


# Figures.


def times_and_speed_ups(wholes: Sequence[Whole]) -> Figure:
    """Times of each source over the message size, and speed-ups of the first source. Each machine has a row."""
    shown = {
        f"{whole.title}{what}": of for whole in wholes for what, of in (("", whole.seconds), (" ", whole.speed_ups()))
    }
    styles = in_order(wholes[0].seconds, markersize=4)
    figure, axes = panels(shown, styles, "", (5.7, 3.7), 2)
    found = []
    for whole, times, ratios in zip(wholes, axes[::2], axes[1::2], strict=True):
        for axis in (times, ratios):
            size_axis(axis, list(whole.seconds.index))
            axis.axvline(SMALL_BYTES, color="#999999", linewidth=0.8, linestyle=":")
        seconds_axis(times)
        ratios.axhline(1, color="black", linewidth=0.8)
        ratios.set_yscale("log", base=2)
        ratios.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ratios.set_ylabel(f"speed-up of {whole.seconds.columns[0]}")
        least, most = whole.speed_ups().min().min(), whole.speed_ups().max().max()
        found.append(f"x {least:.2f} to x {most:.2f} on {whole.machine.title}")
    head(figure, f"{wholes[0].seconds.columns[0]} is {', '.join(found)} as fast as the others", wholes[0].collective)
    label_lines(*axes)
    return figure


def over_procs(rates: pd.DataFrame, title: str) -> Figure:
    """Images per second over the number of processes, one line per column."""
    figure, (axis,) = panels({"": rates}, in_order(rates, markersize=4), title, (5.4, 3.6))
    axis.set_xscale("log", base=2)
    axis.set_xticks(list(rates.index), labels=map(str, rates.index))
    axis.set_xlabel("processes")
    axis.set_ylabel("images per second")
    label_lines(axis)
    return figure
