"""Checks of what collwise is made of against what is known to be true: `recovery`."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from collwise import arguments
from collwise.arguments import PlatformLike
from collwise.simulator.bench import Simulated
from collwise.simulator.sweeps.context import SimulationContext

if TYPE_CHECKING:
    import pandas as pd


def recovery(platform: PlatformLike | None = None, *, context: SimulationContext | None = None) -> pd.DataFrame:
    """Estimates the known parameters of a platform by every procedure, and shows the errors.

    A procedure is left out if the platform is not as its paper assumes. The exit code is 1 if a parameter is off by
    more than 2 % (LMO: 5 %).

    Returns a DataFrame with a row for each parameter: what is `true`, what is `estimated`, its `worst_error`, `ok`.
    """
    import pandas as pd

    from collwise.platforms.linear_costs import point_to_point
    from collwise.validation.fitting.models_by_name import parameters_on
    from collwise.validation.fitting.recovery import LMO_TOLERANCE, PLATFORMS, TOLERANCE, objection, recover, requests

    rows, left_out = [], []
    with arguments.opened(context) as simulations:
        for one in map(arguments.platform, PLATFORMS if platform is None else [platform]):
            wanted, truth = requests(one.heterogeneous), point_to_point(one)
            for asked in wanted:
                if why := objection(asked, truth):
                    left_out.append(f"{one.name}: {asked.family} by {asked.procedure} {why}; left out")
            rows += recover(one, wanted, partial(parameters_on, Simulated(one, simulations)))
    frame = pd.DataFrame([asdict(row) | {"ok": row.ok} for row in rows])
    frame.attrs |= {"title": "Estimated parameters beside the true ones, in seconds (per byte)", "lines": left_out}
    if wrong := [row for row in rows if not row.ok]:
        first = wrong[0]
        frame.attrs["problem"] = (
            f"{len(wrong)} of {len(rows)} parameters are off by more than {TOLERANCE * 100:.0f} % "
            f"(LMO: {LMO_TOLERANCE * 100:.0f} %); first: {first.platform}, {first.family} by {first.procedure}, "
            f"{first.parameter}"
        )
    return frame
