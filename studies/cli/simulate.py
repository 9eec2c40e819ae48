"""collwise simulate and measure: fill the timing table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

import collwise
from collwise import arguments
from collwise.common.errors import UsageError, note
from collwise.common.files import write_text
from collwise.common.program import program_name
from collwise.common.units import counted, format_seconds, format_size, parse_duration
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import Method, combine
from collwise.simulator.sweeps.mpi_runner import measure_launches, samples_csv
from collwise.simulator.timing import Timing, named_parameters
from collwise.studies.cli import declare, options, target_options
from collwise.studies.cli.declare import command, group, option
from collwise.studies.cli.derive import derived
from collwise.studies.cli.output import check_failed, print_json, print_table, sweep_progress
from collwise.studies.cli.target_options import TARGET, TargetOptions, target_from
from collwise.studies.cli.types import ALGORITHMS, COUNTS, NEW_FILE, PATH, PLATFORM, SIZES, Parsed, Scaled
from collwise.validation.adaptive.goal import LOSS, Goal
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import SEGMENTS_TEXT, sizes_of
from collwise.validation.times.grid import BUILTIN, LIBRARY, Grid
from collwise.validation.times.points import remark_on_sizes

simulate = derived(
    collwise.simulate,
    "simulate --platform gros --collective bcast --procs 4,8 --sizes 8KiB:64KiB:x2",
    context=options.simulation(called=True),
)


@command("measure --library openmpi --collective bcast --procs 4 --sizes 8KiB:64KiB:x2")
def measure(
    where: TargetOptions = TARGET,
    collectives: Sequence[str] = options.COLLECTIVES,
    algorithms: Sequence[str] | None = option(ALGORITHMS),
    procs: Sequence[int] = option(COUNTS, required=True),
    sizes: Sequence[int] | None = options.SIZES,
    varied: dict[str, Any] = group(
        dict, segments=option(SIZES, SEGMENTS_TEXT), counts=options.COUNTS, thresholds=options.THRESHOLDS
    ),
    method: Method = options.METHOD,
    adaptive: dict[str, Any] = group(
        dict,
        budget=option(Parsed("duration", parse_duration)),
        loss=option(Scaled(0.01), LOSS * 100),
        platform=option(PLATFORM),
        parameters=option(PATH),
    ),
    raw: Path | None = option(NEW_FILE),
    script: Path | None = target_options.SCRIPT,
    simulation: options.SimulationOptions = options.simulation("schedule"),
    as_json: bool = options.JSON,
) -> None:
    """Measures our algorithms under Open MPI or MPICH: on this machine, hosts, a batch job's nodes or a test bed.

    Without a target, times are those of this machine's shared memory and cores, not of a cluster's network.
    docs/measuring.md says which method to use when, docs/adaptive.md how --budget saves time.
    """
    from collwise.timings import cases_to_measure, choices, with_library

    if adaptive["budget"] is not None:
        declare.refuse_options(("raw", "script", "nrep", "launches"), "measuring without --budget")
        asked_for = {"collective": collectives, "algorithms": algorithms, "procs": procs, "sizes": sizes, **varied}
        _measure_adaptively(where, asked_for, adaptive, method, simulation, as_json)
        return
    declare.refuse_options(("loss", "parameters", *options.SIMULATING), "--budget")
    ours, with_own = with_library(algorithms)
    segments = varied["segments"]
    competing = choices(collectives, ours, **varied)
    remark_on_sizes([Grid.of(one, procs, sizes_of(one, sizes), segments=segments) for one in collectives])
    if with_own:
        declare.refuse_options(("script",), "our algorithms, not for --algorithms library")
    target = None if script is not None else target_from(where)
    asked = cases_to_measure(competing, procs, sizes, target, with_own, adaptive["platform"], where.ppn)
    method = replace(method, keep_samples=raw is not None)
    if target is None:
        declare.refuse_options(("raw", "as_json", "as_csv"), "times that are measured now, not for --script")
        target_options.print_script(Path(str(script)), asked, method, where)
        return
    label = f"{arguments.several(collectives)}, {target.name}"
    with Store(simulation.store) as opened, sweep_progress(label) as advance:
        launches = measure_launches(target, asked, opened, method=method, on_progress=advance)
    timings = [combine(each, method.precision.confidence) for each in zip(*launches, strict=True)]
    if raw is not None:
        write_text(raw, samples_csv(launches))
    if as_json:
        records = [
            asdict(row.case) | {"nodes": row.case.nodes, "parameters": named_parameters(row.case)} | asdict(row)
            for row in timings
        ]
        for record, each in zip(records, zip(*launches, strict=True), strict=True):
            del record["case"]
            if len(each) > 1:
                kept = ("seconds", "half_width_seconds", "repetitions")
                record["launches"] = [{name: getattr(one, name) for name in kept} for one in each]
        print_json(records)
    else:
        several_segments = len(segments) > 1
        maker = target.installation.label
        for one in collectives:
            title = f"{one}, {maker}, {target.name}, timing {method.timing}, {method.synchronisation}"
            rows = [_row(row, several_segments) for row in timings if row.case.collective == one]
            print_table(title, _MEASURED_COLUMNS, rows, 0, keys=3)
    check_failed([row for row in timings if not row.ok])


def _measure_adaptively(
    where: TargetOptions,
    asked: dict[str, Any],
    adaptive: Mapping[str, Any],
    method: Method,
    simulation: options.SimulationOptions,
    as_json: bool,
) -> None:
    from collwise.studies.reports.adaptive import POINT_COLUMNS, document, point_rows, summary_lines
    from collwise.timings import measure_adaptively

    if LIBRARY in (asked["algorithms"] or ()):
        raise UsageError(f"--algorithms {LIBRARY} is for measuring without --budget")
    target = target_from(where)
    with simulation.context() as context:
        found = measure_adaptively(
            **asked,
            goal=Goal(adaptive["budget"], adaptive["loss"]),
            target=target,
            platform=adaptive["platform"],
            model=adaptive["parameters"],
            method=method,
            context=context,
            on_round=lambda number, cases, spent: note(
                f"round {number}: {counted(cases, 'case')}"
                + (f" after {format_seconds(spent)} of machine time" if spent else "")
            ),
        )
    if as_json:
        facts = document(found)
        print_json(facts.pop("points"), facts)
    else:
        title = f"{', '.join(asked['collective'])}, {target.installation.label}, {target.name}: measured choices"
        print_table(title, POINT_COLUMNS, point_rows(found), left=1, keys=3)
        for line in summary_lines(found):
            click.echo(line)
        names = ",".join(asked["collective"])
        click.echo(
            f"choose by them: {program_name()} select --by measured --collective {names} --platform {target.name} "
            f"--configuration {found.configuration.key[:12]}"
        )
    check_failed(found.failed)


_MEASURED_COLUMNS = ("P", "m", "algorithm", "mean", "median", "minimum", "maximum", "+-", "repetitions", "late starts")


def _row(timing: Timing, with_segment: bool) -> tuple[object, ...]:
    """The row of a timing; a star marks a mean that is not as exact as was asked for."""
    case = timing.case
    choice = Choice(case.algorithm, case.segment_bytes if with_segment else 0, case.fanout)
    name = "MPI's own" if case.experiment == BUILTIN else choice.label
    start = (case.procs, format_size(case.message_bytes), name)
    if not timing.ok:
        return (*start, "failed", *("-" for _ in range(len(_MEASURED_COLUMNS) - 4)))
    times = (timing.seconds, timing.median_seconds, timing.least_seconds, timing.greatest_seconds)
    width = timing.half_width_seconds / timing.seconds if timing.seconds > 0 else math.inf
    star = "" if timing.precise else " *"
    return (
        *start,
        *map(format_seconds, times),
        f"{width * 100:.1f} %{star}" if width < math.inf else "-",
        timing.repetitions,
        timing.late_starts,
    )
