"""collwise check: machines, recovery, algorithms, others, three-way, study."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from collwise import checks
from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError, note, unknown_name
from collwise.common.files import note_replaced
from collwise.common.project import results_folder
from collwise.common.units import format_seconds, format_size
from collwise.platforms import HostPlatform
from collwise.simulator.execution.cluster import TRANSPORTS as OF_HOSTS
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SMPI_SELECTORS, SimulationContext
from collwise.studies.cli import declare, options, types
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.declare import flag, group, option, refuse_options
from collwise.studies.cli.derive import command, derived
from collwise.studies.cli.testbed import RATE
from collwise.studies.cli.types import (
    COLLECTIVE,
    COLLECTIVES,
    COUNTS,
    PLATFORM,
    SIZES,
    NamedChoice,
    named_choices,
)
from collwise.studies.present.shown import Shown, Table, problem_of
from collwise.targets import TargetOptions, target_from
from collwise.validation.correctness import crosscheck as judge
from collwise.validation.correctness.crosscheck_openmpi import OpenmpiRow, compare_with_openmpi, misnamed_algorithms
from collwise.validation.correctness.crosscheck_smpi import SmpiRow, compare_with_smpi
from collwise.validation.correctness.verification import (
    MAX_SEED,
    PROCS as ENGINES,
    SECONDS,
    verify as run_verification,
    verify_hierarchical,
    verify_sequences,
)
from collwise.validation.testbed.bed import USUAL_NAME, running
from collwise.validation.testbed.shape import TRANSPORTS, format_rate
from collwise.validation.testbed.target import TestBed
from collwise.validation.three_way import plan as plans


@click.group(cls=CommandGroup, epilog=example("check recovery --platform exact"))
def check() -> None:
    """Validates algorithms, models, and results reproduced from papers."""


machines = derived(
    checks.check_machines,
    "check machines --report machines.md",
    name="machines",
    parent=check,
    report=True,
    folders=declare.argument(types.PATH, nargs=-1),
    predictions=types.NEW_FILE,
    context=options.simulation("schedule"),
    figures=True,
)
recovery = derived(checks.recovery, "check recovery --platform exact", parent=check, platform=PLATFORM)


@command("check algorithms --library smpi --collective barrier --quick", parent=check)
def algorithms(
    libraries: Sequence[str] = option(named_choices("MPI library", ENGINES), ",".join(ENGINES), key="libraries"),
    collective: str | None = option(COLLECTIVE),
    algorithm: str | None = option(),
    quick: bool = flag(),
    seconds: float | None = option(types.FiniteRange(0, min_open=True), said={"seconds": SECONDS}),
    seed: int | None = option(click.IntRange(0, MAX_SEED)),
    selector: str | None = option(types.NamedChoice("selector", SMPI_SELECTORS)),
    testbed: str | None = option(is_flag=False, flag_value=USUAL_NAME),
    simgrid: str | None = options.SIMGRID,
) -> Shown:
    """Runs every algorithm on real data, and checks every element.

    Algorithms run under SMPI, Open MPI and MPICH. The cases cover roots, counts, segment sizes, datatypes with holes,
    datatypes that differ between processes, operations that do not commute, communicators that overlap, and threads.
    Random sequences follow: hundreds of calls in a row, some of them non-blocking, by processes that arrive late, on
    communicators that are made and freed meanwhile. In these sequences, algorithms are either linked to the program or
    run in libcollwise. --quick leaves the sequences out. --testbed checks only hierarchical algorithms. The exit code
    is 1 if anything is wrong.
    """
    from rich.console import Console

    if selector is not None and "smpi" not in libraries:
        raise UsageError("--selector is for SMPI's own collectives; add smpi to --library")
    if collective is not None:
        Catalogue.load().collective(collective)
        if algorithm is not None:
            entry = Catalogue.load().algorithm(collective, algorithm)
            if testbed is not None and not entry.by_node:
                raise UsageError(
                    f"--testbed verifies hierarchical algorithms only; {collective} {algorithm} is not hierarchical"
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
    columns = ["engine", "collective", "algorithm", "cases", "skipped", "failures"]
    rows = [(f"{r.engine} {r.version}", r.collective, r.algorithm, r.cases, r.skipped, r.failures) for r in results]
    failed = [f"{result.name}: {result.first_failure}" for result in results if result.first_failure is not None]
    cases, skipped, failures = (sum(getattr(result, name) for result in results) for name in columns[3:])
    total = f"{len(results)} results: {cases} cases, {failures} failures; {skipped} skipped as not applicable"
    wrong = [f"{result.name}: {result.first_failure or 'no case ran'}" for result in results if not result.ok]
    problem = f"{len(wrong)} of {len(results)} failed; first: {wrong[0]}" if wrong else ""
    table = Table("Verification", columns, rows, left=3)
    return Shown([table, *failed, total], [asdict(result) for result in results], problem=problem)


SMPI_COLUMNS = (
    *("collective", "algorithm", "in SMPI", "P", "bytes"),
    *("segment", "parameter", "ours, s", "theirs, s", "ratio"),
)
OPENMPI_COLUMNS = (
    *("collective", "algorithm", "id", "in Open MPI", "P", "sizes", "segment", "agree"),
    *("messages", "theirs", "bytes", "theirs", "same"),
)


@command("check others --library smpi --collective gather --procs 4 --sizes 64KiB", parent=check)
def others(
    library: str | None = option(NamedChoice("MPI library", ("smpi", "openmpi"))),
    collective: str | None = option(COLLECTIVE),
    procs: Sequence[int] | None = option(COUNTS),
    sizes: Sequence[int] | None = option(SIZES),
    platform: HostPlatform = option(PLATFORM, "grisou"),
    simgrid: str | None = options.SIMGRID,
) -> Shown:
    """Compares our algorithms with those of Open MPI and SMPI.

    For SMPI, it compares simulated times on one platform. For Open MPI, it forces each of the library's algorithms.
    It compares their results with ours byte by byte, and counts the messages and bytes that each process sends to each
    other process. The exit code is 1 if something differs for no known reason.
    """
    from rich.console import Console

    if library == "openmpi":
        refuse_options(("platform", "simgrid"), "--library smpi")
    complete = not (collective or procs or sizes)
    found: list[str] = []
    records: list[dict[str, Any]] = []
    tables: list[Table] = []
    reasons: list[tuple[str, str]] = []
    with Console(stderr=True).status("comparing") as status:
        if library != "openmpi":
            smpi = compare_with_smpi(platform, collective, procs, sizes, simgrid=simgrid, on_algorithm=status.update)
            found += judge.findings(smpi, judge.SMPI, complete and platform.name == "grisou")
            compared = [asdict(row) | {"ratio": row.ratio, "differs": row.differs} for row in smpi]
            records += [{"library": "smpi"} | row for row in compared]
            tables.append(Table("Simulated times, ours and SMPI's own", SMPI_COLUMNS, list(map(smpi_cells, smpi)), 3))
            reasons += judge.explained(smpi, judge.SMPI)
        if library != "smpi":
            openmpi = compare_with_openmpi(collective, procs, sizes, on_algorithm=status.update)
            found += [*misnamed_algorithms(collective), *judge.findings(openmpi, judge.OPENMPI, complete)]
            records += [{"library": "openmpi"} | asdict(row) for row in openmpi]
            tables.append(Table("Ours and Open MPI's own", OPENMPI_COLUMNS, list(map(openmpi_cells, openmpi)), 2))
            reasons += judge.explained(openmpi, judge.OPENMPI)
    problem = f"{len(found)} findings; first: {found[0]}" if len(found) > 1 else "".join(found)
    parts: list[Table | str] = [
        *(table for table in tables if table.rows),
        *(f"{name}: {text}" for name, text in reasons),
    ]
    return Shown(parts, records, {"findings": found}, problem=problem)


def smpi_cells(row: SmpiRow) -> tuple[object, ...]:
    """A row of the table against SMPI."""
    ratio = f"{row.ratio:.4f}" if not row.problem else row.problem
    return (
        *(row.collective, row.algorithm, row.smpi, row.procs, format_size(row.message_bytes)),
        *(format_size(row.segment_bytes) if row.segment_bytes else "-", row.parameter or "-"),
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


@command("check three-way --testbed --quick", parent=check)
def three_way(
    testbed: bool = flag(),
    where: TargetOptions = options.TARGET_BESIDE_TESTBEDS,
    platform: HostPlatform | None = option(PLATFORM),
    nominal: HostPlatform | None = option(PLATFORM),
    procs: Sequence[int] | None = option(COUNTS),
    planned: dict[str, Any] = group(
        dict,
        nodes=option(click.IntRange(2, 64), plans.NODES),
        ranks_per_node=option(click.IntRange(1, 64), key="ppn"),
        bits_per_second=option(
            RATE, said={"rates": map(format_rate, plans.RATES), "bits_per_second": format_rate(plans.BITS_PER_SECOND)}
        ),
        collectives=option(COLLECTIVES, ",".join(plans.COLLECTIVES), key="collectives", show_default="all seven"),
        sizes=option(SIZES),
        quick=flag(),
        one_bed=flag(),
        transport=option(NamedChoice("transport", dict.fromkeys((*TRANSPORTS, *OF_HOSTS)))),
        models=option(default=True),
    ),
    output: Path = options.results("validation"),
    store: Path = options.STORE,
) -> Shown:
    """Compares predicted, simulated and measured times.

    It measures on a test bed or on your own cluster, and writes a report. On a test bed, it calibrates a platform from
    messages between two nodes, and fits models to their own experiments; then it measures, simulates and predicts all
    algorithms. With several processes per node, it also verifies hierarchical algorithms, compares them with Open MPI's
    components tuned and HAN, and fits no models. A test bed needs the right to make network namespaces. With --hosts,
    --launcher srun or --launcher oar, the command does the same on a cluster. The simulation then uses --platform as it
    is, or --nominal, which is first calibrated on the cluster. Finished cases are stored, so a stopped run resumes.
    """
    if testbed == where.named:
        raise UsageError(
            "--testbed and another target; give one"
            if testbed
            else "say where to measure: --testbed, --hosts FILE|A,B,... or --launcher srun|oar"
        )
    declare.refuse_options(
        _OF_CLUSTERS if testbed else _OF_TESTBEDS, "--hosts or --launcher" if testbed else "--testbed"
    )
    from collwise.studies.reports import validation_report as report
    from collwise.validation.three_way.pipeline import ThreeWayComparison

    plan, how = _on_testbed(planned) if testbed else _on_cluster(where, (platform, nominal), procs or (), planned)
    note_replaced(output / f"{report.STEM}.html")
    with Store(store) as opened:
        result = ThreeWayComparison(plan, SimulationContext(opened), output, _tell, **how).run()
    page, _ = report.write_validation(result, output)
    [promises] = report.limits(result).tables
    columns, rows = promises.columns[:-1], [row[:-1] for row in promises.rows]
    table = Table("Simulated against measured", columns, rows, left=promises.left)
    wrong = [item for item in result.verified if not item.ok]
    problem = f"{len(wrong)} algorithms are wrong; first: {wrong[0].name}: {wrong[0].first_failure}" if wrong else ""
    facts = report.document(result)
    took = f"{page}: {format_seconds(sum(stage.seconds for stage in result.stages))}"
    return Shown([table, took], facts.pop("rows"), facts, problem=problem_of(result.failed) or problem)


_OF_CLUSTERS = ("platform", "nominal", "procs", *declare.names_in(options.TARGET_BESIDE_TESTBEDS))
_OF_TESTBEDS = ("nodes", "bits_per_second", "one_bed")


def _on_testbed(planned: dict[str, Any]) -> tuple[plans.ThreeWayPlan, dict[str, Any]]:
    plan = plans.usual_plan(**planned)
    _check_models(plan, planned["models"])
    if planned["bits_per_second"] is None and not plan.quick:
        plan = plans.usual_plan(**planned | {"bits_per_second": _highest_rate(plan.main)})
    return plan, {}


def _on_cluster(
    where: TargetOptions,
    described: tuple[HostPlatform | None, HostPlatform | None],
    procs: Sequence[int],
    planned: dict[str, Any],
) -> tuple[plans.ThreeWayPlan, dict[str, Any]]:
    given = [item for item in described if item is not None]
    if len(given) != 1:
        raise UsageError("name what to simulate: --platform, used as it is, or --nominal, which is calibrated first")
    if planned["transport"] not in (None, *OF_HOSTS):
        raise unknown_name("transport of hosts", planned["transport"], OF_HOSTS)
    asked = {name: planned[name] for name in ("collectives", "sizes", "quick", "models")}
    target = target_from(replace(where, ppn=planned["ranks_per_node"], transport=planned["transport"]))
    plan = plans.cluster_plan(target, procs, **asked)
    _check_models(plan, asked["models"])
    return plan, {"target": target, "platform": given[0], "calibrate": described[0] is None}


def _check_models(plan: plans.ThreeWayPlan, asked: bool) -> None:
    if asked and not plan.models:
        declare.refuse_options(("models",), "one process on each node; there are several")


def _highest_rate(main: plans.Scenario) -> float:
    from collwise.validation.testbed.check import BedCheck, highest_rate
    from collwise.validation.three_way.pipeline import USUAL_NAME

    def tell(rate: float, found: BedCheck) -> None:
        scaling = " and ".join(f"{exchange.scaling:.0%}" for exchange in found.exchanges)
        note(
            f"{main.nodes} nodes at {format_rate(rate)}: at half the rate, alltoalls should take twice as long, and "
            f"take {scaling} of that"
        )

    assert main.shape is not None
    rate = highest_rate(main.shape, plans.RATES, USUAL_NAME, tell)
    note(f"the main test bed has {format_rate(rate)} (--rate {format_rate(rate).replace(' ', '').replace('/s', '')})")
    return rate


def _tell(stage: str, seconds: float | None) -> None:
    note(f"{stage}{' ...' if seconds is None else f': {format_seconds(seconds)}'}")


@command("check study nuriyev2021", parent=check)
def study(
    name: str = declare.argument(),
    output: Path | None = option(types.PATH, key="folder of results"),
    quick: bool = flag(),
    simulation: options.SimulationOptions = options.SIMULATION,
) -> Shown:
    """Runs the study NAME and writes its results.

    \b
    hunold2018       Hunold & Carpen-Amarie 2018: guidelines that libraries violate, on the paper's machines
    luo2020          Luo et al. 2020 (HAN): hierarchical collectives, their tasks and tuning (about 20 minutes)
    nuriyev2021      Nuriyev & Lastovetsky 2021: the paper's results beside ours, in simulation
    oflynn2009       O'Flynn 2009: models of a heterogeneous cluster, LMO among them
    pjesivac2007     Pješivac-Grbović et al. 2007: table, figures and claims (about 20 minutes on two cores)
    getting_started  which broadcast to use on Dahu, and what it gains over untuned Open MPI
    model_accuracy   which model or simulation to trust, by collective and size
    own_cluster      your own cluster, from its description to rules
    whatif           another bandwidth for Gros: what changes, where and why, with sliders
    whatif_sliders   only the sliders: the what-if page of 'collwise studio'

    It executes the study's notebook in a new Jupyter kernel. It writes NAME.md with the narrative, tables and figures
    (PNG), NAME.json with the results, and the executed notebook NAME.ipynb.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from collwise.studies.papers.notebook import run
    from collwise.studies.papers.study import environment

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=1.0)
        results, files = run(
            name,
            environment(simulation, quick),
            output or results_folder() / name,
            lambda heading, done: bar.update(task, description=f"{name}: {heading}", completed=done),
        )
    written = "written: " + ", ".join(map(str, files))
    return Shown([*(f"- {sentence}" for sentence in results["conclusions"]), written], [results])
