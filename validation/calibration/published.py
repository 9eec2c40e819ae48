"""Calibration of a platform to published figures, for clusters on which nothing can be measured.

The figures are those of Nuriyev & Lastovetsky 2021: gamma(3..7) of table 6, and the gather times that tables 4 and 5
give through formulas (12), (13) and (15). These formulas hold for rendezvous, so linear_sync at 64 KiB, whose halves
are eager, is left out. There are three unknowns: the latency of a link, the share of its bandwidth that the payload
gets, and the factor on latency due to the rendezvous handshake. gamma fixes the ratio of latency to bandwidth at one
segment; the gather times fix bandwidth and handshake. The same experiments are simulated, and the squared log ratios of
simulated to published values are minimised, with equal weights of gamma and gather.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from collwise.common.errors import UsageError
from collwise.common.units import format_size
from collwise.models.implementation_aware import gather
from collwise.models.implementation_aware.message_counts import Gamma
from collwise.models.interface import Points
from collwise.platforms import Platform
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case
from collwise.validation.times.defaults import GATHER_SIZES, SEGMENT_BYTES

# The gather times by name.
_GATHERS = {
    f"gather {algorithm} {format_size(size)}": (algorithm, size)
    for algorithm in ("linear", "linear_sync", "binomial")
    for size in GATHER_SIZES
    if (algorithm, size) != ("linear_sync", 65536)
}
# P of the paper's gather experiments (section V-B).
PAPER_GATHER_PROCS = {"grisou": 40, "gros": 124}
_TOLERATED_LOG_RATIO = 0.05
# The start of the search, and its bounds.
_UNKNOWNS = {
    "link_latency_seconds": (20e-6, 1e-6, 2e-4),
    "bandwidth_factor": (0.94, 0.5, 1.0),
    "rendezvous_latency_factor": (2.0, 1.0, 20.0),
}


@dataclass(frozen=True)
class PublishedFigure:
    """A published figure and its value on the calibrated platform: a gamma (no unit) or a gather time in seconds."""

    name: str
    published: float
    simulated: float

    @property
    def relative_error(self) -> float:
        """(simulated - published) / published."""
        return self.simulated / self.published - 1


def with_parameters(platform: Platform, values: dict[str, float]) -> Platform:
    """The platform with the three unknowns set.

    SMPI charges neither `os` nor `or` for messages above the rendezvous threshold. The latency factor above the
    threshold is large enough that no message takes less time than a shorter one.
    """
    calibration, latency = platform.calibration, 2 * values["link_latency_seconds"]
    eager_limit = calibration.eager_limit_bytes
    charged = sum(base + eager_limit * per_byte for _, base, per_byte in (calibration.os[-1], calibration.or_[-1]))
    least = float(f"{1 + charged / latency:.4g}")
    calibration = dataclasses.replace(
        calibration,
        bandwidth_factor=((0, values["bandwidth_factor"]),),
        latency_factor=((0, 1.0), (eager_limit, max(least, values["rendezvous_latency_factor"]))),
    )
    return dataclasses.replace(platform, link_latency_seconds=values["link_latency_seconds"], calibration=calibration)


def published_targets(platform: Platform, procs: int) -> dict[str, float]:
    """The published figures by name; gather times follow from the paper's parameters and formulas for `procs`."""
    if "gamma" not in platform.published:
        raise UsageError(f"platform '{platform.name}' has no [published] figures to calibrate against")
    targets = {f"gamma({p})": float(value) for p, value in sorted(platform.published["gamma"].items())}
    for name, (algorithm, size) in _GATHERS.items():
        parameters = platform.published[f"gather_{algorithm}"]
        parts = gather.AS_PRINTED[algorithm](Points.of(procs, size, eager_limit_bytes=0), Gamma((1.0,), ((1.0,),)))
        targets[name] = float(
            sum(
                part.count * (parameters["alpha_seconds"] + part.bytes_each * parameters["beta_seconds_per_byte"])
                for part in parts
            )
        )
    return targets


def simulated_targets(platform: Platform, procs: int, processes_per_node: int) -> dict[str, float]:
    """The simulated values of the published figures.

    gamma is simulated with one process per node, and gather as the paper ran it. Raises CollwiseError if a case fails.
    """
    flat = {p: Case("bcast", "linear_nonblocking", p, SEGMENT_BYTES) for p in range(2, 8)}
    gathers = {
        name: Case("gather", algorithm, procs, size, processes_per_node=processes_per_node)
        for name, (algorithm, size) in _GATHERS.items()
    }
    with Store(":memory:") as store:
        timings = SimulationContext(store).simulate(platform, [*flat.values(), *gathers.values()]).complete().timings
    pair = timings[flat[2]].seconds
    found = {f"gamma({p})": timings[case].seconds / pair for p, case in flat.items() if p > 2}
    return found | {name: timings[case].seconds for name, case in gathers.items()}


def calibrate(platform: Platform, procs: int, processes_per_node: int) -> tuple[Platform, list[PublishedFigure]]:
    """The calibrated platform, and each published figure with the simulated one."""
    published = published_targets(platform, procs)
    names = list(published)
    gammas = np.array([name.startswith("gamma") for name in names])
    weights = np.where(gammas, np.sqrt((~gammas).sum() / gammas.sum()), 1.0)

    def residuals(scaled: np.ndarray) -> np.ndarray:
        values = dict(zip(_UNKNOWNS, map(float, np.exp(scaled)), strict=True))
        found = simulated_targets(with_parameters(platform, values), procs, processes_per_node)
        return np.asarray(weights * np.array([np.log(found[name] / published[name]) for name in names]))

    start, *bounds = np.log(list(_UNKNOWNS.values())).T
    from scipy.optimize import least_squares

    solution = least_squares(
        residuals,
        start,
        bounds=bounds,
        diff_step=1e-3,
        xtol=1e-4,
        loss="soft_l1",
        f_scale=_TOLERATED_LOG_RATIO,
    )
    values = {key: float(f"{np.exp(x):.4g}") for key, x in zip(_UNKNOWNS, solution.x, strict=True)}
    calibrated = with_parameters(platform, values)
    note = (
        "Link latency, bandwidth factor and rendezvous latency factor fitted to the published gamma and gather figures "
        f"with P = {procs}, {processes_per_node} per node, by: collwise platforms calibrate --published "
        f"{platform.name}"
    )
    calibrated = dataclasses.replace(calibrated, calibration=dataclasses.replace(calibrated.calibration, note=note))
    found = simulated_targets(calibrated, procs, processes_per_node)
    return calibrated, [PublishedFigure(name, published[name], found[name]) for name in names]
