"""collwise verify: every algorithm on real data, against the definition of its collective."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict

import click

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import CollwiseError, UsageError
from collwise.simulator.sweeps.context import SMPI_SELECTORS
from collwise.studies.cli import declare, options, types
from collwise.studies.cli.declare import command, flag, option
from collwise.studies.cli.output import print_json, print_table
from collwise.studies.cli.types import COLLECTIVE, named_choices
from collwise.validation.correctness.sequences import MAX_SEED, SECONDS, verify_sequences
from collwise.validation.correctness.verification import PROCS as ENGINES
from collwise.validation.correctness.verification import verify as run_verification
from collwise.validation.correctness.verification import verify_hierarchical
from collwise.validation.testbed.bed import USUAL_NAME, running


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

    from collwise.validation.testbed.target import TestBed

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
