"""collwise report: an HTML report and rules for one platform."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from collwise.common.errors import CollwiseError, warn
from collwise.common.files import writable_folder
from collwise.common.project import results_folder
from collwise.common.units import counted
from collwise.models.registry import BY_PARTS, CRITICAL_PATH, ModelKind, check_formulas
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.context import SCHEDULE
from collwise.studies.cli import options, types
from collwise.studies.cli.declare import command, group, option
from collwise.studies.cli.output import own_command
from collwise.studies.cli.types import COLLECTIVES, COUNTS, PATH, SIZES
from collwise.validation.library_defaults.baselines import Baseline
from collwise.validation.times.defaults import SEGMENTS_TEXT, sizes_of

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
    from collwise.platforms.smpi import charges_overheads
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
