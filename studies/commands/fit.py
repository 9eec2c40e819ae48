"""collwise fit: estimating model parameters."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from collwise.common.errors import UsageError
from collwise.common.files import writable_file
from collwise.common.units import format_seconds, format_size
from collwise.models.parameter_file import FAMILIES, FittedParameters
from collwise.platforms import HostPlatform
from collwise.simulator.engines import MPI_LIBRARIES
from collwise.simulator.experiments import ExperimentRunner, Precision
from collwise.simulator.places import ThisMachine
from collwise.simulator.store import Store
from collwise.studies.commands.shared import (
    COUNTS,
    PLATFORM,
    SEGMENT,
    NamedChoice,
    json_option,
    parsed,
    ppn_option,
    print_json,
    processes_per_node,
    refuse_options,
    run_options,
    stdout_console,
    sweep_progress,
    table,
)
from collwise.studies.parameter_text import ALGORITHM_COLUMNS, algorithm_rows, parameter_rows
from collwise.validation.estimating import PROCEDURES, Request, estimate, most_useful_procs, request
from collwise.validation.fitting import Plan, default_procs
from collwise.validation.fitting import fit as run_fit
from collwise.validation.modelling import HowToRun, simulated_parameters

_IMPLEMENTATION_AWARE = "implementation-aware"
_PROCEDURES = "; ".join(f"{family}: {', '.join(names)}" for family, names in PROCEDURES.items())
# Processes of this machine that take part in an estimation unless told otherwise.
_PROCS_HERE = 4


def _repetitions(text: str) -> tuple[int, int]:
    least, _, most = text.partition(":")
    if not least.isdecimal() or not (most or least).isdecimal():
        raise UsageError(f"'{text}': write LEAST:MOST, for example 5:100, or one number")
    return int(least), int(most or least)


_IN_SIMULATION = ("engine", "jobs")
_ON_THIS_MACHINE = ("repetitions", "confidence", "error")
_OF_MESSAGES = ("procedure", "heterogeneous", "library")
_OF_ALGORITHMS = ("segment", "fanout", "ppn")


@click.command()
@click.option("--platform", type=PLATFORM, help="A known platform (see 'collwise platforms list') or a file.")
@click.option("--library", type=NamedChoice("MPI library", MPI_LIBRARIES), help="Measure on this machine instead.")
@click.option(
    "--model",
    type=NamedChoice("model", [_IMPLEMENTATION_AWARE, *FAMILIES]),
    default=_IMPLEMENTATION_AWARE,
    show_default=True,
    help="What to estimate.",
)
@click.option(
    "--procs",
    type=COUNTS,
    help="P of the experiments. Default: five nodes, a quarter and half of all; for models of messages one number, "
    f"six, all where nodes differ, {_PROCS_HERE} on this machine.",
)
@click.option("--procedure", help=f"For models of messages; the first is the default. {_PROCEDURES}.")
@click.option(
    "--heterogeneous/--homogeneous",
    default=None,
    help="For models of messages: parameters of each pair and processor, or their means. Default: as the nodes are.",
)
@click.option(
    "--repetitions", type=parsed("repetitions", _repetitions), default="5:100", show_default=True,
    metavar="LEAST:MOST", help="On this machine.",
)  # fmt: skip
@click.option("--confidence", type=float, default=0.95, show_default=True, help="On this machine.")
@click.option("--error", type=float, default=0.025, show_default=True, help="On this machine: relative, of the mean.")
@click.option(
    "--segment", type=SEGMENT, default="8KiB", show_default=True, help="Implementation-aware: of the broadcasts."
)
@click.option("--fanout", type=click.IntRange(1), help="Implementation-aware: chains of the K-chain tree. Default: 4.")
@ppn_option
@run_options
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Default: results/PLATFORM[.MODEL].parameters.toml"
)
@json_option
@click.pass_context
def fit(
    context: click.Context,
    platform: HostPlatform | None,
    library: str | None,
    model: str,
    procs: Sequence[int] | None,
    procedure: str | None,
    heterogeneous: bool | None,
    repetitions: tuple[int, int],
    confidence: float,
    error: float,
    segment: int,
    fanout: int | None,
    ppn: int | None,
    store: Path,
    engine: str | None,
    jobs: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Estimates the parameters of models from experiments, simulated or measured on this machine.

    implementation-aware: gamma(p), and alpha and beta of every algorithm (Nuriyev & Lastovetsky 2021, section IV).
    The others are models of messages, from experiments between two or three processes. Writes a TOML file.
    """
    if model == _IMPLEMENTATION_AWARE:
        refuse_options(context, (*_OF_MESSAGES, *_ON_THIS_MACHINE), f"--model {', '.join(FAMILIES)}")
        if platform is None:
            raise UsageError("--platform is missing: a name (see 'collwise platforms list') or a file")
        ppn = processes_per_node(platform, ppn)
        plan = Plan(tuple(procs or default_procs(platform, ppn)), ppn, segment, fanout or 0)
        file = writable_file(output or Path("results") / f"{platform.name}.parameters.toml")
        with Store(store) as opened:
            _fit_algorithms(platform, plan, HowToRun(opened, engine, jobs), file, as_json)
        return
    refuse_options(context, _OF_ALGORITHMS, f"--model {_IMPLEMENTATION_AWARE}")
    if (platform is None) == (library is None):
        raise UsageError("name one of --platform and --library")
    if procs is not None and len(procs) != 1:
        raise UsageError(f"--procs: one number for --model {model}, not {len(procs)}")
    count = procs[0] if procs else None
    differ = platform is not None and platform.heterogeneous
    wanted = request(model, procedure, None if heterogeneous is None and differ else bool(heterogeneous))
    started = time.perf_counter()
    if platform is not None:
        refuse_options(context, _ON_THIS_MACHINE, "--library")
        file = _file_of_messages(output, platform.name, model)
        with Store(store) as opened:
            fitted = simulated_parameters(platform, wanted, HowToRun(opened, engine, jobs), count)
    else:
        refuse_options(context, _IN_SIMULATION, "--platform")
        precision = Precision(*repetitions, confidence, error)
        file = _file_of_messages(output, str(library), model)
        with Store(store) as opened:
            fitted = _measured(str(library), wanted, opened, count, precision)
    _save(fitted, file, time.perf_counter() - started, as_json)


def _file_of_messages(output: Path | None, place: str, model: str) -> Path:
    return writable_file(output or Path("results") / f"{place}.{model}.parameters.toml")


def _measured(library: str, wanted: Request, store: Store, procs: int | None, precision: Precision) -> FittedParameters:
    count = procs or most_useful_procs(wanted, _PROCS_HERE)
    runner = ExperimentRunner.measured(ThisMachine(library), count, store, precision=precision)
    return estimate(wanted, runner, f"this machine, {library}", f"measured, {runner.label}")


def _save(fitted: FittedParameters, file: Path, elapsed: float, as_json: bool) -> None:
    fitted.save(file)
    if as_json:
        print_json({"file": str(file), **fitted.as_document()})
        return
    title = f"{fitted.family} by {fitted.procedure}, {fitted.platform}, {fitted.procs} processes"
    stdout_console().print(table(title, ["parameter", "value"], parameter_rows(fitted), left=2))
    for note in fitted.notes:
        click.echo(note)
    click.echo(
        f"{fitted.measurements} measurements, {format_seconds(fitted.seconds)} on the platform, "
        f"{format_seconds(elapsed)} here"
    )
    click.echo(f"{file}: {fitted.family} by {fitted.procedure}, {fitted.made_by}")


def _fit_algorithms(platform: HostPlatform, plan: Plan, how: HowToRun, file: Path, as_json: bool) -> None:
    with sweep_progress(f"{platform.name} fit") as progress:
        parameters = run_fit(platform, plan, how.store, engine_version=how.engine, jobs=how.jobs, on_progress=progress)
    parameters.save(file)
    if as_json:
        print_json({"file": str(file), **parameters.as_document()})
        return
    gamma = parameters.gamma(np.arange(2, 9), plan.segment_bytes)
    click.echo(f"gamma(2..8) at {format_size(plan.segment_bytes)}: {', '.join(f'{value:.3f}' for value in gamma)}")
    title = f"{platform.title}, P = {', '.join(map(str, plan.procs))}"
    stdout_console().print(table(title, ALGORITHM_COLUMNS, algorithm_rows(parameters), left=4))
    click.echo(f"{file}: parameters and residuals; {parameters.made_by}")
