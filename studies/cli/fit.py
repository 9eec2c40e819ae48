"""collwise fit and predict: model parameters from experiments, and the times that models predict."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import collwise
from collwise.common.errors import UsageError, note, warn
from collwise.common.files import writable_folder
from collwise.common.project import results_folder
from collwise.common.units import format_seconds, format_size
from collwise.models.registry import CRITICAL_PATH, IMPLEMENTATION_AWARE, PROCEDURE_NAMES
from collwise.platforms import HostPlatform
from collwise.simulator.execution.local_machine import LOCAL_PROCS
from collwise.simulator.sweeps.method import PRECISION_OF_FITS
from collwise.studies.cli import declare, options, types
from collwise.studies.cli.declare import command, flag, group, option
from collwise.studies.cli.options import PRECISION
from collwise.studies.cli.output import print_json, print_table
from collwise.studies.cli.target_options import TARGET, TARGET_OPTIONS, TargetOptions, target_from
from collwise.validation.times.defaults import sizes_of

if TYPE_CHECKING:
    from collwise.models.piecewise import Array

_PROCEDURES = "; ".join(f"{family}: {', '.join(names)}" for family, names in PROCEDURE_NAMES.items())
_FITTED_BY_ALGORITHM = (IMPLEMENTATION_AWARE, CRITICAL_PATH)


@command("fit --platform mine.toml -o mine.parameters.toml")
def fit(
    platform: HostPlatform | None = option(types.PLATFORM),
    where: TargetOptions = TARGET,
    model: str = option(types.NamedChoice("model", [*_FITTED_BY_ALGORITHM, *PROCEDURE_NAMES]), IMPLEMENTATION_AWARE),
    how: dict[str, Any] = group(
        dict,
        procs=option(types.COUNTS, said={"local_procs": LOCAL_PROCS}),
        procedure=option(said={"procedures": _PROCEDURES}),
        heterogeneous=option(default=None),
        precision=options.precision(PRECISION_OF_FITS),
        thorough=flag(),
        segments=option(types.SIZES),
        collective=option(types.COLLECTIVES, "all", said={"fitted_by_algorithm": " and ".join(_FITTED_BY_ALGORITHM)}),
        chains=option(click.IntRange(1)),
    ),
    simulation: options.SimulationOptions = options.SIMULATION,
    output: Path | None = option(types.NEW_FILE),
    as_json: bool = options.JSON,
) -> None:
    """Estimates the parameters of models from experiments: simulated, or measured here, on hosts or a test bed.

    The model implementation-aware has gamma(p), and alpha and beta of every algorithm (Nuriyev & Lastovetsky 2021,
    section IV); critical_path has the same for all collectives, with schedules for formulas. The others are
    point-to-point models, from experiments between two or three processes. The command writes a TOML file.
    """
    import numpy as np

    from collwise.models.parameters import FittedParameters, PathParameters
    from collwise.validation.fitting.implementation_aware import default_procs, measured_procs

    if (platform is None) == (not where.named):
        raise UsageError(f"name either --platform, to simulate, or an execution target to measure on: {TARGET_OPTIONS}")
    if platform is not None:
        declare.refuse_options((*PRECISION, "thorough"), f"an execution target: {TARGET_OPTIONS}")
    else:
        declare.refuse_options(options.SIMULATING, "--platform")
    if model in _FITTED_BY_ALGORITHM:
        declare.refuse_options(("procedure", "heterogeneous", "thorough"), f"--model {', '.join(PROCEDURE_NAMES)}")
    else:
        both = ", ".join(_FITTED_BY_ALGORITHM)
        declare.refuse_options(("segments", "collective"), f"--model {both}")
        if platform is not None and where.ppn is not None:
            raise UsageError(f"--ppn is for --model {both}, and for a target: {TARGET_OPTIONS}")
    if model != IMPLEMENTATION_AWARE:
        declare.refuse_options(("chains",), f"--model {IMPLEMENTATION_AWARE}")
    started = time.perf_counter()
    place = platform or target_from(where)
    kind = "" if model == IMPLEMENTATION_AWARE else f".{model}"
    file = output or writable_folder(results_folder()) / f"{place.name}{kind}.parameters.toml"
    with simulation.context() as context:
        fitted = collwise.fit(place, model, ppn=where.ppn, context=context, **how)
    fitted.save(file)
    parameters = fitted.parameters
    if as_json:
        print_json([{"file": str(file), **parameters.as_document()}])
        return
    shown = fitted.table()
    if isinstance(parameters, FittedParameters):
        title = f"{parameters.family} by {parameters.procedure}, {parameters.platform}, {parameters.procs} processes"
        print_table(title, list(shown.columns), shown.to_numpy(), left=2)
        for note in parameters.notes:
            click.echo(note)
        effort = f"{parameters.measurements} measurements, {format_seconds(parameters.seconds)} on the platform"
        click.echo(f"{effort}, {format_seconds(time.perf_counter() - started)} here")
        click.echo(f"{file}: {parameters.family} by {parameters.procedure}, {parameters.made_by}")
        return
    if isinstance(place, HostPlatform):
        title, usual = place.title, default_procs(place, parameters.processes_per_node)
    else:
        title, usual = place.name, measured_procs(place.usual_procs)
    if isinstance(parameters, PathParameters):
        waits = "is posted" if parameters.receives_first else "is not posted yet, too"
        click.echo(f"eager messages leave when their receive {waits}")
    else:
        gamma = parameters.gamma(np.arange(2, 9), parameters.segment_bytes)
        cut = format_size(parameters.segment_bytes)
        click.echo(f"gamma(2..8) at {cut}: {', '.join(f'{value:.3f}' for value in gamma)}")
    title = f"{title}, P = {', '.join(map(str, how['procs'] or usual))}"
    print_table(title, list(shown.columns), shown.to_numpy(), left=4)
    click.echo(f"{file}: parameters and residuals; {parameters.made_by}")


_MOST_ROWS = 60


def _pair(text: str) -> tuple[int, int]:
    ranks = [part.strip() for part in text.split(",")]
    if len(ranks) != 2 or not all(rank.isdecimal() for rank in ranks) or int(ranks[0]) == int(ranks[1]):
        raise UsageError(f"'{text}': write two different processes, for example 0,1")
    return int(ranks[0]), int(ranks[1])


@command("predict --parameters mine.parameters.toml --collective bcast --procs 2:8:+1")
def predict(
    parameters: Path = option(types.PATH, required=True),
    collective: str | None = option(types.COLLECTIVE),
    pair: tuple[int, int] | None = option(types.Parsed("pair", _pair)),
    how: dict[str, Any] = group(
        dict,
        algorithms=option(types.ALGORITHMS),
        procs=option(types.COUNTS),
        sizes=option(types.SIZES),
        segments=option(types.SIZES),
        name=options.MODEL,
        by_schedule=flag(),
    ),
    as_json: bool = options.JSON,
) -> None:
    """Evaluates models over arrays of P and m at once, or the time of single messages."""
    import numpy as np

    if pair is not None:
        declare.refuse_options(("collective", *(set(how) - {"sizes"})), "collectives, not for --pair")
        _predict_pair(parameters, pair, sizes_of("bcast", how["sizes"]), as_json)
        return
    if collective is None:
        raise UsageError("name one of --collective and --pair")
    if how["procs"] is None:
        raise UsageError("--procs is missing: process counts, for example 50,80,90")
    evaluate = collwise.predict  # this loads xarray, which is no part of the time
    started = time.perf_counter()
    (times,) = evaluate(parameters, collective, **how).values()
    elapsed = time.perf_counter() - started
    every = np.moveaxis(times.seconds.values, 0, -1)
    if unknown := int(np.isnan(every).sum()):
        note(f"{unknown} times are not deterministic, or beyond what was fitted")
    several_segments = len(how["segments"] or ()) > 1
    labels = [
        one.algorithm + (f", {format_size(one.segment_bytes)}" if several_segments and one.segment_bytes else "")
        for one in times.choices
    ]
    points = times.grid.points
    if as_json:
        seconds = times.seconds.values.reshape(len(labels), -1)
        records = [
            {
                **{"collective": collective, "algorithm": one.algorithm, "segment_bytes": one.segment_bytes},
                **{"procs": count, "message_bytes": size, "seconds": value},
            }
            for one, row in zip(times.choices, seconds.tolist(), strict=True)
            for (count, size), value in zip(points, row, strict=True)
        ]
        print_json(records, {"model": times.between.name if times.between else ""})
        return
    rows = [
        (count, format_size(size), *(format_seconds(one) if np.isfinite(one) else "-" for one in row))
        for (count, size), row in zip(points, every.reshape(len(points), -1), strict=True)
    ]
    title = f"{collective} on {times.platform}, predicted by {times.maker.removeprefix('model ')}"
    print_table(title, ["P", "m", *labels], rows[:_MOST_ROWS], left=0, keys=2)
    if len(rows) > _MOST_ROWS:
        click.echo(f"the first {_MOST_ROWS} of {len(rows)} points; --json prints all")
    click.echo(f"{every.size} predictions in {format_seconds(elapsed)}")


def _predict_pair(path: Path, pair: tuple[int, int], sizes: Sequence[int], as_json: bool) -> None:
    import numpy as np

    from collwise.models.parameters import FittedParameters
    from collwise.validation.fitting.models_by_name import beyond_what_is_known, models_of

    fitted = FittedParameters.load(path)
    sender, receiver = pair
    if fitted.parameters.heterogeneous and max(pair) >= fitted.procs:
        raise UsageError(f"--pair '{sender},{receiver}': {path} knows processes 0 to {fitted.procs - 1}")
    model = next(iter(models_of(fitted).values()))
    for line in beyond_what_is_known(model, "bcast", max(pair) + 1, max(sizes)):
        warn(line)
    seconds: Array = fitted.parameters.predict(np.array(sizes), sender, receiver)
    if as_json:
        found = zip(sizes, seconds.tolist(), strict=True)
        print_json([{"message_bytes": size, "seconds": one} for size, one in found], {"model": fitted.family})
        return
    rows = [(format_size(size), format_seconds(one)) for size, one in zip(sizes, seconds, strict=True)]
    title = f"message from {sender} to {receiver} on {fitted.platform}, predicted by {fitted.family}"
    print_table(title, ["m", "seconds"], rows, left=0)
