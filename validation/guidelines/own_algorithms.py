"""Guidelines for a decision table of our own algorithms.

If a choice is slower than the parts of a mock-up, each with its best choice, then the combined parts are a better
algorithm than any in the catalogue (Hunold & Carpen-Amarie 2018, section 4.4.2, found an allreduce this way).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collwise.common.errors import UsageError
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case
from collwise.validation.guidelines.checks import (
    GUIDELINES,
    REDUCE_LOCAL,
    Call,
    Checked,
    Guideline,
    Launches,
    MockUpPart,
    Share,
    check,
    guidelines_of,
)
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import SEGMENTS
from collwise.validation.times.grid import Grid, case_of, choice_of

UNCHECKED = {"GL9": "in its allgatherv only the root has a block, but allgatherv is timed with equal blocks"}
"""The guidelines that are left out, and why."""


@dataclass(frozen=True)
class Combination:
    """Collectives, with sizes and choices, that run one after another are faster than a table's choice."""

    guideline: Guideline
    call: Call
    chosen: Choice
    seconds: float
    parts: tuple[tuple[str, int, Choice | None], ...]
    parts_seconds: float


@dataclass(frozen=True)
class OwnChecked:
    """The check of decision tables against the guidelines, and the faster combinations, by call, the fastest first.

    `parts_from` says for each collective whether its choices are a table's ('the table') or the catalogue's fastest
    ('the fastest').
    """

    checked: Checked
    combinations: tuple[Combination, ...]
    chosen: Mapping[Call, Choice]
    parts_from: Mapping[str, str]


def check_tables(
    tables: Mapping[str, DecisionTable],
    platform: HostPlatform,
    procs: Sequence[int],
    sizes: Mapping[str, Sequence[int]],
    context: SimulationContext,
    tolerance: float = 0.01,
) -> OwnChecked:
    """Checks the choices of decision tables at these points; the keys of `tables` and `sizes` are collectives.

    Each part of a mock-up uses the choice of its collective's table, or the catalogue's fastest choice if there is no
    table. Raises UsageError if a table decides nothing at a point, and CollwiseError if a simulation fails.
    """
    per_node = {table.processes_per_node for table in tables.values()}
    if len(per_node) > 1:
        raise UsageError("the tables are for different numbers of processes per node")
    (ppn,) = per_node
    chosen = {
        Call(name, count, size): table.choose(count, size)
        for name, table in tables.items()
        for count in procs
        for size in sizes.get(name, ())
    }
    wanted = {call: [_case(call, choice, ppn)] for call, choice in chosen.items()}
    mockups = [
        (guideline, call)
        for call in chosen
        for guideline in guidelines_of(call.collective)
        if guideline.name not in UNCHECKED
    ]
    for guideline, call in mockups:
        for part in guideline.parts:
            at = part.call(call)
            if part.collective != REDUCE_LOCAL and at not in wanted:
                wanted[at] = _competing(tables, at, ppn)
    every = list(dict.fromkeys(case for found in wanted.values() for case in found))
    timings = context.simulate(platform, every, f"{platform.name} guidelines").complete().timings
    best = {call: min(found, key=lambda case: timings[case].seconds) for call, found in wanted.items()}
    seconds = {call: timings[case].seconds for call, case in best.items()}
    local = platform.reduce_seconds_per_byte
    sums = {
        (guideline.name, call): sum(
            local * call.message_bytes if part.collective == REDUCE_LOCAL else seconds[part.call(call)]
            for part in guideline.parts
        )
        for guideline, call in mockups
    }
    own = {call: Launches((seconds[call],)) for call in chosen}
    checked = check(own, {key: Launches((item,)) for key, item in sums.items()}, Share(tolerance))
    combinations = []
    for violation in checked.violations:
        if violation.guideline in GUIDELINES:
            guideline, call = GUIDELINES[violation.guideline], violation.call
            parts = tuple(_part(part, call, best) for part in guideline.parts)
            own_seconds, other_seconds = violation.time.seconds, violation.other.seconds
            combinations.append(Combination(guideline, call, chosen[call], own_seconds, parts, other_seconds))
    from_table = {call.collective: "the table" if call.collective in tables else "the fastest" for call in wanted}
    return OwnChecked(checked, tuple(combinations), chosen, from_table)


def _case(call: Call, choice: Choice, ppn: int) -> Case:
    return case_of(call.collective, choice, call.procs, call.message_bytes, ppn)


def _competing(tables: Mapping[str, DecisionTable], call: Call, ppn: int) -> list[Case]:
    """The case of the table's choice; if no table decides, the cases of all choices."""
    if call.collective in tables:
        try:
            return [_case(call, tables[call.collective].choose(call.procs, call.message_bytes), ppn)]
        except UsageError:
            pass
    return Grid.of(call.collective, [call.procs], [call.message_bytes], ppn, SEGMENTS).cases()


def _part(part: MockUpPart, call: Call, best: Mapping[Call, Case]) -> tuple[str, int, Choice | None]:
    at = part.call(call)
    return part.collective, at.message_bytes, None if part.collective == REDUCE_LOCAL else choice_of(best[at])
