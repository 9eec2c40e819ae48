"""collwise models: which models there are and what they have formulas for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

import click

from collwise.models.registry import MODELS, Coverage, coverage
from collwise.studies.cli.commands import example
from collwise.studies.cli.options import COLLECTIVES, json_option, print_json
from collwise.studies.cli.tables import stdout_console, table


@click.command(epilog=example("models --collective bcast"))
@click.option("--collective", "collectives", type=COLLECTIVES, help="Names by commas, or all: show their coverage.")
@json_option
def models(collectives: Sequence[str] | None, as_json: bool) -> None:
    """Every model of collectives: what it is, what estimates it and, with --collective, which formulas it has.

    Where a model has no formula, select, compare, map, predict and evaluate leave the algorithm out and say so.
    """
    if as_json:
        known: dict[str, object] = {
            "models": [
                {"name": name, "what": kind.title, "paper": kind.paper, "procedures": kind.procedures}
                for name, kind in MODELS.items()
            ]
        }
        if collectives:
            known["coverage"] = [asdict(row) for row in coverage(collectives)]
        print_json(known)
    elif collectives:
        for collective, rows in groupby(coverage(collectives), key=lambda row: row.collective):
            _print_coverage(collective, list(rows))
        click.echo("Models that end in _as_printed have formulas where those without it have.")
    else:
        lines = [(name, kind.title, ", ".join(kind.procedures), kind.paper) for name, kind in MODELS.items()]
        columns = ["model", "what it is", "estimated by", "paper"]
        stdout_console().print(table("Models of collectives", columns, lines, left=len(columns), wrap=True))


def _print_coverage(collective: str, rows: Sequence[Coverage]) -> None:
    if not any(any(row.formulas.values()) for row in rows):
        click.echo(f"{collective}: no formula in any model for {', '.join(row.algorithm for row in rows)}")
        return
    cells = [(row.algorithm, _names(row, True), _names(row, False)) for row in rows]
    columns = ["algorithm", "formula", "no formula"]
    stdout_console().print(table(f"{collective}: which models have a formula", columns, cells, left=3, wrap=True))


def _names(row: Coverage, has: bool) -> str:
    """The models with, or without, a formula; printed forms are left out, since they cover what their families do."""
    return ", ".join(name for name, one in row.formulas.items() if one == has and not MODELS[name].printed) or "-"
