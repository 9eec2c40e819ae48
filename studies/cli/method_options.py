"""Options that say how times are measured, for every command that measures collectives."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from collwise.simulator.sweeps.method import SYNCHRONISATIONS, TIMINGS, Method, Precision
from collwise.studies.cli.options import NamedChoice, precision_options

_USUAL = Method()
_OPTIONS = (
    click.option(
        "--timing",
        type=NamedChoice("timing", TIMINGS),
        default=_USUAL.timing,
        show_default=True,
        help="root: its clock until a closing barrier; maximum: the slowest process; global: on a global clock.",
    ),
    click.option(
        "--synchronisation",
        type=NamedChoice("synchronisation", SYNCHRONISATIONS),
        default=_USUAL.synchronisation,
        show_default=True,
        help="Before each repetition: two barriers, or rounds that start at an agreed instant.",
    ),
    click.option(
        "--late-seconds",
        type=float,
        default=_USUAL.late_seconds,
        show_default=True,
        help="With rounds: start skew beyond which a process is late. More where processes share cores.",
    ),
    precision_options(_USUAL.precision),
    click.option(
        "--nrep",
        type=float,
        metavar="RSE",
        help="Instead: as often as one-byte messages take to reach this relative standard error (Hunold's NREP); 0.01.",
    ),
    click.option(
        "--limit-seconds",
        type=float,
        default=_USUAL.limit_seconds,
        show_default=True,
        help="Longest time for one case; 0: no limit.",
    ),
    click.option(
        "--warmup", type=click.IntRange(1), default=_USUAL.warmup, show_default=True, help="Untimed repetitions first."
    ),
    click.option(
        "--launches",
        type=click.IntRange(1),
        default=_USUAL.launches,
        show_default=True,
        help="Separate executions of MPI; with several, the mean of their means.",
    ),
)

_NAMES = ("timing", "synchronisation", "late_seconds", "nrep", "limit_seconds", "warmup", "launches")


def method_options(function: Callable[..., None]) -> Callable[..., None]:
    """All options of the method; the function gets `method`. Raises UsageError for values that make no sense."""

    @functools.wraps(function)
    def with_method(*arguments: Any, precision: Precision, **given: Any) -> None:
        method = Method(precision=precision, **{name: given.pop(name) for name in _NAMES})
        function(*arguments, method=method, **given)

    wrapped: Callable[..., None] = with_method
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped
