"""collwise algorithms: the catalogue."""

from __future__ import annotations

from dataclasses import asdict

import click

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.studies.commands.shared import json_option, print_json, stdout_console, table


@click.command()
@click.option("--collective", help="Only this one.")
@json_option
def algorithms(collective: str | None, as_json: bool) -> None:
    """Every collective and algorithm: parameters, requirements, ids in Open MPI, reference."""
    catalogue = Catalogue.load()
    chosen = [catalogue.collective(collective)] if collective else list(catalogue.collectives.values())
    if as_json:
        print_json([asdict(algorithm) for entry in chosen for algorithm in entry.algorithms.values()])
        return
    for entry in chosen:
        rows = [_row(algorithm) for algorithm in entry.algorithms.values()]
        columns = ["algorithm", "topology", "parameters", "Open MPI ids", "reference"]
        stdout_console().print(table(f"{entry.title} (message bytes: {entry.message_bytes})", columns, rows, left=5))


def _row(algorithm: Algorithm) -> tuple[str, ...]:
    parameters = [f"{name}={algorithm.default_fanout}" if name == "fanout" else name for name in algorithm.parameters]
    ids = ", ".join(f"{version}: {number}" for version, number in algorithm.openmpi.items())
    name = algorithm.name if algorithm.selectable else f"{algorithm.name} (building block)"
    return name, algorithm.topology, ", ".join(parameters) or "-", ids or "-", algorithm.reference
