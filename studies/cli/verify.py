"""collwise verify: every algorithm on real data, against the definition of its collective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import CollwiseError
from collwise.studies.cli import options
from collwise.studies.cli.declare import command, flag, named_choices, option
from collwise.studies.cli.output import print_json, print_table, stdout_console
from collwise.validation.correctness.verification import PROCS as ENGINES
from collwise.validation.correctness.verification import VerificationResult
from collwise.validation.correctness.verification import verify as run_verification


def show(results: Sequence[VerificationResult]) -> None:
    """The table, failures written out below it where there is room for them, and the sums."""
    columns = ["engine", "collective", "algorithm", "cases", "skipped", "failures"]
    rows = [(f"{r.engine} {r.version}", r.collective, r.algorithm, r.cases, r.skipped, r.failures) for r in results]
    console = stdout_console()
    print_table("Verification", columns, rows, left=3)
    for result in results:
        if result.first_failure is not None:
            console.print(f"{result.name}: {result.first_failure}", markup=False, highlight=False, soft_wrap=True)
    cases, skipped, failures = (
        sum(getattr(r, counted) for r in results) for counted in ("cases", "skipped", "failures")
    )
    console.print(f"{len(results)} results: {cases} cases, {failures} failures; {skipped} skipped as not applicable")


@command("verify --library smpi --collective barrier --quick")
def verify(
    libraries: Sequence[str] = option(
        "Names by commas.", named_choices("MPI library", ENGINES), ",".join(ENGINES), names="--library"
    ),
    collective: str | None = option("Only this one."),
    algorithm: str | None = option("Only this one."),
    quick: bool = flag("Fewer process counts and cases."),
    simgrid: str | None = options.SIMGRID,
    as_json: bool = options.JSON,
) -> None:
    """Runs every algorithm on real data under SMPI, Open MPI and MPICH and compares every element.

    Roots, counts, segment sizes, datatypes with holes and differing descriptions, operations that do not commute,
    communicators that overlap, and threads.
    Exit code 1 if anything is wrong.
    """
    if collective is not None:
        Catalogue.load().collective(collective)
        if algorithm is not None:
            Catalogue.load().algorithm(collective, algorithm)
    with Console(stderr=True).status("verifying") as status:
        results = run_verification(libraries, collective, algorithm, quick, status.update, smpi_version=simgrid)
    if as_json:
        print_json([asdict(result) for result in results])
    else:
        show(results)
    wrong = [result for result in results if not result.ok]
    if wrong:
        first = wrong[0]
        raise CollwiseError(
            f"{len(wrong)} of {len(results)} failed; first: {first.name}: {first.first_failure or 'no case ran'}"
        )
