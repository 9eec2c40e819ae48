"""collwise models: which models there are and what they have formulas for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

import click

from collwise.models.point_to_point import AS_PRINTED
from collwise.studies.cli.commands import example
from collwise.studies.cli.options import COLLECTIVES, json_option, print_json
from collwise.studies.cli.tables import stdout_console, table
from collwise.validation.fitting.coverage import Row, about_models, coverage


@click.command(epilog=example("models --collective bcast"))
@click.option("--collective", "collectives", type=COLLECTIVES, help="Names by commas, or all: who has which formula.")
@json_option
def models(collectives: Sequence[str] | None, as_json: bool) -> None:
    """Every model of collectives: what it is, what estimates it and, with --collective, which formulas it has.

    Where a model has no formula, select, compare, map, predict and evaluate leave the algorithm out and say so.
    """
    about = about_models()
    if as_json:
        known: dict[str, object] = {"models": [asdict(one) for one in about]}
        if collectives:
            known["coverage"] = [asdict(row) for row in coverage(collectives)]
        print_json(known)
    elif collectives:
        for collective, rows in groupby(coverage(collectives), key=lambda row: row.collective):
            _print_coverage(collective, list(rows))
        click.echo(f"Models that end in {AS_PRINTED} have formulas where those without it have.")
    else:
        lines = [(one.name, one.what, ", ".join(one.procedures), one.paper) for one in about]
        columns = ["model", "what it is", "estimated by", "paper"]
        stdout_console().print(table("Models of collectives", columns, lines, left=len(columns), wrap=True))


def _print_coverage(collective: str, rows: Sequence[Row]) -> None:
    if not any(any(row.formulas.values()) for row in rows):
        click.echo(f"{collective}: no formula in any model for {', '.join(row.algorithm for row in rows)}")
        return
    cells = [(row.algorithm, _names(row, True), _names(row, False)) for row in rows]
    columns = ["algorithm", "formula", "no formula"]
    stdout_console().print(table(f"{collective}: which models have a formula", columns, cells, left=3, wrap=True))


def _names(row: Row, has: bool) -> str:
    """The models with, or without, a formula; those as printed have what those of the same name have."""
    return ", ".join(name for name, one in row.formulas.items() if one == has and not name.endswith(AS_PRINTED)) or "-"
