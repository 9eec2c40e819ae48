"""collwise algorithms: the catalogue."""

from __future__ import annotations

from dataclasses import asdict

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.studies.cli import options
from collwise.studies.cli.declare import argument, command, option
from collwise.studies.cli.output import print_json, print_table
from collwise.studies.cli.types import COLLECTIVE


@command("algorithms --collective bcast")
def algorithms(
    named: str | None = argument(COLLECTIVE, required=False, metavar="[COLLECTIVE]"),
    collective: str | None = option(COLLECTIVE),
    as_json: bool = options.JSON,
) -> None:
    """Lists every collective and algorithm: parameters, requirements, ids in Open MPI, reference."""
    catalogue = Catalogue.load()
    name = collective or named
    chosen = [catalogue.collective(name)] if name else list(catalogue.collectives.values())
    if as_json:
        print_json([asdict(algorithm) for entry in chosen for algorithm in entry.algorithms.values()])
        return
    for entry in chosen:
        rows = [
            (
                *(one.name + reservation_text(one), one.topology, parameters_text(one)),
                *(", ".join(one.requires) or "-", ids_text(one), one.reference),
            )
            for one in entry.algorithms.values()
        ]
        columns = ["algorithm", "topology", "parameters", "requires", "Open MPI ids", "reference"]
        title = f"{entry.title}: {entry.name} (message bytes: {entry.message_bytes})"
        print_table(title, columns, rows, left=len(columns), wrap=True)


def reservation_text(algorithm: Algorithm) -> str:
    """The reason why an algorithm is never offered as a choice, in brackets; empty for the others."""
    if algorithm.selectable:
        return ""
    if algorithm.by_node:
        return " (by node)"
    if algorithm.guideline:
        return f" (mock-up of {algorithm.guideline})"
    return " (needs bounds)" if algorithm.bounded else " (building block)"


def parameters_text(algorithm: Algorithm) -> str:
    """The parameters of an algorithm with their defaults: 'segment_bytes, chains=4'."""
    defaults = algorithm.defaults
    return ", ".join(f"{name}={defaults[name]}" if name in defaults else name for name in algorithm.parameters) or "-"


def ids_text(algorithm: Algorithm) -> str:
    """'1' if all versions of Open MPI have one id, else '4.1: 3, 5.0: 3'."""
    from collwise.validation.select.consumers import OPENMPI_VERSIONS

    ids = algorithm.openmpi
    if set(ids) == set(OPENMPI_VERSIONS) and len(set(ids.values())) == 1:
        return str(next(iter(ids.values())))
    return ", ".join(f"{version}: {number}" for version, number in ids.items()) or "-"
