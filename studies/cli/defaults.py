"""collwise defaults: what untuned libraries run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import CollwiseError, note
from collwise.common.units import counted, format_size
from collwise.studies.cli import options
from collwise.studies.cli.declare import command, flag, option
from collwise.studies.cli.output import print_json, print_table
from collwise.studies.cli.types import COUNTS, SIZES
from collwise.validation.libraries.baselines import Baseline
from collwise.validation.libraries.installed import check
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import sizes_of

if TYPE_CHECKING:
    pass


@command("defaults --baseline openmpi-4.1 --collective allreduce --procs 16,1024")
def defaults(
    baseline: Baseline = options.BASELINE,
    collectives: Sequence[str] = options.COLLECTIVES,
    procs: tuple[int, ...] = option(COUNTS, required=True),
    sizes: tuple[int, ...] | None = option(SIZES),
    checked: bool = flag(),
    as_json: bool = options.JSON,
) -> None:
    """Shows the algorithms that an MPI library runs untuned, for each P and from each message size on.

    'in the catalogue' is the choice that sends the same messages, with which compare, report, decision-map and evaluate
    time the library. Decisions are for one process on each node, a commutative operation, and blocks of one size. With
    --check Open MPI itself is asked, for any number of processes, without running the algorithms; of MPICH the tables
    are read by which it selects them. The exit code is 1 if one decides otherwise.
    """
    points = [(name, count, size) for name in collectives for count in procs for size in sizes_of(name, sizes)]
    decisions = {point: baseline.decide(*point) for point in points if point[1] > 1}
    if as_json:
        print_json(
            [
                {
                    "baseline": baseline.name,
                    "collective": collective,
                    "procs": count,
                    "message_bytes": size,
                    "algorithm": decision.algorithm,
                    "choice": None if decision.choice is None else vars(decision.choice),
                }
                for (collective, count, size), decision in decisions.items()
            ]
        )
    else:
        rows: list[tuple[object, ...]] = []
        before: tuple[object, ...] = ()
        for (collective, count, size), decision in decisions.items():
            now = (collective, count, decision.algorithm, _described(collective, decision.choice))
            if now != before:
                rows.append((collective, count, format_size(size), *now[2:]))
            before = now
        columns = ["collective", "P", "from m", "algorithm", "in the catalogue"]
        print_table(f"{baseline.title}, untuned", columns, rows, left=1, keys=3)
    if baseline.nodes:
        note(baseline.nodes)
    if checked:
        _check(baseline, list(decisions))


def _described(collective: str, choice: Choice | None) -> str:
    """The choice with its parameters: 'linear_sync max_requests=15'; '-' for none."""
    if choice is None:
        return "-"
    algorithm = Catalogue.load().algorithm(collective, choice.algorithm)
    named = algorithm.named_parameters(choice.segment_bytes, choice.fanout)
    return " ".join([choice.algorithm, *(f"{name}={value}" for name, value in named.items() if name != "first_bytes")])


def _check(baseline: Baseline, points: Sequence[tuple[str, int, int]]) -> None:

    found = check(baseline, points)
    wrong = [one for one in found if not one.agrees]
    for one in wrong:
        collective, count, size = one.point
        click.echo(f"{collective}, P = {count}, {format_size(size)}: {one.found}, not {one.expected}", err=True)
    if wrong:
        raise CollwiseError(
            f"the installed library decides otherwise for {counted(len(wrong), 'call')} of {len(found)}"
        )
    others = f"; {counted(len(points) - len(found), 'call')} could not be asked" if len(found) < len(points) else ""
    click.echo(f"the installed library decides the same for {counted(len(found), 'call')}{others}", err=True)
