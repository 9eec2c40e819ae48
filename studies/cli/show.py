"""collwise show: models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

import click

from collwise.models.registry import MODELS, Coverage, coverage
from collwise.studies.cli import options, types
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.declare import command, option
from collwise.studies.cli.output import print_json, print_table


@click.group(cls=CommandGroup, epilog=example("show models"))
def show() -> None:
    """Shows what collwise knows of algorithms and models."""


@command("show models --collective bcast", parent=show)
def models(
    collectives: Sequence[str] | None = option(types.COLLECTIVES),
    as_json: bool = options.JSON,
) -> None:
    """Lists the models of collectives with the procedures that estimate them; with --collective, also their formulas.

    If a model has no formula, select, compare, decision-map, predict and evaluate leave the algorithm out and say so.
    """
    if as_json:
        known = [
            {"name": name, "what": kind.title, "paper": kind.paper, "procedures": kind.procedures}
            for name, kind in MODELS.items()
        ]
        if collectives:
            print_json([asdict(row) for row in coverage(collectives)], {"models": known})
        else:
            print_json(known)
    elif collectives:
        for collective, rows in groupby(coverage(collectives), key=lambda row: row.collective):
            cells = [(row.algorithm, _names(row, True), _names(row, False)) for row in rows]
            columns = ["algorithm", "formula or schedule", "neither"]
            print_table(f"{collective}: which models predict what", columns, cells, left=3, wrap=True)
        click.echo("Models that end in _as_printed have formulas where those without it have.")
    else:
        lines = [(name, kind.title, ", ".join(kind.procedures), kind.paper) for name, kind in MODELS.items()]
        columns = ["model", "what it is", "estimated by", "paper"]
        print_table("Models of collectives", columns, lines, left=len(columns), wrap=True)


def _names(row: Coverage, has: bool) -> str:
    """The models with, or without, a formula; printed forms are left out, since they cover what their families do."""
    return ", ".join(name for name, one in row.formulas.items() if one == has and not MODELS[name].printed) or "-"
