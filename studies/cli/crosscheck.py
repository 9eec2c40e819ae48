"""collwise crosscheck: our algorithms against the same ones inside SMPI and Open MPI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from collwise.common.errors import CollwiseError
from collwise.common.units import format_size
from collwise.studies.cli import options
from collwise.studies.cli.declare import command, option, refuse_options
from collwise.studies.cli.output import print_json, print_table
from collwise.studies.cli.types import COLLECTIVE, COUNTS, PLATFORM, SIZES, NamedChoice

if TYPE_CHECKING:
    from collwise.platforms import HostPlatform
    from collwise.validation.correctness.crosscheck_openmpi import OpenmpiRow
    from collwise.validation.correctness.crosscheck_smpi import SmpiRow

SMPI_COLUMNS = (
    *("collective", "algorithm", "in SMPI", "P", "bytes"),
    *("segment", "fan-out", "ours, s", "theirs, s", "ratio"),
)
OPENMPI_COLUMNS = (
    *("collective", "algorithm", "id", "in Open MPI", "P", "sizes", "segment", "agree"),
    *("messages", "theirs", "bytes", "theirs", "same"),
)


@command("crosscheck --library smpi --collective gather --procs 4 --sizes 64KiB")
def crosscheck(
    library: str | None = option(
        "Compare only with this library's algorithms. Default: both.", NamedChoice("MPI library", ("smpi", "openmpi"))
    ),
    collective: str | None = option("Compare only this collective.", COLLECTIVE),
    procs: Sequence[int] | None = option(
        "Process counts. Default: 15,16,30 in simulation, 5,6,8 with Open MPI.", COUNTS
    ),
    sizes: Sequence[int] | None = option("Message sizes. Default: some that all of these counts divide.", SIZES),
    platform: HostPlatform = option("The platform on which SMPI simulates both.", PLATFORM, "grisou"),
    simgrid: str | None = options.SIMGRID,
    as_json: bool = options.JSON,
) -> None:
    """Compares our algorithms with the same ones that others wrote.

    It compares simulated times on one platform with those of SMPI's algorithms. It forces Open MPI's algorithms in
    turn and compares every byte of the results, and the messages and bytes from each process to each other. The exit
    code is 1 if something differs for no known reason.
    """
    from rich.console import Console

    from collwise.validation.correctness import crosscheck as judge
    from collwise.validation.correctness import explanations as known
    from collwise.validation.correctness.crosscheck_openmpi import compare_with_openmpi, misnamed_algorithms
    from collwise.validation.correctness.crosscheck_smpi import compare_with_smpi

    if library == "openmpi":
        refuse_options(("platform", "simgrid"), "--library smpi")
    complete = not (collective or procs or sizes)
    found: list[str] = []
    records: list[dict[str, Any]] = []
    smpi: list[SmpiRow] = []
    openmpi: list[OpenmpiRow] = []
    with Console(stderr=True).status("comparing") as status:
        if library != "openmpi":
            smpi = compare_with_smpi(platform, collective, procs, sizes, simgrid=simgrid, on_algorithm=status.update)
            found += judge.findings(smpi, known.SMPI, complete and platform.name == "grisou")
            compared = [asdict(row) | {"ratio": row.ratio, "differs": row.differs} for row in smpi]
            records += [{"library": "smpi"} | row for row in compared]
        if library != "smpi":
            openmpi = compare_with_openmpi(collective, procs, sizes, on_algorithm=status.update)
            found += [*misnamed_algorithms(collective), *judge.findings(openmpi, known.OPENMPI, complete)]
            records += [{"library": "openmpi"} | asdict(row) for row in openmpi]
    if as_json:
        print_json(records, {"findings": found})
    else:
        if smpi:
            print_table("Simulated times, ours and SMPI's own", SMPI_COLUMNS, [smpi_cells(row) for row in smpi], 3)
        if openmpi:
            print_table("Ours and Open MPI's own", OPENMPI_COLUMNS, [openmpi_cells(row) for row in openmpi], 2)
        for name, text in (*judge.explained(smpi, known.SMPI), *judge.explained(openmpi, known.OPENMPI)):
            click.echo(f"{name}: {text}")
    if found:
        raise CollwiseError(f"{len(found)} findings; first: {found[0]}" if len(found) > 1 else found[0])


def smpi_cells(row: SmpiRow) -> tuple[object, ...]:
    """A row of the table against SMPI."""
    ratio = f"{row.ratio:.4f}" if not row.problem else row.problem
    return (
        *(row.collective, row.algorithm, row.smpi, row.procs, format_size(row.message_bytes)),
        *(format_size(row.segment_bytes) if row.segment_bytes else "-", row.fanout or "-"),
        *(f"{row.ours_seconds:.6g}", f"{row.theirs_seconds:.6g}", ratio),
    )


def openmpi_cells(row: OpenmpiRow) -> tuple[object, ...]:
    """A row of the table against Open MPI."""
    return (
        *(row.collective, row.algorithm, row.openmpi_id, row.openmpi_name, row.procs),
        ", ".join(map(format_size, row.message_bytes)),
        format_size(row.segment_bytes) if row.segment_bytes else "-",
        row.problem or ("yes" if row.results_agree else "NO"),
        *(row.our_messages, row.their_messages, row.our_bytes, row.their_bytes, "yes" if row.same_traffic else "no"),
    )
