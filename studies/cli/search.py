"""collwise search: algorithms, tasks."""

from __future__ import annotations

import click

import collwise
from collwise.common.units import parse_duration
from collwise.studies.cli import options
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.declare import group, option
from collwise.studies.cli.derive import derived
from collwise.studies.cli.options import TARGET_IF_NAMED
from collwise.studies.cli.types import COUNTS, NAMES, PLATFORM, SIZES, Parsed, Scaled
from collwise.validation.adaptive.goal import LOSS, Goal
from collwise.validation.hierarchy.space import BUDGET, SEGMENTS


@click.group(cls=CommandGroup, epilog=example("search algorithms --collective bcast --procs 4 --budget 2min"))
def search() -> None:
    """Finds the best choices by few measurements."""


algorithms = derived(
    collwise.search_algorithms,
    "search algorithms --collective bcast,allreduce --procs 4 --sizes 1KiB:1MiB:x4 --budget 2min",
    name="algorithms",
    parent=search,
    confirm=options.CROWDED,
    goal=group(
        Goal,
        budget_seconds=option(Parsed("duration", parse_duration), Goal.budget_seconds, show_default=False),
        loss=option(Scaled(0.01), LOSS * 100),
    ),
    platform=option(PLATFORM),
    method=options.METHOD_OF_ROUNDS,
    context=options.simulation("schedule"),
)

tasks = derived(
    collwise.search_tasks,
    "search tasks --platform stampede2 --nodes 8 --ppn 4 --sizes 64KiB,1MiB --engine schedule --search tasks",
    name="tasks",
    parent=search,
    figures=True,
    collective=option(NAMES, "bcast"),
    platform=option(PLATFORM),
    nodes=option(COUNTS),
    ppn=option(COUNTS),
    algorithms=option(NAMES, "chain,binary,binomial"),
    exclude=option(NAMES, ()),
    pieces=option(SIZES, "0"),
    budget=option(Scaled(0.01, most=100), BUDGET * 100),
    tasks=option(click.IntRange(2, 64), SEGMENTS),
    drawn=option(click.IntRange(min=0)),
    target=TARGET_IF_NAMED,
)
