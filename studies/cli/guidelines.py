"""collwise guidelines: performance guidelines of MPI libraries, and their repair by mock-ups."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import collwise
from collwise.common.errors import CollwiseError, UsageError, note
from collwise.common.files import write_text
from collwise.guideline_checks import RULES, SIZES_TEXT, LibraryGuidelines, Measuring, Rule, checked_collectives
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.context import SCHEDULE, SMPI_SELECTORS
from collwise.simulator.sweeps.method import Method, Precision
from collwise.studies.cli import options, types
from collwise.studies.cli.declare import command, group, option, refuse_options
from collwise.studies.cli.output import csv_text, print_json, print_table, write_figure
from collwise.studies.cli.target_options import TARGET, TargetOptions, target_from
from collwise.studies.reports import guidelines as report
from collwise.validation.guidelines.checks import PATTERN
from collwise.validation.guidelines.criteria import CORRECTIONS
from collwise.validation.guidelines.guideline import COLLECTIVES
from collwise.validation.libraries.baselines import BASELINES
from collwise.validation.select.decisions import decisions_from

_RECORDED = tuple(name for name, one in BASELINES.items() if not one.known)
"""The baselines whose decisions are known for every collective."""

_USUAL_RECORDED = ("openmpi-4.1", "mpich-4")
_MEASURED = ("launches", "repetitions", "nrep", "alpha", "correction")


def _rule(rule: str | None, share: float | None, alpha: float, correction: str) -> Rule:

    return Rule(rule, None if share is None else share / 100, alpha, correction)


RULE = group(
    _rule,
    rule=option(types.NamedChoice("rule", RULES)),
    share=option(click.FloatRange(0, 100, max_open=True)),
    alpha=option(float, 0.05),
    correction=option(
        types.NamedChoice("correction", CORRECTIONS),
        "bh",
        said={"corrections": ", ".join((f"{name}: {title}" for name, title in CORRECTIONS.items()))},
    ),
)


@command("guidelines --platform gros --selector ompi --collective allreduce,reduce --procs 16")
def guidelines(
    where: TargetOptions = TARGET,
    platform: HostPlatform | None = option(types.PLATFORM),
    selectors: Sequence[str] | None = option(
        types.named_choices("selector", SMPI_SELECTORS), said={"smpi_selectors": SMPI_SELECTORS}
    ),
    baselines: Sequence[str] | None = option(
        types.named_choices("baseline", _RECORDED), said={"recorded": _RECORDED, "usual_recorded": _USUAL_RECORDED}
    ),
    table: Path | None = option(types.PATH),
    collectives: tuple[str, ...] = option(
        types.Parsed("collectives", checked_collectives, lambda _: ("all", *COLLECTIVES)),
        COLLECTIVES,
        show_default="all",
        said={"collectives": COLLECTIVES},
    ),
    procs: tuple[int, ...] | None = option(types.COUNTS),
    sizes: tuple[int, ...] | None = option(types.SIZES, said={"sizes_text": SIZES_TEXT}),
    rule: Rule = RULE,
    launches: int = option(click.IntRange(2), 10),
    repetitions: int = option(click.IntRange(1), 20),
    nrep: float | None = option(float),
    repair: bool = option(default=True),
    output: Path | None = option(types.FOLDER),
    figures: Path | None = option(types.FOLDER),
    csv: Path | None = option(types.NEW_FILE),
    simulation: options.SimulationOptions = options.SIMULATION,
    as_json: bool = options.JSON_ALONE,
) -> None:
    """Checks the performance guidelines of MPI libraries, after Hunold & Carpen-Amarie 2018, and repairs violations.

    A collective must not be slower than a mock-up of other collectives (GL1 to GL22), than itself on a larger message
    (monotony), or than several calls on parts of the message (split-robustness). The fastest mock-up repairs a
    violation: the benchmark then runs again under libcollwise. With --platform, libraries are those that SMPI's
    selectors stand for, or with --engine schedule those of --baseline, also with thousands of processes; else a real
    one runs on this machine, hosts, a batch job's nodes or a test bed. With --table, the choices of our own algorithms
    are checked, and combinations that are faster are listed.
    """
    by_engine = simulation.engine == SCHEDULE.name
    if where.named and platform is not None:
        raise UsageError("--platform simulates, and --library, --hosts, --launcher and --testbed measure; give one")
    simulating = {"--selector": selectors, "--baseline": baselines, "--table": table, "--engine": by_engine or None}
    for name, value in simulating.items():
        if platform is None and value is not None:
            raise UsageError(f"{name} needs --platform NAME|FILE")
    if by_engine and selectors is not None:
        raise UsageError("--selector is of SMPI; valid with --engine schedule: --baseline")
    if not by_engine and baselines is not None:
        raise UsageError("--baseline needs --engine schedule, which plays what these libraries decide")
    if table is not None:
        of_libraries = ("selectors", "baselines", *_MEASURED, "repair", "output", "figures", "csv")
        refuse_options(of_libraries, "libraries, not for --table")
        assert platform is not None
        with simulation.context() as context:
            points = {"procs": procs, "sizes": sizes, "collectives": collectives, "context": context}
            _check_table(table, platform, rule.criterion(exact=True).share, points, as_json)
        return
    problems: list[CollwiseError] = []
    with simulation.context() as context:
        shared: dict[str, Any] = {
            "procs": procs or (4,), "sizes": sizes or SIZES_TEXT, "collective": collectives, "rule": rule,
            "repair": repair, "context": context,
        }  # fmt: skip
        if platform is not None:
            refuse_options(_MEASURED, "real libraries")
            found = []
            for library in (baselines or _USUAL_RECORDED) if by_engine else (selectors or SMPI_SELECTORS):
                try:
                    found.append(collwise.guidelines(library, platform=platform, ppn=where.ppn, **shared))
                except UsageError:
                    raise
                except CollwiseError as problem:
                    problems.append(problem)
        else:
            refuse_options(options.SIMULATING, "--platform")
            method = Method(precision=Precision(1 if nrep else repetitions, repetitions), nrep=nrep)
            measuring = Measuring(method, launches, lambda done, of: note(f"{done} of {of} launches"))
            found = [collwise.guidelines(target_from(where), measuring=measuring, **shared)]
    _write(found, output, figures, csv)
    _show(found, as_json)
    if problems:
        raise problems[0]


def _check_table(table: Path, platform: HostPlatform, tolerance: float, asked: dict[str, Any], as_json: bool) -> None:
    """Checks the choices of a file and shows what is broken; `asked` are other arguments of `check_decisions`."""

    found = collwise.check_decisions(decisions_from(table), platform, tolerance=tolerance, **asked)
    if as_json:
        document = report.own_document(found)
        print_json(document.pop("combinations"), document)
        return
    if found.combinations:
        title = f"{table} on {platform.title}: combinations that are faster than the table's choice"
        rows = [report.combination_row(one) for one in found.combinations]
        print_table(title, report.COMBINATION_COLUMNS, rows, left=1, keys=3)
    if others := [report.comparison_row(one) for one in found.checked.violations if one.kind != PATTERN]:
        print_table("Monotony and split-robustness", report.COLUMNS[:-2], others, left=1, keys=4)
    for line in report.own_lines(found):
        click.echo(line)


def _write(found: Sequence[LibraryGuidelines], output: Path | None, figures: Path | None, csv: Path | None) -> None:
    if output is not None:
        for one in found:
            for file in one.write(output):
                note(f"written: {file}")
    if figures is not None:
        for one in found:
            for procs in one.result.plan.procs:
                write_figure(one.figure(procs), figures / f"guidelines-{one.result.library.name}-{procs}.png")
    if csv is not None:
        write_text(csv, csv_text(_comparisons(found)))


def _comparisons(found: Sequence[LibraryGuidelines]) -> list[dict[str, Any]]:

    return [record for one in found for record in report.comparison_records(one.result)]


def _show(found: Sequence[LibraryGuidelines], as_json: bool) -> None:

    if as_json:
        print_json(_comparisons(found), {"libraries": [report.document(one.result) for one in found]})
        return
    for one in found:
        result = one.result
        title = f"{result.library.title}, {result.library.place}: violations ({result.plan.criterion.description})"
        if rows := report.violation_rows(result):
            print_table(title, report.COLUMNS, rows, left=1, keys=4)
        else:
            click.echo(f"{title}: none")
        if new := report.new_rows(result):
            print_table("With the repairs: violations that were none before", report.LEFT_COLUMNS, new, left=1, keys=4)
        for line in one.summary():
            click.echo(line)
    if len(found) > 1:
        print_table("All libraries", report.SUMMARY_COLUMNS, [report.summary_row(one.result) for one in found], left=2)
