"""collwise compare, select, export, report: the comparison layer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from collwise.common.errors import CollwiseError, UsageError, unknown_name
from collwise.common.files import writable_file, writable_folder, write_text
from collwise.common.units import format_size
from collwise.models.parameters import MODELS, ModelParameters
from collwise.platforms import HostPlatform
from collwise.simulator.store import Store
from collwise.simulator.sweep import simulate as run_sweep
from collwise.studies.commands.shared import (
    COUNTS,
    NAMES,
    PLATFORM,
    SEGMENTS,
    SIZES,
    algorithm_names,
    collective_option,
    json_option,
    platform_option,
    ppn_option,
    print_json,
    processes_per_node,
    run_options,
    stdout_console,
    sweep_progress,
    table,
)
from collwise.studies.tuning import one_choice_a_count, summary_line, table_columns, table_row
from collwise.validation.export import OPENMPI_VERSIONS, openmpi_rules
from collwise.validation.fitting import Plan, default_procs, fit
from collwise.validation.grid import DECISION_SIZES
from collwise.validation.grid import SIZES as SIZES_OF_PAPER
from collwise.validation.openmpi import Choice
from collwise.validation.selection import (
    Comparison,
    ComparisonPlan,
    DecisionTable,
    select_by_model,
    select_by_simulation,
)
from collwise.validation.selection import compare as run_comparison

_DECISIONS_FORMAT = "collwise decisions 1"
_WIDE = "8KiB:128KiB:x2"
_ONE_OR_MORE = "Segment sizes that a choice may have, as a list or range; the least is the common one."


def _parameters(
    file: Path | None, platform: HostPlatform, ppn: int, segments: Sequence[int], store: Store, engine: str | None,
    jobs: int | None,
) -> ModelParameters:  # fmt: skip
    """Those of the file, or fitted now (from the store where the experiments are there)."""
    if file is None:
        plan = Plan(default_procs(platform, ppn), ppn, segments[0], more_segments=tuple(segments[1:]))
        with sweep_progress(f"{platform.name}: fitting models") as progress:
            return fit(platform, plan, store, engine_version=engine, jobs=jobs, on_progress=progress)
    parameters = ModelParameters.load(file)
    if parameters.platform != platform.name or parameters.processes_per_node != ppn:
        raise UsageError(
            f"{file}: parameters of platform '{parameters.platform}' with {parameters.processes_per_node} per node, "
            f"not of '{platform.name}' with {ppn}"
        )
    return parameters


@click.command()
@platform_option
@collective_option
@click.option("--procs", required=True, type=COUNTS, help="Process counts: 50,80,90.")
@click.option("--sizes", type=SIZES, help="Message sizes: 8KiB:4MiB:x2. Default: the paper's.")
@click.option("--algorithms", type=NAMES, help="Names by commas. Default: all that can be chosen.")
@click.option("--segments", type=SEGMENTS, default="8KiB", show_default=True, help=_ONE_OR_MORE)
@click.option("--parameters", type=click.Path(path_type=Path), help="From 'collwise fit'. Default: fitted now.")
@click.option("--model", type=click.Choice(MODELS), default="by_parts", show_default=True)
@click.option("--figures", type=click.Path(path_type=Path), help="Write figures into this folder.")
@ppn_option
@run_options
@json_option
def compare(
    platform: HostPlatform,
    collective: str,
    procs: tuple[int, ...],
    sizes: tuple[int, ...] | None,
    algorithms: Sequence[str] | None,
    segments: tuple[int, ...],
    parameters: Path | None,
    model: str,
    figures: Path | None,
    ppn: int | None,
    store: Path,
    engine: str | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """For each P and m: the best algorithm by simulated time, and what the model's and Open MPI's picks cost.

    A choice is an algorithm, and with several --segments also a segment size; in brackets its cost over the best one
    in percent. Open MPI is the fixed decision of 3.1. With one segment size, "Open MPI" has its algorithm at that size,
    as in the paper, and the last column the segment sizes that Open MPI ships, which may beat it (negative).
    """
    ppn = processes_per_node(platform, ppn)
    names = algorithm_names(collective, algorithms)
    if figures is not None:
        writable_folder(figures)
    plan = ComparisonPlan(
        collective, procs, tuple(sizes or SIZES_OF_PAPER[collective]), ppn, segments[0], names, segments[1:]
    )
    for count in procs:
        platform.hosts_for(count, ppn)
    with Store(store) as opened:
        fitted = _parameters(parameters, platform, ppn, segments, opened, engine, jobs)
        with sweep_progress(f"{platform.name}: simulating {collective}") as progress:
            result = run_comparison(
                platform, plan, fitted, opened,
                model=model, engine_version=engine, jobs=jobs, on_progress=progress,
            )  # fmt: skip
    if figures is not None:
        _write_figures(figures, platform, collective, result.rows)
    if as_json:
        print_json([_row_record(row) for row in result.rows])
    elif result.rows:
        widths = ", ".join(map(format_size, segments))
        title = f"{collective} on {platform.title}, segments of {widths}, {result.sweep.configuration.maker}"
        rows = [table_row(row) for row in result.rows]
        stdout_console().print(table(title, table_columns(result.rows), rows, left=0))
        click.echo(summary_line(result))
    if result.sweep.failed:
        raise CollwiseError(f"{len(result.sweep.failed)} cases failed; first: {result.sweep.failed[0].error}")


def _write_figures(folder: Path, platform: HostPlatform, collective: str, rows: Sequence[Comparison]) -> None:
    from collwise.studies import figures as draw

    title = f"{collective} on {platform.title}, simulated"
    stem = f"{platform.name}-{collective}"
    draw.save(draw.picks_by_size(rows, title), folder / f"{stem}-by-size.png")
    if len({row.procs for row in rows}) > 3:
        draw.save(draw.picks_by_procs(rows, title), folder / f"{stem}-by-procs.png")
    largest = max(row.procs for row in rows)
    here = [row for row in rows if row.procs == largest]
    draw.save(draw.algorithms_by_size(here, f"{title}, P = {largest}"), folder / f"{stem}-algorithms.png")


def _row_record(row: Comparison) -> dict[str, object]:
    def pick(source: str) -> dict[str, object]:
        chosen = getattr(row, source)
        return {**vars(chosen.choice), "seconds": chosen.seconds, "degradation": chosen.degradation}

    return {
        "collective": row.collective,
        "procs": row.procs,
        "message_bytes": row.message_bytes,
        **{source: pick(source) for source in ("best", "model", "openmpi", "openmpi_shipped")},
        "simulated_seconds": dict(row.simulated),
        "predicted_seconds": dict(row.predicted),
    }


@click.command()
@collective_option
@click.option("--by", type=click.Choice(["model", "simulation"]), default="model", show_default=True)
@click.option("--parameters", type=click.Path(path_type=Path), help="From 'collwise fit'; for --by model.")
@click.option("--platform", type=PLATFORM, help="For --by simulation.")
@click.option("--procs", required=True, type=COUNTS, help="Process counts: 2:124:+1.")
@click.option("--sizes", type=SIZES, help="Message sizes. Default: 8 KiB (gather: 64 KiB) and up by doubling.")
@click.option(
    "--one-choice/--by-size",
    default=None,
    help="One algorithm a process count, or by message size. Default: one for gather (see the rules file's WARNING).",
)
@click.option("--segments", type=SEGMENTS, default=_WIDE, show_default=True, help=_ONE_OR_MORE)
@click.option("--model", type=click.Choice(MODELS), default="by_parts", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the decision table (JSON) here.")
@ppn_option
@run_options
@json_option
def select(
    collective: str,
    by: str,
    parameters: Path | None,
    platform: HostPlatform | None,
    procs: tuple[int, ...],
    sizes: tuple[int, ...] | None,
    one_choice: bool | None,
    segments: tuple[int, ...],
    model: str,
    output: Path | None,
    ppn: int | None,
    store: Path,
    engine: str | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Makes a decision table: which algorithm to run for each P and from which message size."""
    names = algorithm_names(collective, None)
    sizes = tuple(sizes or DECISION_SIZES[collective])
    if output is not None:
        writable_file(output)
    single = one_choice_a_count(collective) if one_choice is None else one_choice
    if by == "model":
        if parameters is None:
            raise click.UsageError("--by model needs --parameters FILE (make one: collwise fit)")
        fitted = ModelParameters.load(parameters)
        plan = ComparisonPlan(collective, procs, sizes, fitted.processes_per_node, segments[0], names, segments[1:])
        decisions = select_by_model(fitted, plan, model, single)
    else:
        if platform is None:
            raise click.UsageError("--by simulation needs --platform")
        ppn = processes_per_node(platform, ppn)
        plan = ComparisonPlan(collective, procs, sizes, ppn, segments[0], names, segments[1:])
        with Store(store) as opened, sweep_progress(f"{platform.name}: simulating {collective}") as progress:
            cases = [plan.case(choice, p, m) for p in procs for m in sizes for choice in plan.candidates().values()]
            sweep = run_sweep(platform, cases, opened, engine_version=engine, jobs=jobs, on_progress=progress)
        decisions = select_by_simulation(platform, plan, sweep, single)
    document = decisions_document(decisions)
    if output is not None:
        write_text(output, json.dumps(document, indent=2) + "\n")
    if as_json:
        print_json(document)
        return
    rows = [
        (p, format_size(start), choice.algorithm, format_size(choice.segment_bytes) if choice.segment_bytes else "-")
        for p, entries in decisions.rules.items()
        for start, choice in entries
    ]
    title = f"{collective} on {decisions.platform} by {decisions.made_by}"
    columns = ["from P", "from m", "algorithm", "segment"]
    stdout_console().print(table(title, columns, rows, left=0))


def decisions_document(decisions: DecisionTable) -> dict[str, Any]:
    """A decision table as plain data, which `decisions_from` reads."""
    return {
        "format": _DECISIONS_FORMAT,
        "collective": decisions.collective,
        "platform": decisions.platform,
        "made_by": decisions.made_by,
        "rules": {
            str(p): [{"from_bytes": start, **vars(choice)} for start, choice in entries]
            for p, entries in decisions.rules.items()
        },
    }


def decisions_from(path: Path) -> DecisionTable:
    """Reads a file that `collwise select -o` wrote. Raises UsageError naming it."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document.get("format") != _DECISIONS_FORMAT:
            raise UsageError(f"{path}: not a decision table; make one with: collwise select -o FILE")
        rules = {
            int(p): tuple(
                (entry["from_bytes"], Choice(entry["algorithm"], entry["segment_bytes"], entry["fanout"]))
                for entry in entries
            )
            for p, entries in document["rules"].items()
        }
        return DecisionTable(document["collective"], document["platform"], document["made_by"], rules)
    except OSError as problem:
        raise UsageError(f"cannot read {path}: {problem.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise UsageError(f"{path}: not a decision table ({problem}); make one with: collwise select -o FILE") from None


@click.command()
@click.argument("decisions", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--format", "format_name", default="openmpi", show_default=True, help="openmpi: classic dynamic rules.")
@click.option("--openmpi-version", default="4.1", show_default=True, help=", ".join(OPENMPI_VERSIONS))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="The rules file.")
@click.option("--check", is_flag=True, help="Run the installed Open MPI with the rules and see what it does.")
def export(decisions: Sequence[Path], format_name: str, openmpi_version: str, output: Path, check: bool) -> None:
    """Writes rules that an MPI library reads from DECISIONS files (one a collective, from 'collwise select')."""
    if format_name != "openmpi":
        raise unknown_name("format", format_name, ["openmpi"])
    tables = [decisions_from(path) for path in decisions]
    text = openmpi_rules(tables, openmpi_version)
    write_text(output, text)
    click.echo(f"{output}: rules for Open MPI {openmpi_version}; use them with")
    click.echo(
        "  mpirun --mca coll_tuned_use_dynamic_rules 1 "
        f"--mca coll_tuned_dynamic_rules_filename {output.resolve()} --mca coll ^han ..."
    )
    if "WARNING" in text:
        click.echo("collwise: the file's head has a WARNING on MPI_Gather with MPI_IN_PLACE: read it", err=True)
    if check:
        from collwise.studies.rules_check import check_all

        wrong = 0
        for line, ok in check_all(output, tables):
            click.echo(line)
            wrong += not ok
        if wrong:
            raise CollwiseError(f"{wrong} of the checks did not run as the rules say")


@click.command()
@platform_option
@click.option("--procs", required=True, type=COUNTS, help="Process counts to compare: 50,80,90.")
@click.option("--collectives", type=NAMES, default="bcast,gather", show_default=True)
@click.option("--segments", type=SEGMENTS, default=_WIDE, show_default=True, help=_ONE_OR_MORE)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder. Default: results/PLATFORM-report")
@ppn_option
@run_options
def report(
    platform: HostPlatform,
    procs: tuple[int, ...],
    collectives: Sequence[str],
    segments: tuple[int, ...],
    output: Path | None,
    ppn: int | None,
    store: Path,
    engine: str | None,
    jobs: int | None,
) -> None:
    """The main job for one platform: an HTML report with tables and figures, and Open MPI rules beside it."""
    from collwise.studies.report import write_report
    from collwise.studies.tuning import tune

    for name in collectives:
        algorithm_names(name, None)
    output = writable_folder(output or Path("results") / f"{platform.name}-report")
    with Store(store) as opened:
        tuning = tune(
            platform, collectives, procs, opened, processes_per_node=ppn, segments=segments,
            engine_version=engine, jobs=jobs, progress=sweep_progress,
        )  # fmt: skip
    page = write_report([tuning], output)
    click.echo(f"report: {page}")
    if tuning.failures:
        raise CollwiseError(f"{tuning.failures} cases failed; their rows are left out")
