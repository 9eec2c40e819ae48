"""collwise verify and crosscheck: our algorithms on real data, and beside the same ones inside SMPI and Open MPI."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import CollwiseError, UsageError, note
from collwise.common.units import format_size
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.context import SMPI_SELECTORS
from collwise.studies.cli import declare, options, types
from collwise.studies.cli.declare import command, flag, option, refuse_options
from collwise.studies.cli.output import print_json, print_table
from collwise.studies.cli.types import COLLECTIVE, COUNTS, PLATFORM, SIZES, NamedChoice, named_choices
from collwise.validation.correctness import crosscheck as judge
from collwise.validation.correctness import explanations as known
from collwise.validation.correctness.crosscheck_openmpi import OpenmpiRow, compare_with_openmpi, misnamed_algorithms
from collwise.validation.correctness.crosscheck_smpi import SmpiRow, compare_with_smpi
from collwise.validation.correctness.sequences import MAX_SEED, SECONDS, verify_sequences
from collwise.validation.correctness.verification import PROCS as ENGINES
from collwise.validation.correctness.verification import verify as run_verification
from collwise.validation.correctness.verification import verify_hierarchical
from collwise.validation.testbed.bed import USUAL_NAME, running
from collwise.validation.testbed.target import TestBed


@command("verify --library smpi --collective barrier --quick")
def verify(
    libraries: Sequence[str] = option(named_choices("MPI library", ENGINES), ",".join(ENGINES)),
    collective: str | None = option(COLLECTIVE),
    algorithm: str | None = option(),
    quick: bool = flag(),
    seconds: float | None = option(types.FiniteRange(0, min_open=True), said={"seconds": SECONDS}),
    seed: int | None = option(click.IntRange(0, MAX_SEED)),
    selector: str | None = option(types.NamedChoice("selector", SMPI_SELECTORS)),
    testbed: str | None = option(is_flag=False, flag_value=USUAL_NAME),
    simgrid: str | None = options.SIMGRID,
    as_json: bool = options.JSON,
) -> None:
    """Runs every algorithm on real data under SMPI, Open MPI and MPICH and compares every element.

    The cases cover roots, counts, segment sizes, datatypes with holes and differing descriptions, operations that do
    not commute, communicators that overlap, and threads. Random sequences follow: hundreds of calls in a row, some of
    them non-blocking, on communicators that come and go, by processes that come late, linked and through libcollwise.
    The exit code is 1 if anything is wrong.
    """
    from rich.console import Console

    if selector is not None and "smpi" not in libraries:
        raise UsageError("--selector is for SMPI's own collectives; valid: with smpi among the --library")
    if collective is not None:
        Catalogue.load().collective(collective)
        if algorithm is not None:
            entry = Catalogue.load().algorithm(collective, algorithm)
            if testbed is not None and not entry.by_node:
                raise UsageError(
                    f"--testbed verifies hierarchical algorithms only, which {collective} {algorithm} is not"
                )
    if "smpi" not in libraries:
        declare.refuse_options(("simgrid",), "--library smpi")
    if testbed is not None:
        only_here = ("libraries", "quick", "seconds", "seed", "selector", "simgrid")
        declare.refuse_options(only_here, "this machine, not for --testbed")
    only_sequences = seconds is not None or seed is not None
    if only_sequences:
        declare.refuse_options(("quick", "selector"), "cases, not for the sequences of --seconds and --seed")
    target = None if testbed is None else TestBed(running(testbed))
    with Console(stderr=True).status("verifying") as status:
        if target is not None:
            results = verify_hierarchical(target, collective, algorithm, status.update)
        else:
            results = []
            if not only_sequences:
                results += run_verification(
                    libraries, collective, algorithm, quick, status.update, smpi_version=simgrid, selector=selector
                )
            if only_sequences or not quick:
                first = secrets.randbelow(MAX_SEED + 1) if seed is None else seed
                length = seconds or (SECONDS if seed is None else 0.0)
                if seed is None:
                    note(f"random sequences begin with seed {first}")
                for library in libraries:
                    version = simgrid if library == "smpi" else None
                    results += verify_sequences(
                        library, first, length, collective, algorithm, status.update, smpi_version=version
                    )
    if as_json:
        print_json([asdict(result) for result in results])
    else:
        columns = ["engine", "collective", "algorithm", "cases", "skipped", "failures"]
        rows = [(f"{r.engine} {r.version}", r.collective, r.algorithm, r.cases, r.skipped, r.failures) for r in results]
        print_table("Verification", columns, rows, left=3)
        for result in results:
            if result.first_failure is not None:
                click.echo(f"{result.name}: {result.first_failure}")
        counted = ("cases", "skipped", "failures")
        cases, skipped, failures = (sum(getattr(result, name) for result in results) for name in counted)
        click.echo(f"{len(results)} results: {cases} cases, {failures} failures; {skipped} skipped as not applicable")
    if wrong := [result for result in results if not result.ok]:
        why = f"{wrong[0].name}: {wrong[0].first_failure or 'no case ran'}"
        raise CollwiseError(f"{len(wrong)} of {len(results)} failed; first: {why}")


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
    library: str | None = option(NamedChoice("MPI library", ("smpi", "openmpi"))),
    collective: str | None = option(COLLECTIVE),
    procs: Sequence[int] | None = option(COUNTS),
    sizes: Sequence[int] | None = option(SIZES),
    platform: HostPlatform = option(PLATFORM, "grisou"),
    simgrid: str | None = options.SIMGRID,
    as_json: bool = options.JSON,
) -> None:
    """Compares our algorithms with the same ones that others wrote.

    It compares simulated times on one platform with those of SMPI's algorithms. It forces Open MPI's algorithms in
    turn and compares every byte of the results, and the messages and bytes from each process to each other. The exit
    code is 1 if something differs for no known reason.
    """
    from rich.console import Console

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
