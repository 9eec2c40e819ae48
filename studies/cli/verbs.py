"""Commands that are public functions: commands that make and use times, and groups of commands."""

from __future__ import annotations

import click

import collwise
from collwise import store_contents
from collwise.common.units import parse_duration
from collwise.guideline_checks import RULES, USUAL
from collwise.models.registry import MODEL_NAMES, PROCEDURE_NAMES
from collwise.platforms.changes import CHANGES
from collwise.predictions import FITTED_BY_ALGORITHM
from collwise.simulator.execution.interposed import LIBRARIES
from collwise.simulator.sweeps.context import SCHEDULE, SMPI_SELECTORS
from collwise.simulator.sweeps.method import PRECISION_OF_FITS
from collwise.studies.cli import options, types
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.declare import group, option
from collwise.studies.cli.derive import derived
from collwise.studies.cli.types import NAMES, NEW_FILE, PATH, PLATFORM, SIZES, NamedChoice, Parsed, Scaled
from collwise.validation.adaptive import LOSS, Goal
from collwise.validation.guidelines.checks import CORRECTIONS
from collwise.validation.hierarchy.space import BUDGET
from collwise.validation.libraries.baselines import BASELINES
from collwise.validation.libraries.formats import FORMATS
from collwise.validation.measurement import applications

BY_SCHEDULE = options.simulation(SCHEDULE.name)

simulate = derived(
    collwise.simulate,
    "simulate --platform gros --collective bcast --procs 4,8 --sizes 8KiB:64KiB:x2",
    context=options.simulation(called=True),
    figures=True,
    deciders=NAMES,
)
measure = derived(
    collwise.measure,
    "measure --library openmpi --collective bcast --procs 4 --sizes 8KiB:64KiB:x2",
    target=options.TARGET,
    confirm=options.asked("Start {}?", "{} would be started"),
    platform=PLATFORM,
    raw=NEW_FILE,
    script=types.NEW_SCRIPT,
    context=options.STORED,
    figures=True,
)
fit = derived(
    collwise.fit,
    "fit --platform mine.toml -o mine.parameters.toml",
    platform=options.BENCH,
    model=options.model([*FITTED_BY_ALGORITHM, *PROCEDURE_NAMES], FITTED_BY_ALGORITHM[0]),
    chains=None,
    precision=options.precision(PRECISION_OF_FITS),
)
predict = derived(
    collwise.predict,
    "predict --parameters mine.parameters.toml --collective bcast --procs 2:8:+1 -o bcast.times",
    model=options.model(MODEL_NAMES),
    figures=True,
)
select = derived(collwise.select, "select bcast.times --for openmpi-4.1 -o bcast.json")
export = derived(
    collwise.export,
    "export bcast.json --version 4.1 -o mine.rules",
    output=NEW_FILE,
    format_name=NamedChoice("format", FORMATS),
)
compare = derived(collwise.compare, "compare bcast.times bcast.json openmpi-4.1 --figures figures", figures=True)


@click.group(cls=CommandGroup, epilog=example("search algorithms --collective bcast --procs 4 --budget 2min"))
def search() -> None:
    """Finds good choices with few measurements, including for task-based hierarchical collectives."""


derived(
    collwise.search_algorithms,
    "search algorithms --collective bcast,allreduce --procs 4 --sizes 1KiB:1MiB:x4 --budget 2min",
    name="algorithms",
    parent=search,
    confirm=options.asked("Start {}?", "{} would be started"),
    goal=group(
        Goal,
        budget_seconds=option(Parsed("duration", parse_duration), Goal.budget_seconds, show_default="no limit"),
        loss=option(Scaled(0.01), LOSS * 100),
    ),
    platform=PLATFORM,
    model=option(PATH, key="parameters"),
    method=options.METHOD_OF_ROUNDS,
    context=BY_SCHEDULE,
)
derived(
    collwise.search_tasks,
    "search tasks --platform stampede2 --nodes 8 --ppn 4 --sizes 64KiB,1MiB --engine schedule --search tasks",
    name="tasks",
    parent=search,
    figures=True,
    collective=NAMES,
    platform=PLATFORM,
    nodes=types.COUNTS,
    ppn=types.COUNTS,
    algorithms=NAMES,
    exclude=NAMES,
    pieces=SIZES,
    budget=option(Scaled(0.01, maximum=100), BUDGET * 100),
    tasks=None,
    drawn=click.IntRange(min=0),
    target=options.TARGET_IF_NAMED,
)


@click.group(cls=CommandGroup, epilog=example("whatif change --platform gros --collective bcast --change bandwidth=x2"))
def whatif() -> None:
    """Shows how choices and times change when the platform changes."""


_CLUSTER = options.placed_platform(option(types.CLUSTER, required=True, in_project=True))
_CHANGES = "\n".join(f"  {name}={kind.example}: {kind.meaning}" for name, kind in CHANGES.items())
derived(
    collwise.whatif,
    "whatif change --platform gros --collective allreduce --procs 16,62 --sizes 1KiB,1MiB --change bandwidth=x0.25",
    name="change",
    parent=whatif,
    platform=_CLUSTER,
    more=f"\b\nChanges, made in the order given:\n{_CHANGES}",
    figures=True,
    context=BY_SCHEDULE,
)
derived(
    collwise.sweep,
    "whatif sweep --platform gros --collective allreduce --procs 62 --sizes 1MiB --factors bandwidth=x0.25:x8",
    parent=whatif,
    platform=_CLUSTER,
    figures=True,
    context=BY_SCHEDULE,
)


@click.group(cls=CommandGroup, epilog=example("program run --library openmpi --procs 2 --report - -- latency"))
def program() -> None:
    """Runs programs with our algorithms, and reports the time saved."""


derived(
    collwise.run_program,
    "program run --library smpi --platform gros --procs 4 --algorithms bcast=chain --report - -- latency",
    name="run",
    parent=program,
    library=NamedChoice("MPI library", LIBRARIES),
    platform=PLATFORM,
    algorithms=click.STRING,
)
derived(collwise.profile, "program profile report.json --platform gros", parent=program, context=BY_SCHEDULE)
derived(
    collwise.application,
    "program apply asp --platform gros --procs 8 --collectives ompi,mpich --set size=4096,iterations=4",
    name="apply",
    parent=program,
    figures=True,
    program=NamedChoice("application", applications.APPLICATIONS),
    collectives=option(NAMES, applications.COLLECTIVES, said={"choices": applications.NAMES}),
    context=BY_SCHEDULE,
)
derived(
    collwise.gain,
    "program gain decisions.json --procs 4 --collective bcast",
    parent=program,
    figures=True,
    report=True,
    target=options.target("library"),
)


@click.group(cls=CommandGroup, epilog=example("guidelines simulate --platform gros --library ompi --procs 16"))
def guidelines() -> None:
    """Finds and repairs violations of performance guidelines in MPI libraries.

    A guideline says that a collective should not be slower than other calls that do the same.
    """


_FOLDER = option(types.FOLDER, key="folder of results")
derived(
    collwise.guidelines,
    "guidelines simulate --platform gros --library ompi --collective allreduce,reduce --procs 16",
    name="simulate",
    parent=guidelines,
    figures=True,
    libraries=types.named_choices("library", (*SMPI_SELECTORS, *BASELINES)),
    repair=None,
    output=_FOLDER,
)
derived(
    collwise.measured_guidelines,
    "guidelines measure --library openmpi --collective allreduce,reduce --procs 4",
    name="measure",
    parent=guidelines,
    figures=True,
    rule=NamedChoice("rule", RULES),
    correction=option(
        NamedChoice("correction", CORRECTIONS),
        "bh",
        said={"corrections": ", ".join(f"{name}: {title}" for name, title in CORRECTIONS.items())},
    ),
    method=options.method(USUAL),
    repair=None,
    output=_FOLDER,
    on_launch=None,
)
derived(
    collwise.check_decisions, "guidelines decisions decisions.json --platform gros", name="decisions", parent=guidelines
)


@click.group(cls=CommandGroup, epilog=example("times list"))
def times() -> None:
    """Lists, shows, saves and deletes the times in the store, and imports times measured elsewhere."""


derived(store_contents.configurations, "times list --json", name="list", parent=times, store=options.STORE)
derived(
    store_contents.results,
    "times show --collective bcast --procs 16 -o bcast.csv",
    name="show",
    parent=times,
    platform=NAMES,
    equal=group(dict, algorithm=option(NAMES, key="algorithms")),
)
derived(
    store_contents.prune,
    "times delete --platform gros --before 2026-01-01 --yes",
    name="delete",
    parent=times,
    platform=NAMES,
    confirm=options.asked("Delete {}?", "{} would be deleted"),
)
derived(
    store_contents.import_times,
    "times import osu_bcast.txt --platform mycluster --procs 64",
    name="import",
    parent=times,
    platform=click.STRING,
    algorithm=click.STRING,
)
