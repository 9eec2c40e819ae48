"""collwise fit and predict: estimating model parameters, evaluating models."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from collwise.common.files import writable_file
from collwise.common.units import format_seconds, format_size
from collwise.models.implementation_aware.parameters import MODELS, ModelParameters
from collwise.platforms import HostPlatform
from collwise.simulator.store import Store
from collwise.studies.commands.shared import (
    COUNTS,
    NAMES,
    SEGMENT,
    SIZES,
    algorithm_names,
    collective_option,
    json_option,
    platform_option,
    ppn_option,
    print_json,
    processes_per_node,
    run_options,
    stdout_console,
    sweep_progress,
    table,
)
from collwise.validation.fitting import Plan, default_procs
from collwise.validation.fitting import fit as run_fit
from collwise.validation.grid import SIZES as USUAL_SIZES

_MOST_ROWS = 60


@click.command()
@platform_option
@click.option("--procs", type=COUNTS, help="P of the experiments. Default: five nodes, a quarter and half of all.")
@click.option("--segment", type=SEGMENT, default="8KiB", show_default=True, help="Segment size of the broadcasts.")
@click.option("--fanout", type=click.IntRange(1), help="Chains of the K-chain tree. Default: 4.")
@ppn_option
@run_options
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Default: results/PLATFORM.parameters.toml")
@json_option
def fit(
    platform: HostPlatform,
    procs: Sequence[int] | None,
    segment: int,
    fanout: int | None,
    ppn: int | None,
    store: Path,
    engine: str | None,
    jobs: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Estimates gamma(p), and alpha and beta of every algorithm, from simulated experiments.

    Nuriyev & Lastovetsky 2021, section IV. Writes a TOML file with the parameters and every residual.
    """
    ppn = processes_per_node(platform, ppn)
    plan = Plan(tuple(procs or default_procs(platform, ppn)), ppn, segment, fanout or 0)
    output = writable_file(output or Path("results") / f"{platform.name}.parameters.toml")
    with Store(store) as opened, sweep_progress(f"{platform.name} fit") as progress:
        parameters = run_fit(platform, plan, opened, engine_version=engine, jobs=jobs, on_progress=progress)
    parameters.save(output)
    if as_json:
        print_json({"file": str(output), **parameters.as_document()})
        return
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
    stdout_console().print(table(f"{platform.title}, P = {', '.join(map(str, plan.procs))}", columns, rows, left=4))
    click.echo(f"{output}: parameters and residuals; {parameters.made_by}")


@click.command()
@click.option("--parameters", required=True, type=click.Path(path_type=Path), help="A file that 'collwise fit' wrote.")
@collective_option
@click.option("--algorithms", type=NAMES, help="Names by commas, or all.")
@click.option("--procs", required=True, type=COUNTS, help="Process counts: 50,80,90 or 2:1000:+1.")
@click.option("--sizes", type=SIZES, help="Message sizes: 8KiB:4MiB:x2. Default: the paper's.")
@click.option("--segment", type=SEGMENT, help="Segment size. Default: that of the fit.")
@click.option("--model", type=click.Choice(MODELS), default="by_parts", show_default=True)
@json_option
def predict(
    parameters: Path,
    collective: str,
    algorithms: Sequence[str] | None,
    procs: Sequence[int],
    sizes: Sequence[int] | None,
    segment: int | None,
    model: str,
    as_json: bool,
) -> None:
    """Evaluates the models over arrays of P and m at once."""
    fitted = ModelParameters.load(parameters)
    covered = fitted.algorithms(model, collective)
    asked = algorithm_names(collective, algorithms)
    sizes = tuple(sizes or USUAL_SIZES[collective])
    names = [name for name in asked if name in covered]
    p, m = np.array(procs)[:, None], np.array(sizes)[None, :]
    started = time.perf_counter()
    segments = {name: segment if collective == "bcast" and name != "linear" else None for name in names}
    seconds = {name: fitted.predict(collective, name, p, m, segments[name], model=model) for name in names}
    elapsed = time.perf_counter() - started
    for name in asked:
        if name not in covered:
            click.echo(f"collwise: model {model} has no formula for {collective} {name}; left out", err=True)
    if as_json:
        times = {name: values.tolist() for name, values in seconds.items()}
        print_json({"model": model, "procs": list(procs), "message_bytes": list(sizes), "seconds": times})
        return
    rows = [
        (procs[i], format_size(sizes[j]), *(format_seconds(seconds[name][i, j]) for name in names))
        for i in range(len(procs))
        for j in range(len(sizes))
    ]
    title = f"{collective} on {fitted.platform}, predicted by {model}"
    stdout_console().print(table(title, ["P", "m", *names], rows[:_MOST_ROWS], left=0))
    if len(rows) > _MOST_ROWS:
        click.echo(f"the first {_MOST_ROWS} of {len(rows)} points; --json prints all")
    click.echo(f"{len(rows) * len(names)} predictions in {format_seconds(elapsed)}")
