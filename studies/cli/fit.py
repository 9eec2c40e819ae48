"""collwise fit: model parameters from experiments."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

import collwise
from collwise.common.errors import UsageError
from collwise.common.files import writable_folder
from collwise.common.project import results_folder
from collwise.common.units import format_seconds, format_size
from collwise.models.registry import CRITICAL_PATH, IMPLEMENTATION_AWARE, PROCEDURE_NAMES
from collwise.platforms import HostPlatform
from collwise.simulator.execution.local_machine import LOCAL_PROCS
from collwise.simulator.sweeps.method import PRECISION_OF_FITS
from collwise.studies.cli import declare, options
from collwise.studies.cli.declare import command, flag, group, option
from collwise.studies.cli.options import PRECISION
from collwise.studies.cli.output import print_json, print_table
from collwise.studies.cli.target_options import TARGET, TARGET_OPTIONS, TargetOptions, target_from
from collwise.studies.cli.types import COLLECTIVES, COUNTS, NEW_FILE, PLATFORM, NamedChoice

_PROCEDURES = "; ".join(f"{family}: {', '.join(names)}" for family, names in PROCEDURE_NAMES.items())
_FITTED_BY_ALGORITHM = (IMPLEMENTATION_AWARE, CRITICAL_PATH)


@command("fit --platform mine.toml -o mine.parameters.toml")
def fit(
    platform: HostPlatform | None = option("A known platform (see 'collwise platforms list') or a file.", PLATFORM),
    where: TargetOptions = TARGET,
    model: str = option(
        "The family to fit.", NamedChoice("model", [*_FITTED_BY_ALGORITHM, *PROCEDURE_NAMES]), IMPLEMENTATION_AWARE
    ),
    how: dict[str, Any] = group(
        dict,
        procs=option(
            "Process counts of the experiments. Default: five nodes, a quarter and half of all; for point-to-point "
            f"models six, or all if nodes differ. Measured: all, {LOCAL_PROCS} on this machine.",
            COUNTS,
        ),
        procedure=option(f"The procedure for point-to-point models; the first is the default. {_PROCEDURES}."),
        heterogeneous=option(
            "Point-to-point models: parameters of each pair and processor, or their means. Default: by the nodes.",
            default=None,
            names="--heterogeneous/--homogeneous",
        ),
        precision=options.precision(PRECISION_OF_FITS),
        thorough=flag("Measure as many sizes and messages as in simulation."),
        segments=options.segments(
            None,
            "The least one is the common one.",
            default_text="8KiB:128KiB:x2, measured 0,8KiB; critical_path: 0,1KiB,8KiB,64KiB",
        ),
        collective=option(
            f"Names by commas, or all that the model covers; for {' and '.join(_FITTED_BY_ALGORITHM)}.",
            COLLECTIVES,
            "all",
            names="--collective",
        ),
        chains=option(
            "The number of chains of the K-chain tree, for implementation-aware. Default: 4.", click.IntRange(1)
        ),
    ),
    simulation: options.SimulationOptions = options.SIMULATION,
    output: Path | None = option("Default: results/PLATFORM[.MODEL].parameters.toml", NEW_FILE, names="-o --output"),
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
