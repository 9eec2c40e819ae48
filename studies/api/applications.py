"""Applications under several choices of collectives: `application`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import pandas as pd

from collwise import arguments
from collwise.arguments import Names, Numbers, PlatformLike
from collwise.simulator.sweeps.context import SimulationContext
from collwise.validation.measurement.applications import COLLECTIVES, SEGMENTS, application_of, compare_collectives


def application(
    name: str,
    platform: PlatformLike,
    procs: Numbers,
    collectives: Names = COLLECTIVES,
    *,
    settings: Mapping[str, int] | None = None,
    rate: float | None = None,
    segments: Numbers = SEGMENTS,
    ppn: int | None = None,
    context: SimulationContext | None = None,
) -> pd.DataFrame:
    """The simulated time of an application, and that within its collectives, under several choices of collectives.

    Parameters: `name`, 'asp', 'matmul' or 'training'; `platform`, see `platform`; `procs`, process counts;
    `collectives`, 'ompi', 'mpich', 'mvapich2' and 'impi' (SMPI's selectors), 'openmpi-4.1' and other baselines (what
    that library decides untuned), 'flat' and 'hierarchical' (the fastest of our algorithms for each call, without and
    with those by node), and files of decisions or rules; `settings`, the application's options, for instance
    {'iterations': 48}; `rate`, operations per second of a process; `segments`, the segment sizes that tuned choices may
    have; `ppn`, processes per node, by default the platform's; `context`, whose engine times the algorithms to choose
    from.

    Returns a DataFrame with a row for each process count and choice: `seconds`, `mean_seconds` and `most_seconds` of
    processes within collectives, their shares, and `speedup` over the first choice; where an execution failed they are
    nan, and `error` says why. What the store has is not simulated again.

    Raises UsageError for wrong arguments and where SimGrid is missing.

    >>> import collwise
    >>> times = collwise.application("asp", "gros", procs=4, collectives="ompi,mpich", settings={"iterations": 2})
    >>> bool((times.mean_seconds <= times.most_seconds).all())
    True
    """

    where = arguments.platform(platform)
    with arguments.opened(context) as simulations:
        rows = compare_collectives(
            where,
            application_of(name),
            arguments.counts(procs),
            ppn or where.default_processes_per_node,
            arguments.names(collectives),
            simulations,
            settings=settings or {},
            rate=rate,
            segments=arguments.sizes(segments),
        )
    return pd.DataFrame([asdict(row) | {"mean_share": row.mean_share, "most_share": row.most_share} for row in rows])
