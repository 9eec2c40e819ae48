"""collwise select: decision tables of the algorithm for each P and m."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import collwise
from collwise import arguments
from collwise.common.errors import UsageError, note
from collwise.common.program import program_name
from collwise.common.units import counted, format_size
from collwise.platforms import HostPlatform
from collwise.studies.cli import declare, options, types
from collwise.studies.cli.declare import command, flag, group, option
from collwise.studies.cli.output import check_failed, print_json, print_table
from collwise.studies.cli.types import COUNTS, NAMES, NEW_FILE, PATH, SIZES
from collwise.validation.select.consumers import ALL_CONSUMERS, needs_one_choice, openmpi_version
from collwise.validation.select.decisions import (
    DecisionTable,
    beats_own,
    decisions_document,
    loss_of,
    spans,
    undecided_points,
)
from collwise.validation.times.choice import LIBRARY_DECIDES
from collwise.validation.times.defaults import AGREEMENT, SEGMENTS_TEXT, TIE_LIMIT, TOLERANCE_PERCENT

if TYPE_CHECKING:
    from collwise.simulator.sweeps.context import SimulationContext
    from collwise.validation.times.times import Times

_TIMES = types.NamedChoice("source of times", ("predicted", "simulated", "measured"))
_MOST_ROWS = 200


@command("select --collective bcast --parameters mine.parameters.toml --procs 4,8 --for openmpi-4.1 -o bcast.json")
def select(
    collectives: Sequence[str] = options.COLLECTIVES,
    by: str = option(_TIMES, "predicted"),
    parameters: Path | None = option(PATH),
    platform: HostPlatform | types.Unknown | None = options.placed_platform(option(types.PLATFORM_OR_NAME)),
    procs: tuple[int, ...] | None = option(COUNTS),
    how: dict[str, Any] = group(
        dict,
        sizes=option(SIZES),
        exact=flag(),
        consumer=option(types.NamedChoice("decision consumer", ALL_CONSUMERS)),
        one_choice=option(default=None),
        tolerance=option(float, TOLERANCE_PERCENT),
        segments=option(SIZES, said={"segments_text": SEGMENTS_TEXT}),
        name=options.MODEL,
        by_node=flag(),
        guidelines=flag(),
        configuration=option(NAMES),
        fill=option(types.NamedChoice("source that fills gaps", ("simulated", "predicted"))),
        agreement=option(float, AGREEMENT * 100),
        tie_limit=option(float, TIE_LIMIT * 100),
    ),
    output: Path | None = option(NEW_FILE),
    ppn: int | None = options.PPN,
    simulation: options.SimulationOptions = options.SIMULATION,
    as_json: bool = options.JSON,
) -> None:
    """Makes decision tables: the algorithm to run for each P, and the message size from which to run it.

    A table has the fewest rows in which no choice is slower than the best one by more than the --tolerance at any of
    --sizes. By predicted times a row changes between two sizes at the byte from which on the later choice is faster,
    and the command says what is lost between the sizes; with --exact nothing beyond the tolerance is, and with
    --tolerance 0 looking up then decides as evaluating the formulas would. Measured choices whose confidence interval
    overlaps the best one's are as good as it. An algorithm that needs a power of two or an even number of processes
    holds only for the P where it was decided; from P + 1 on the best one that always runs follows it.
    """
    if by == "predicted" and parameters is None:
        raise click.UsageError("--by predicted needs --parameters FILE (make one: collwise fit)")
    if by == "simulated" and platform is None:
        raise click.UsageError("--by simulated needs --platform")
    if by == "simulated" and procs is None:
        raise click.UsageError("--by simulated needs --procs, for example --procs 8,16,32")
    if by != "predicted" and how["exact"]:
        raise click.UsageError(f"--exact is for --by predicted; {by} times are known at single sizes only")
    if by == "predicted" and how["by_node"]:
        raise click.UsageError("--by-node is for --by simulated: algorithms by node are chosen by simulated times only")
    if by == "predicted" and how["guidelines"]:
        raise click.UsageError("--guidelines is for --by simulated and measured: no model predicts mock-ups")
    if by != "predicted" and how["fill"] != "predicted":
        declare.refuse_options(("parameters", "name"), "--by predicted, or --fill predicted")
    if by != "simulated" and how["fill"] != "simulated":
        declare.refuse_options(options.SIMULATING, "--by simulated, or --fill simulated")
    if by != "measured":
        declare.refuse_options(("configuration", "fill", "agreement", "tie_limit"), "--by measured")
    elif how["fill"] == "predicted" and parameters is None:
        raise click.UsageError("--fill predicted needs --parameters FILE (make one: collwise fit)")
    if isinstance(platform, types.Unknown) and (by != "measured" or how["fill"] == "simulated"):
        raise platform.problem
    if by == "measured":
        simulation.check_store()
    # Predicted times need the progress only.
    with (options.SimulationOptions(Path(":memory:")) if by == "predicted" else simulation).context() as context:
        times = _times_by(by, collectives, parameters, platform, procs, ppn, how, context)
        chosen = {name: how[name] for name in ("consumer", "one_choice", "tolerance", "exact", "tie_limit")}
        decisions = collwise.select({one.collective: one for one in times}, **chosen)
    if by == "simulated" and how["by_node"]:
        note("forms of algorithms that use memory which the processes of a node share are not simulated, and no choice")
    if output is not None:
        decisions.save(output)
    if as_json:
        rows = [
            {"collective": table.collective, "procs": p, "from_bytes": start, **vars(choice)}
            for table in decisions.tables
            for p, row in table.rules.items()
            for start, choice in row
        ]
        print_json(rows, {"tables": decisions_document(decisions.tables)})
    else:
        for decided in decisions.tables:
            _print_decisions(decided, how["tolerance"], openmpi_version(how["consumer"] or ""))
        if output is not None:
            click.echo(f"written: {output}")
    check_failed(decisions.failed)


def _times_by(
    by: str,
    collectives: Sequence[str],
    parameters: Path | None,
    platform: HostPlatform | types.Unknown | None,
    procs: tuple[int, ...] | None,
    ppn: int | None,
    how: Mapping[str, Any],
    context: SimulationContext,
) -> Sequence[Times]:
    """The times of a source that the options ask for."""
    from collwise.studies.cli import deciding

    for name, what in (("tolerance", "tolerance"), ("tie_limit", "limit of ties")):
        arguments.check_percent(what, how[name])
    consumer, fill, agreement = how["consumer"], how["fill"], how["agreement"]
    algorithms = deciding.choosable(collectives, consumer, how["by_node"], how["guidelines"])
    single = {name: needs_one_choice(name, consumer) for name in algorithms if how["one_choice"] is None}
    margins = {name: how["tolerance"] / 100 for name in algorithms if not single.get(name, how["one_choice"])}
    asked = deciding.Asked(algorithms, consumer, procs, how["sizes"], how["segments"], ppn, margins)
    where = None if isinstance(platform, types.Unknown) else platform
    if by == "measured":
        if fill is not None and not 0 <= agreement < 100:
            raise UsageError(f"agreement within {agreement:g} percent; valid: from 0 to below 100")
        filler = None
        if fill == "simulated":
            if where is None:
                raise UsageError("gaps filled by simulation need a platform")
            filler = deciding.filled_by_simulation(where, context)
        elif fill == "predicted" and parameters is not None:
            filler = deciding.filled_by_model(parameters, how["name"])
        return deciding.measured_times(asked, platform, how["configuration"], filler, agreement / 100, context)
    if where is not None and ppn is not None:
        where.check_processes_per_node(ppn)
    if by == "predicted":
        assert parameters is not None
        return deciding.predicted_times(asked, parameters, how["name"], where, context)
    assert where is not None
    return deciding.simulated_times(asked, where, context)


def _print_decisions(decisions: DecisionTable, tolerance: float, version: str | None) -> None:
    """Prints a table, and by its times the loss of its choices or, for a version of Open MPI, of its rules."""
    from collwise.validation.exports.formats import for_openmpi
    from collwise.validation.openmpi.untuned import summary_over_untuned

    rows: list[tuple[object, ...]] = []
    for p, row in decisions.rules.items():
        for start, end, choice in spans(row):
            segment = format_size(choice.segment_bytes) if choice.segment_bytes else "-"
            star = " *" if decisions.rests_on_gaps(p, start, end) else ""
            rows.append((p, format_size(start), choice.algorithm + star, segment))
        if not row:
            rows.append((p, "-", "nothing decided", "-"))
    title = f"{decisions.collective} on {decisions.platform} by {decisions.made_by}"
    columns = ["from P", "from m", "algorithm", "segment"]
    print_table(title, columns, rows[:_MOST_ROWS], left=0, keys=2)
    left_out = f", of which these are the first {_MOST_ROWS}; --json prints all, -o FILE keeps them"
    click.echo(f"{counted(len(rows), 'row')}, tolerance {tolerance:g} %{left_out if len(rows) > _MOST_ROWS else ''}")
    decided = any(decisions.rules.values())
    said = for_openmpi([decisions], version)[0][0] if version is not None and decided else decisions
    loss = loss_of(said)
    if loss.points:
        mean, worst = f"{loss.mean * 100:.2f} %", f"{loss.worst * 100:.1f} %"
        what, best = "choices", "the best"
        if version is not None:
            what, best = f"rules for Open MPI {version}", "the best that they can name"
        click.echo(f"by these times the {what} are {mean} slower than {best} on average, at most {worst}")
    if version is not None and (line := summary_over_untuned(said, version)):
        click.echo(line)
    undecided, points = undecided_points(decisions)
    if points:
        click.echo(_undecided_text(undecided, points))
        if decisions.source == "measured":
            click.echo(_own_text(decisions))
    if decisions.between is not None:
        click.echo(f"between the sizes, {decisions.between}")
    if any(str(row[2]).endswith(" *") for row in rows) and decisions.times is not None:
        click.echo(f"* at some of its sizes by {decisions.times.filled_by}, where the choice was not measured")


def _own_text(decisions: DecisionTable) -> str:
    """A sentence on measured choices against MPI's own collective."""
    known = decisions.times
    if known is None or LIBRARY_DECIDES not in known.grid.timed:
        return (
            "MPI's own collective is not among these times: measure it with --algorithms library, or the table with "
            f"'{program_name()} gain'"
        )
    chosen = {point: decisions.choice_at(*point) for point in known.grid.points}
    own = {point: known.seconds_of(LIBRARY_DECIDES, *point) for point in chosen}
    both = {point: one for point, one in chosen.items() if one and not math.isnan(own[point])}
    faster = sum(beats_own(known, one, *point) for point, one in both.items())
    left = "" if faster == len(both) else "; rules for Open MPI and libcollwise leave the others to MPI"
    return f"faster than MPI's own collective beyond the intervals at {faster} of {counted(len(both), 'point')}{left}"


def _undecided_text(undecided: int, points: int) -> str:
    """A sentence on how far confidence intervals tell the best measured choice."""
    if not undecided:
        return f"at {'the only point' if points == 1 else f'all {points} points'} the intervals tell the best choice"
    return (
        f"undecided at {undecided} of {counted(points, 'point')}: the interval of the fastest choice overlaps another "
        "one's; more --launches of measure make intervals narrower"
    )
