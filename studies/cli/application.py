"""collwise application: a program's time and share of communication under several choices of collectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

import collwise
from collwise import arguments
from collwise.common.errors import CollwiseError, UsageError
from collwise.common.units import format_seconds
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.context import SCHEDULE
from collwise.studies.cli import options
from collwise.studies.cli.declare import argument, command, option, refuse_options
from collwise.studies.cli.output import print_json, print_table, write_figure
from collwise.studies.cli.types import COUNTS, NAMES, NEW_FILE, SIZES, NamedChoice, Parsed
from collwise.validation.measurement.applications import (
    APPLICATIONS,
    COLLECTIVES,
    FLAT,
    HIERARCHICAL,
    SEGMENTS,
    application_of,
    arguments_of,
)
from collwise.validation.measurement.applications import NAMES as CHOICES


def _settings(text: str) -> dict[str, int]:
    found = {}
    for part in arguments.names(text):
        name, equals, value = part.partition("=")
        if not equals or not value.isdecimal():
            raise UsageError(f"malformed '{part}': write NAME=NUMBER, for example iterations=48")
        found[name] = int(value)
    return found


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise UsageError(f"'{text}' is no rate; valid: operations per second above 0, for example 2e10")
    return rate


_HEADS = ("P", "collectives", "time", "in collectives", "share, mean", "share, most", "speed-up", "algorithms")


@command("application asp --platform gros --procs 8 --collectives ompi,mpich --set size=4096,iterations=4")
def application(
    name: str = argument(NamedChoice("application", APPLICATIONS)),
    platform: HostPlatform = options.placed_platform(),
    procs: Sequence[int] = option(COUNTS, required=True, in_project=True),
    collectives: Sequence[str] = option(NAMES, COLLECTIVES, said={"choices": CHOICES}),
    settings: Mapping[str, int] = option(Parsed("settings", _settings), ""),
    rate: float | None = option(Parsed("rate", _rate)),
    segments: Sequence[int] = option(SIZES, SEGMENTS),
    ppn: int | None = options.PPN,
    figure: Path | None = option(NEW_FILE),
    simulation: options.SimulationOptions = options.simulation(SCHEDULE.name),
    as_json: bool = options.JSON,
) -> None:
    """Simulates an application with modelled computation under several choices of collectives.

    asp broadcasts the rows of a matrix by turns, matmul is a master-worker matrix multiplication, training an allreduce
    of AlexNet's gradients. ompi, mpich, mvapich2 and impi are SMPI's selectors; names with a version are what that
    library decides untuned, by our algorithms; flat and hierarchical are the fastest of our algorithms for the
    application's calls. The speed-up is over the first choice. Executions that the store has are not repeated. The exit
    code is 1 if one failed.
    """
    if not collectives:
        raise UsageError(f"--collectives: name one at least; valid: {', '.join(CHOICES)}, or a file")
    if not {FLAT, HIERARCHICAL}.intersection(collectives):
        refuse_options(("segments", "jobs", "executor"), f"--collectives with {FLAT} or {HIERARCHICAL}")
    with simulation.context() as context:
        times = collwise.application(
            name, platform, procs, collectives,
            settings=settings or {}, rate=rate, segments=segments, ppn=ppn, context=context,
        )  # fmt: skip
    if figure is not None:
        from collwise.studies.figures.applications import application_figure

        write_figure(application_figure(times, f"{name} on {platform.title}, simulated"), figure)
    if as_json:
        print_json(times.to_dict("records"))
    else:
        print_table(f"{name} on {platform.title}, simulated", _HEADS, list(map(cells, times.itertuples())), 0, keys=2)
        words = arguments_of(application_of(name), settings or {}, rate)
        click.echo(f"{name} {' '.join(words)}; an operation is one of: {application_of(name).operation}")
        if figure is not None:
            click.echo(f"figure: {figure}")
    failed = times[times.error != ""]
    if len(failed):
        raise CollwiseError(f"{len(failed)} of {len(times)} executions failed; first: {failed.error.iloc[0]}")


def cells(one: Any) -> tuple[object, ...]:
    """The cells of a row of `collwise.application`."""
    if one.error:
        return (one.procs, one.collectives, "failed", *["-"] * 4, one.algorithms or "-")
    return (
        *(one.procs, one.collectives, format_seconds(one.seconds), format_seconds(one.mean_seconds)),
        *(f"{one.mean_share * 100:.2f} %", f"{one.most_share * 100:.2f} %", f"{one.speedup:.2f}"),
        one.algorithms or "-",
    )
