"""collwise demo, report and study: from platforms to rules and pages in one command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collwise.common.errors import CollwiseError, warn
from collwise.common.files import writable_folder
from collwise.common.project import results_folder
from collwise.common.units import counted, format_seconds, format_size
from collwise.models.registry import BY_PARTS, CRITICAL_PATH, ModelKind, check_formulas
from collwise.platforms import HostPlatform, load
from collwise.platforms.smpi import charges_overheads
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.studies.cli import options, types
from collwise.studies.cli.declare import argument, command, flag, group, option
from collwise.studies.cli.output import own_command, print_json, print_table
from collwise.studies.cli.types import COLLECTIVES, COUNTS, FOLDER, PATH, SIZES
from collwise.validation.libraries.baselines import Baseline
from collwise.validation.libraries.openmpi_check import check_all
from collwise.validation.times.defaults import DECISION_SIZES, PAPER_SIZES, SEGMENTS_TEXT, sizes_of

if TYPE_CHECKING:
    from rich.console import Console

    from collwise.studies.reports.choices import PlatformChoices
    from collwise.validation.compare.scores import Scores

_TIMES = types.NamedChoice("source of times", ("predicted", "simulated"))


def _report_model(asked: str | None, by: str, engine: str, collectives: Sequence[str]) -> str | None:
    """The model of a report: the one asked for, the one with formulas, or none where none is needed."""
    if asked is None and by == "simulated" and engine == SCHEDULE.name:
        return None
    formulas = all(map(ModelKind.parse(BY_PARTS).covers, collectives))
    model = asked or (BY_PARTS if formulas else CRITICAL_PATH)
    check_formulas(model, collectives)
    return model


@command("report --platform gros --procs 16,32,64")
def report(
    platform: HostPlatform = options.placed_platform(),
    procs: tuple[int, ...] | None = option(COUNTS, in_project=True),
    collectives: Sequence[str] = option(COLLECTIVES, "bcast,gather"),
    how: dict[str, Any] = group(
        dict,
        sizes=option(SIZES),
        segments=option(SIZES, SEGMENTS_TEXT),
        model=option(
            types.NamedChoice("model", (BY_PARTS, CRITICAL_PATH)),
            said={"by_parts": BY_PARTS, "critical_path": CRITICAL_PATH},
        ),
        by=option(_TIMES),
    ),
    baseline: Baseline = options.BASELINE,
    output: Path | None = option(PATH),
    ppn: int | None = options.PPN,
    simulation: options.SimulationOptions = options.SIMULATION,
) -> None:
    """The main job for one platform: an HTML report with tables and figures, and Open MPI rules beside it.

    All sixteen collectives can be in it. Those that Open MPI has no rules for (gatherv, scatterv) are not in the rules.
    By the predicted times of formulas the rules hold for every P, change at the byte from which on the later choice is
    faster, and the report says what they lose between the sizes; by others they are made at the points that the report
    compares, and hold from each of --procs up to the next one.
    """
    from collwise.studies.reports.choices import compared_on
    from collwise.studies.reports.report import few_elements_line, measurements, sections_of, write_report, write_rules

    if procs is None:
        per_node = ppn or platform.default_processes_per_node
        most = platform.max_procs(per_node)
        example = ",".join(map(str, sorted({max(2, most // 16), max(2, most // 4), most})))
        raise click.UsageError(
            "Missing option '--procs': give the process counts of your jobs, for example --procs "
            f"{example} ({platform.name} holds up to {most} with {per_node} per node)"
        )
    by = how["by"] or ("simulated" if simulation.engine == "schedule" else "predicted")
    model = _report_model(how["model"], by, simulation.engine, collectives)
    free = not charges_overheads(platform.smpi_options())
    sizes = {name: sizes_of(name, how["sizes"], decided=free) for name in collectives}
    output = writable_folder(output or results_folder() / f"{platform.name}-report")
    with simulation.context() as context:
        choices = compared_on(
            platform, collectives, procs, context, baseline,
            processes_per_node=ppn, segments=how["segments"], sizes=sizes, model=model,
        )  # fmt: skip
        measured = measurements(context.store, choices)
        if by == "predicted":
            deciding = choices.predictions_to_decide(sizes, context.progress)
        else:
            deciding = choices.times_to_decide(sizes)
        choices = choices.decided(deciding, sizes)
    write_rules([choices], output)
    page = write_report([choices], output, [sections_of(choices, output, measured)], own_command())
    click.echo(f"report: {page}")
    if line := few_elements_line(choices):
        warn(line)
    if choices.failures:
        raise CollwiseError(f"{counted(choices.failures, 'case')} failed; their rows are left out")


# The process counts of the paper's figure 5, and those of its tables 2 and 3, which are shown.
CLUSTERS = {"grisou": (50, 80, 90), "gros": (80, 100, 124)}
SHOWN = {"grisou": 90, "gros": 100}
BY_MODEL, BY_ENGINE = ("bcast", "gather"), ("allreduce", "alltoall")
"""The collectives of the paper, whose choices are made by its models, and those that the schedule engine decides."""


@command("demo")
def demo(
    output: Path = option(FOLDER, lambda: results_folder() / "demo", show_default="results/demo"),
    baseline: Baseline = options.BASELINE,
    simulation: options.SimulationOptions = options.SIMULATION,
) -> None:
    """Chooses broadcast, gather, allreduce and alltoall algorithms for Grisou and Gros, and writes Open MPI rules.

    For broadcast and gather the command simulates the clusters, fits the models of Nuriyev & Lastovetsky 2021, and
    compares their choice and that of an untuned library with the best. The schedule engine chooses for allreduce and
    alltoall. Its times of all four are compared with SMPI's. A report, figures and rules files are written.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from collwise.studies.cli.tables import stdout_console
    from collwise.studies.reports.report import rules_path, sections_of, write_report, write_rules

    console = stdout_console()
    first, second = CLUSTERS
    # Another process makes the decisions and figures of the first platform, this one those of the second.
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        with simulation.context() as context:
            made = pool.submit(_decided, _compared(first, context, baseline, console))
            compared = _compared(second, context, baseline, console)
        own = _decided(compared)
        every = [made.result(), own]
        drawn = pool.submit(sections_of, every[0], output)
        write_rules(every, output)
        # Open MPI runs in its own processes while the figures are drawn.
        checks = check_all(rules_path(output, every[0], "4.1"), list(every[0].decisions.values()))
        own_sections = sections_of(own, output)
        page = write_report(every, output, [drawn.result(), own_sections], own_command())
    click.echo("Open MPI, run here with the rules of Grisou:")
    wrong = 0
    for line, ok in checks:
        click.echo(f"  {line}")
        wrong += not ok
    click.echo(f"\nreport with all tables and figures: {page}")
    for one in every:
        click.echo(f"rules for {one.platform.title}: {rules_path(output, one, '4.1')}")
    failures = sum(one.failures for one in every)
    if failures or wrong:
        raise CollwiseError(f"{failures} simulated cases failed, {wrong} checks of the rules failed")


def _compared(name: str, context: SimulationContext, baseline: Baseline, console: Console) -> PlatformChoices:
    """What models and engine choose on a platform, which is printed as well."""
    from collwise.studies.reports.choices import compared_on

    compared = compared_on(load(name), BY_MODEL, CLUSTERS[name], context, baseline, sizes=PAPER_SIZES)
    found = compared.with_engine(BY_ENGINE, SHOWN[name], context)
    _show(console, found, SHOWN[name])
    return found


def _decided(compared: PlatformChoices) -> PlatformChoices:
    return compared.decided(compared.predictions_to_decide(DECISION_SIZES), DECISION_SIZES)


def _show(console: Console, choices: PlatformChoices, procs: int) -> None:
    """Prints the tables for one process count, and the slowdowns of the picks over all process counts."""
    from collwise.studies.reports.comparison_table import compared_places, summary_line, table_columns, table_row
    from collwise.studies.reports.engine_table import agreement_line, engine_columns, engine_rows, library_line

    where, baseline = choices.platform.title, choices.baseline
    for collective, scores in choices.compared.items():
        right, places = scores.right, compared_places(scores)
        rows = [table_row(scores, baseline, *place)[1:] for place in places if right.procs[place[0]] == procs]
        title = f"{collective} on {where}, P = {procs} (simulated by {right.maker})"
        print_table(title, table_columns(scores, baseline)[1:], rows, left=0)
        counts = ", ".join(map(str, sorted({right.procs[i] for i, _ in places})))
        click.echo(f"P = {counts}: {summary_line(scores, baseline)}")
        click.echo(f"{_gain(scores, baseline)}\n{agreement_line(choices.by_engine[collective])}\n")
    for collective in BY_ENGINE:
        scores = choices.by_engine[collective]
        title = f"{collective} on {where}, P = {procs} (by the schedule engine)"
        rows = [row[1:] for row in engine_rows(scores, baseline) if row[0] == str(procs)]
        print_table(title, engine_columns(scores)[1:], rows, left=0)
        if line := library_line(scores):
            click.echo(line)
        click.echo(f"{agreement_line(scores)}\n")


def _gain(scores: Scores, baseline: Baseline) -> str:
    """The point at which the model's choice saves most time, in a line."""
    from collwise.studies.reports.comparison_table import compared_places

    (model,) = scores.times
    pairs = {at: (scores.pick(model, *at), scores.pick(baseline.title, *at)) for at in compared_places(scores)}
    (i, j), (ours, theirs) = max(pairs.items(), key=lambda pair: pair[1][1].seconds - pair[1][0].seconds)
    if theirs.seconds <= ours.seconds or ours.choice is None or theirs.choice is None:
        return f"no gain over {baseline.title}, whose choices are as good"
    return (
        f"largest gain over {baseline.title}: {format_size(scores.right.message_bytes[j])} on P = "
        f"{scores.right.procs[i]} takes {format_seconds(ours.seconds)} with {ours.choice.label} instead of "
        f"{format_seconds(theirs.seconds)} with {theirs.choice.label}"
    )


@command("study nuriyev2021")
def study(
    name: str = argument(),
    output: Path | None = option(PATH),
    quick: bool = flag(),
    simulation: options.SimulationOptions = options.SIMULATION,
    as_json: bool = options.JSON,
) -> None:
    """Runs the study NAME: executes its notebook in a fresh Jupyter kernel.

    \b
    hunold2018       Hunold & Carpen-Amarie 2018: guidelines that libraries violate, on the paper's machines
    luo2020          Luo et al. 2020 (HAN): hierarchical collectives, their tasks and tuning (some 20 minutes)
    nuriyev2021      Nuriyev & Lastovetsky 2021 against its own data and simulation
    oflynn2009       O'Flynn 2009: models of a heterogeneous cluster, LMO among them
    pjesivac2007     Pješivac-Grbović et al. 2007: table, figures and claims (some 20 minutes on two cores)
    getting_started  which broadcast to use on Dahu, and what it gains over Open MPI as it is
    model_accuracy   which model or simulation to trust, by collective and size
    own_cluster      a cluster of one's own, from its description to rules
    whatif           another bandwidth for Gros: what changes, from where on and why, with sliders

    Writes NAME.md with the narrative, tables and figures (PNG), NAME.json with the results, and the executed notebook
    NAME.ipynb.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from collwise.studies.papers.notebook import run
    from collwise.studies.papers.study import environment

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=1.0)
        results, files = run(
            name,
            environment(simulation, quick),
            output or results_folder() / name,
            lambda heading, done: bar.update(task, description=f"{name}: {heading}", completed=done),
        )
    if as_json:
        print_json([results])
        return
    for sentence in results["conclusions"]:
        click.echo(f"- {sentence}")
    click.echo("written: " + ", ".join(str(path) for path in files))
