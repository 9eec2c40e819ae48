"""collwise fit and predict: estimating model parameters, evaluating models."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.common.files import writable_file
from collwise.common.units import format_seconds, format_size
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.implementation_aware.parameters import ModelParameters
from collwise.models.interface import CollectiveModel
from collwise.models.lmo import LMO
from collwise.models.loading import load_model
from collwise.models.parameter_file import FAMILIES, FittedParameters
from collwise.models.piecewise import Array, PiecewiseLinear
from collwise.models.plogp import HeterogeneousPLogP
from collwise.platforms import HostPlatform
from collwise.simulator.engines import MPI_LIBRARIES
from collwise.simulator.experiments import ExperimentRunner, Precision
from collwise.simulator.store import Store
from collwise.studies.commands.shared import (
    COUNTS,
    NAMES,
    PLATFORM,
    SEGMENT,
    SIZES,
    algorithm_names,
    json_option,
    ppn_option,
    print_json,
    processes_per_node,
    run_options,
    stdout_console,
    sweep_progress,
    table,
)
from collwise.validation.estimating import PROCEDURES, estimate, most_useful_procs, request
from collwise.validation.fitting import Plan, default_procs
from collwise.validation.fitting import fit as run_fit
from collwise.validation.grid import SIZES as USUAL_SIZES
from collwise.validation.modelling import MODEL_NAMES, HowToRun, simulated_parameters

_MOST_ROWS = 60
_MOST_PAIRS = 12
_IMPLEMENTATION_AWARE = "implementation-aware"
_PROCEDURES = "; ".join(f"{family}: {', '.join(names)}" for family, names in PROCEDURES.items())


@click.command()
@click.option("--platform", type=PLATFORM, help="A known platform (see 'collwise platforms list') or a file.")
@click.option("--library", type=click.Choice(MPI_LIBRARIES), help="Measure on this machine instead; not for the first.")
@click.option(
    "--model",
    type=click.Choice([_IMPLEMENTATION_AWARE, *FAMILIES]),
    default=_IMPLEMENTATION_AWARE,
    show_default=True,
    help="What to estimate.",
)
@click.option("--procedure", help=f"How; the first is the default. {_PROCEDURES}.")
@click.option(
    "--heterogeneous/--homogeneous",
    default=None,
    help="Parameters of each pair and processor, or their means. Default: as the platform's nodes are.",
)
@click.option(
    "--procs",
    type=COUNTS,
    help="P of the experiments. Default: five nodes, a quarter and half of all; for point-to-point models one number, "
    "six, or all where each has its own parameters.",
)
@click.option("--repetitions", default="5:100", show_default=True, metavar="LEAST:MOST", help="With --library.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="With --library.")
@click.option("--error", type=float, default=0.025, show_default=True, help="Relative error; with --library.")
@click.option("--segment", type=SEGMENT, default="8KiB", show_default=True, help="Segment size of the broadcasts.")
@click.option("--fanout", type=click.IntRange(1), help="Chains of the K-chain tree. Default: 4.")
@ppn_option
@run_options
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Default: results/PLATFORM[.MODEL].parameters.toml"
)
@json_option
def fit(
    platform: HostPlatform | None,
    library: str | None,
    model: str,
    procedure: str | None,
    heterogeneous: bool | None,
    procs: Sequence[int] | None,
    repetitions: str,
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
    The others are models of messages between two processes, from experiments between two or three. Writes a TOML file.
    """
    if (platform is None) == (library is None):
        raise UsageError("name one of --platform and --library")
    if model == _IMPLEMENTATION_AWARE:
        if platform is None:
            raise UsageError(f"--library is for --model {', '.join(FAMILIES)}")
        if procedure is not None:
            raise UsageError(f"--procedure is for --model {', '.join(FAMILIES)}")
        _fit_implementation_aware(platform, procs, segment, fanout, ppn, store, engine, jobs, output, as_json)
        return
    if procs is not None and len(procs) != 1:
        raise UsageError(f"--procs: one number for --model {model}, not {len(procs)}")
    wanted = request(model, procedure, _differ(platform, model, procedure) if heterogeneous is None else heterogeneous)
    name = platform.name if platform is not None else str(library)
    output = writable_file(output or Path("results") / f"{name}.{model}.parameters.toml")
    count = procs[0] if procs else None
    started = time.perf_counter()
    with Store(store) as opened:
        if platform is not None:
            fitted = simulated_parameters(platform, wanted, HowToRun(opened, engine, jobs), count)
        else:
            least, most = _repetitions(repetitions)
            precision = Precision(least, most, confidence, error)
            runner = ExperimentRunner.measured(name, count or most_useful_procs(wanted, 4), opened, precision=precision)
            fitted = estimate(wanted, runner, f"this machine, {name}", f"measured, {runner.label}")
    elapsed = time.perf_counter() - started
    fitted.save(output)
    if as_json:
        print_json({"file": str(output), **fitted.as_document()})
        return
    _print_parameters(fitted)
    for note in fitted.notes:
        click.echo(note)
    click.echo(
        f"{fitted.measurements} measurements, {format_seconds(fitted.seconds)} on the platform, "
        f"{format_seconds(elapsed)} here"
    )
    click.echo(f"{output}: {model} by {wanted.procedure}, {fitted.made_by}")


def _differ(platform: HostPlatform | None, family: str, procedure: str | None) -> bool:
    """Whether to estimate parameters of each pair: where nodes differ, and the procedure can."""
    names = PROCEDURES[family]
    chosen = names.get(procedure) if procedure else next(iter(names.values()))
    return platform is not None and platform.heterogeneous and chosen is not None and chosen.heterogeneous is not None


def _repetitions(text: str) -> tuple[int, int]:
    least, _, most = text.partition(":")
    if not least.isdigit() or not (most or least).isdigit():
        raise UsageError(f"--repetitions '{text}': write LEAST:MOST, for example 5:100, or one number")
    return int(least), int(most or least)


def _fit_implementation_aware(
    platform: HostPlatform, procs: Sequence[int] | None, segment: int, fanout: int | None, ppn: int | None,
    store: Path, engine: str | None, jobs: int | None, output: Path | None, as_json: bool,
) -> None:  # fmt: skip
    ppn = processes_per_node(platform, ppn)
    plan = Plan(tuple(procs or default_procs(platform, ppn)), ppn, segment, fanout or 0)
    output = writable_file(output or Path("results") / f"{platform.name}.parameters.toml")
    with Store(store) as opened, sweep_progress(f"{platform.name} fit") as progress:
        parameters = run_fit(platform, plan, opened, engine_version=engine, jobs=jobs, on_progress=progress)
    parameters.save(output)
    if as_json:
        print_json({"file": str(output), **parameters.as_document()})
        return
    _print_algorithms(parameters, f"{platform.title}, P = {', '.join(map(str, plan.procs))}", segment)
    click.echo(f"{output}: parameters and residuals; {parameters.made_by}")


def _print_algorithms(parameters: ModelParameters, title: str, segment: int) -> None:
    rows = []
    for model, collectives in parameters.fits.items():
        for collective, algorithms in collectives.items():
            for name, fitted in algorithms.items():
                for part, pair in fitted.parameters.items():
                    rows.append(
                        (
                            model, collective, name, part, f"{pair.alpha_seconds:.3e}",
                            f"{pair.beta_seconds_per_byte:.3e}", f"{fitted.mean_residual * 100:.1f} %",
                            f"{fitted.worst_residual * 100:.1f} %",
                        )
                    )  # fmt: skip
    columns = ["model", "collective", "algorithm", "part", "alpha (s)", "beta (s/byte)", "mean error", "worst"]
    gamma = parameters.gamma(np.arange(2, 9), segment)
    click.echo(f"gamma(2..8) at {format_size(segment)}: {', '.join(f'{value:.3f}' for value in gamma)}")
    stdout_console().print(table(title, columns, rows, left=4))


def _print_parameters(fitted: FittedParameters) -> None:
    """Parameters of each pair and processor, as far as they go on a page, and the means."""
    parameters = fitted.parameters
    rows: list[tuple[object, ...]] = []
    if parameters.heterogeneous:
        rows = [(f"mean {name}", text) for name, text in _texts(parameters.homogeneous())]
        if not isinstance(parameters, HeterogeneousPLogP):
            rows += _rows_of_each(vars(parameters))
    else:
        rows = list(_texts(parameters))
    if isinstance(parameters, LMO):
        rows += [
            (name, format_size(size) if size is not None else "none found")
            for name, size in vars(parameters.thresholds).items()
        ]
    title = f"{fitted.family} by {fitted.procedure}, {fitted.platform}, {fitted.procs} processes"
    stdout_console().print(table(title, ["parameter", "value"], rows, left=2))


def _texts(parameters: Any) -> list[tuple[str, str]]:
    """Every single parameter with its value as people read it."""
    found = []
    for name, value in vars(parameters).items():
        if isinstance(value, PiecewiseLinear):
            found += [
                (f"{name}({format_size(int(size))})", format_seconds(seconds))
                for size, seconds in zip(value.message_bytes, value.seconds, strict=True)
            ]
        elif isinstance(value, (int, float)):
            found.append((name, f"{value:.4g}"))
    return found


def _rows_of_each(values: dict[str, Any]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for name, value in values.items():
        if isinstance(value, np.ndarray) and value.ndim == 1:
            rows += [(f"{name}[{i}]", f"{one:.4g}") for i, one in enumerate(value)]
    for name, value in values.items():
        if isinstance(value, np.ndarray) and value.ndim == 2:
            pairs = [(i, j) for i in range(len(value)) for j in range(i + 1, len(value))]
            rows += [(f"{name}[{i},{j}]", f"{value[i, j]:.4g}") for i, j in pairs[:_MOST_PAIRS]]
            if len(pairs) > _MOST_PAIRS:
                rows.append((f"{name}[...]", f"{len(pairs) - _MOST_PAIRS} pairs more in the file"))
    return rows


@click.command()
@click.option("--parameters", required=True, type=click.Path(path_type=Path), help="A file that 'collwise fit' wrote.")
@click.option("--collective", help="A name (see 'collwise algorithms').")
@click.option("--pair", metavar="I,J", help="A message from process I to process J instead of a collective.")
@click.option("--algorithms", type=NAMES, help="Names by commas, or all.")
@click.option("--procs", type=COUNTS, help="Process counts: 50,80,90 or 2:1000:+1.")
@click.option("--sizes", type=SIZES, help="Message sizes: 8KiB:4MiB:x2. Default: the paper's.")
@click.option(
    "--segment", type=SEGMENT, help="Segment size, where messages are cut. Default: that of the fit, or none."
)
@click.option("--model", type=click.Choice(MODEL_NAMES), help="Of those in the file. Default: what it was made for.")
@json_option
def predict(
    parameters: Path,
    collective: str | None,
    pair: str | None,
    algorithms: Sequence[str] | None,
    procs: Sequence[int] | None,
    sizes: Sequence[int] | None,
    segment: int | None,
    model: str | None,
    as_json: bool,
) -> None:
    """Evaluates models over arrays of P and m at once, or the time of single messages."""
    if (collective is None) == (pair is None):
        raise UsageError("name one of --collective and --pair")
    if pair is not None:
        _predict_pair(parameters, pair, tuple(sizes or USUAL_SIZES["bcast"]), as_json)
        return
    assert collective is not None
    if procs is None:
        raise UsageError("--procs is missing: process counts, for example 50,80,90")
    fitted = load_model(parameters, model)
    covered = fitted.algorithms(collective)
    asked = algorithm_names(collective, algorithms)
    sizes = tuple(sizes or USUAL_SIZES[collective])
    names = [name for name in asked if name in covered]
    p, m = np.array(procs)[:, None], np.array(sizes)[None, :]
    started = time.perf_counter()
    segments = {name: _segment_of(fitted, collective, name, segment) for name in names}
    seconds = {name: fitted.predict(collective, name, p, m, segments[name]) for name in names}
    elapsed = time.perf_counter() - started
    for name in asked:
        if name not in covered:
            click.echo(f"collwise: model {fitted.name} has no formula for {collective} {name}; left out", err=True)
    unknown = sum(int(np.isnan(values).sum()) for values in seconds.values())
    if unknown:
        click.echo(f"collwise: {unknown} times are not deterministic, or beyond what was fitted", err=True)
    if as_json:
        times = {name: values.tolist() for name, values in seconds.items()}
        print_json({"model": fitted.name, "procs": list(procs), "message_bytes": list(sizes), "seconds": times})
        return
    rows = [
        (procs[i], format_size(sizes[j]), *(_seconds_text(seconds[name][i, j]) for name in names))
        for i in range(len(procs))
        for j in range(len(sizes))
    ]
    title = f"{collective} on {fitted.platform}, predicted by {fitted.name}"
    stdout_console().print(table(title, ["P", "m", *names], rows[:_MOST_ROWS], left=0))
    if len(rows) > _MOST_ROWS:
        click.echo(f"the first {_MOST_ROWS} of {len(rows)} points; --json prints all")
    click.echo(f"{len(rows) * len(names)} predictions in {format_seconds(elapsed)}")


def _segment_of(model: CollectiveModel, collective: str, algorithm: str, asked: int | None) -> int:
    """The segment size asked for, or that of the fit, where the algorithm cuts messages."""
    if not Catalogue.load().algorithm(collective, algorithm).pipelined:
        return 0
    if asked is not None:
        return asked
    return model.parameters.segment_bytes if isinstance(model, ImplementationAware) else 0


def _seconds_text(seconds: float) -> str:
    return format_seconds(seconds) if np.isfinite(seconds) else "-"


def _predict_pair(path: Path, pair: str, sizes: Sequence[int], as_json: bool) -> None:
    ranks = [text.strip() for text in pair.split(",")]
    if len(ranks) != 2 or not all(rank.isdigit() for rank in ranks) or ranks[0] == ranks[1]:
        raise UsageError(f"--pair '{pair}': write two different processes, for example 0,1")
    fitted = FittedParameters.load(path)
    sender, receiver = map(int, ranks)
    if max(sender, receiver) >= fitted.procs:
        raise UsageError(f"--pair '{pair}': {path} knows processes 0 to {fitted.procs - 1}")
    seconds: Array = fitted.parameters.predict(np.array(sizes), sender, receiver)
    if as_json:
        print_json({"model": fitted.family, "message_bytes": list(sizes), "seconds": seconds.tolist()})
        return
    rows = [(format_size(size), format_seconds(one)) for size, one in zip(sizes, seconds, strict=True)]
    title = f"message from {sender} to {receiver} on {fitted.platform}, predicted by {fitted.family}"
    stdout_console().print(table(title, ["m", "seconds"], rows, left=0))
