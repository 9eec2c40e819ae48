"""Pješivac-Grbović et al. 2007 repeated in simulation: parameters, curves and maps, all by `repeated`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, cast

import numpy as np
import pandas as pd

from collwise.common.units import format_size
from collwise.models.fitting.procedures import request
from collwise.models.interface import CollectiveModel
from collwise.models.piecewise import Array
from collwise.models.registry import MODELS
from collwise.models.single_messages import HockneyBySize, LogGP, PLogP
from collwise.platforms import HostPlatform, load_description
from collwise.platforms.description import Platform
from collwise.platforms.linear_costs import point_to_point
from collwise.simulator.bench import Simulated
from collwise.simulator.sweeps.context import SimulationContext
from collwise.studies.papers.published import row_of, tables_of
from collwise.validation.compare.scores import Scores
from collwise.validation.compare.simulated import beside_simulation, one_segment_is_none
from collwise.validation.fitting.models_by_name import models_of, parameters_on
from collwise.validation.fitting.recovery import named
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import predicted

KIB, MIB = 1024, 2**20
PUBLISHED = tables_of("pjesivac2007")
LARGEST_BYTES = 8 * MIB
SMALL_SEGMENT, LARGE_SEGMENT = KIB, 8 * KIB
MEASURED = "measured"
"""The name of the condition that uses PLogP as measured ends with this."""


SIZES: dict[str, tuple[int, int]] = {name: (least, largest) for name, (least, largest) in PUBLISHED["sizes"].items()}
"""Ranges of message sizes in bytes that the text names, both ends included."""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and its place. `reason` explains why simulation disagrees; 'open' if nobody knows.

    A claim on decision maps is about the maps of the sources in `of` (models, or the best). It is restricted to the
    message sizes that SIZES has under the name `sizes`, and to ranges of process counts: `procs` has the least and the
    largest count of each range in turn. The claim says one of three things: that the sources make these `picks` (if
    `every` is true, each of the picks at some point);
    that they make these picks from smaller sizes on than the source `before` does; or that penalties are above
    `min_percent` and at most `max_percent`, or near `about_percent`.
    """

    where: str
    published: str
    reason: str = "open"
    of: tuple[str, ...] = ()
    sizes: str = "all"
    procs: tuple[int, ...] = (1, 32)
    picks: tuple[str, ...] = ()
    every: bool = False
    before: str = ""
    min_percent: float = -inf
    max_percent: float = inf
    about_percent: float = 0

    @property
    def open(self) -> bool:
        """True if no reason is known."""
        return self.reason.startswith("open")

    @property
    def bytes(self) -> tuple[int, int]:
        """The least and the largest message size."""
        return SIZES[self.sizes]


CLAIMS = {name: row_of(Claim, item) for name, item in PUBLISHED["claims"].items()}


def doubling(largest: int, by: int = 2) -> tuple[int, ...]:
    """Message sizes from 1 byte to at most `largest`, each `by` times the one before."""
    return tuple(by**k for k in range(64) if by**k <= largest)


# Models.


PAPERS_PROCEDURES = (request("hockney_by_size", "roundtrips"), request("loggp", "fitted"), request("plogp", "fitted"))
"""Section 6.1: Hockney's parameters as functions of m, PLogP fitted to two collectives, LogGP made from PLogP."""

USUAL_PROCEDURES = (request("hockney"), request("loggp"), request("plogp"))

AS_PRINTED, DERIVED = "as printed", "derived"
MODEL_SETS = {
    AS_PRINTED: (PAPERS_PROCEDURES, True),
    "derived formulas, the paper's procedures": (PAPERS_PROCEDURES, False),
    "printed formulas, usual procedures": (USUAL_PROCEDURES, True),
    DERIVED: (USUAL_PROCEDURES, False),
}
"""Both kinds of procedures, each with printed formulas (true) and with derived ones, to separate the effects."""


def models_of_set(name: str, platform: HostPlatform, context: SimulationContext) -> list[CollectiveModel]:
    """Hockney, LogGP and PLogP of one of MODEL_SETS, estimated on a simulated platform."""
    requests, printed = MODEL_SETS[name]
    fitted = [models_of(parameters_on(Simulated(platform, context), fit_request)) for fit_request in requests]
    return [model for models in fitted for name, model in models.items() if MODELS[name].printed == printed]


PROCEDURES = ("culler", "hoefler", "kielmann", "fitted")


def table_5(platform: Platform, context: SimulationContext) -> dict[str, LogGP]:
    """LogGP as published, as the description has it, and as each procedure estimates it in simulation.

    The description's send overhead serves as its g. Raises UsageError if the platform's costs are not linear in the
    message size.
    """
    truth, printed = point_to_point(platform), platform.published["loggp"]
    send, receive = float(truth.send_seconds[0]), float(truth.receive_seconds[0])
    per_byte = float(truth.network_seconds_per_byte[0, 1])
    latency = float(truth.seconds(1)) - send - receive
    # The paper has one overhead for sending and receiving.
    published = LogGP(
        printed["latency_seconds"], printed["overhead_seconds"], printed["overhead_seconds"],
        printed["gap_seconds"], printed["gap_seconds_per_byte"],
    )  # fmt: skip
    fits = {name: parameters_on(Simulated(platform, context), request("loggp", name)) for name in PROCEDURES}
    found: dict[str, Any] = {name: fit.parameters for name, fit in fits.items()}
    return {"published": published, "description": LogGP(latency, send, receive, send, per_byte), **found}


def loggp_parameters(columns: Mapping[str, LogGP]) -> pd.DataFrame:
    """The parameters of `table_5` in seconds, G in seconds per byte: one line per parameter."""
    return pd.DataFrame({name: named(column) for name, column in columns.items()}).loc[
        ["L", "o", "g", "G", "o_s", "o_r"]
    ]


def table_5_text(parameters: pd.DataFrame) -> pd.DataFrame:
    """`loggp_parameters` in microseconds, G in nanoseconds per byte."""
    units = pd.Series("us", parameters.index).mask(parameters.index == "G", "ns per byte")
    shown = parameters.mul(units.map({"us": 1e6, "ns per byte": 1e9}), axis=0).map("{:.2f}".format)
    shown.insert(0, "parameter", shown.index + " (" + units + ")")
    return shown


def worst_difference(parameters: pd.DataFrame, procedure: str) -> float:
    """The largest relative difference between a procedure's L, o, g and G and those of the description."""
    four = parameters.loc[["L", "o", "g", "G"]]
    return float((four[procedure] / four.description - 1).abs().max())


@dataclass(frozen=True)
class Figure1:
    """The parameters of Hockney, of PLogP as measured and of PLogP as fitted, on a platform as functions of m."""

    hockney: HockneyBySize
    measured: PLogP
    fitted: PLogP
    eager_limit_bytes: int


def figure_1(platform: HostPlatform, context: SimulationContext) -> Figure1:
    """Estimates the parameters that figure 1 shows."""
    wanted = (request("hockney_by_size"), request("plogp", "kielmann"), request("plogp", "fitted"))
    fits = [parameters_on(Simulated(platform, context), fit_request) for fit_request in wanted]
    hockney, measured, fitted = (cast(Any, fit.parameters) for fit in fits)
    return Figure1(hockney, measured, fitted, fits[0].eager_limit_bytes)


# Figures 2 to 5.


def compared(
    platform: HostPlatform, grid: Grid, models: Sequence[CollectiveModel], context: SimulationContext
) -> Scores:
    """The scores of models by simulated times. Raises CollwiseError when a case fails."""
    scores = beside_simulation(platform, grid, [predicted(model, grid) for model in models], context)
    scores.right.complete()
    return scores


BARRIERS = Grid.of("barrier", tuple(range(2, 33)), (0,), 1, (0,), ("bruck", "recursive_doubling", "linear"))
"""Figure 2."""

REDUCTIONS = Grid.of("reduce", (8, 24), doubling(MIB), 1, (0, SMALL_SEGMENT), ("binomial", "pipeline"))
"""Figures 3 and 4. The text does not state the largest message of the figure."""

CUT = f", {format_size(SMALL_SEGMENT)}"
"""The label of a method with small segments ends with this."""

EXCHANGES = Grid.of("alltoall", tuple(range(2, 25, 2)), doubling(64 * KIB, 4), 1, (0,), ("pairwise",))
"""Figure 5. The message bytes are the bytes of one block; every process sends P blocks."""

BROADCASTS = Grid.of(
    "bcast", tuple(range(3, 33)), doubling(LARGEST_BYTES), 1, (0, SMALL_SEGMENT, LARGE_SEGMENT),
    ("linear", "binomial", "binary", "split_binary", "chain"),
)  # fmt: skip
"""Figures 6 and 7: section 6.3. Our linear algorithm has no segments, which would only make it slower."""

FEW_BROADCASTS = replace(BROADCASTS, procs=(3, 8, 16, 32), message_bytes=doubling(256 * KIB, 4))
"""Few points, for a quick run."""


def segmentation_by_hockney(hockney: HockneyBySize, sizes: Sequence[int]) -> pd.DataFrame:
    """Both sides of alpha(m) / m + beta(m) > alpha(m_s) / m_s + beta(m_s), in seconds per byte."""
    m = np.asarray(sizes, dtype=float)
    segmented = float(hockney.predict(SMALL_SEGMENT)) / SMALL_SEGMENT
    return pd.DataFrame({"whole": hockney.predict(m) / m, "segmented": segmented}, index=sizes)


def segmentation_by_plogp(plogp: PLogP, sizes: Sequence[int], per_byte: float) -> pd.DataFrame:
    """Both sides of max{g(m), o_r(m) + o_s(m) + gamma m} > max{n_s g(m_s), n_s (o_r(m_s) + o_s(m_s)) + gamma m}.

    They are in seconds.
    """
    m = np.asarray(sizes, dtype=float)

    def step(size: Array | float, count: Array | float) -> Array:
        overheads = plogp.receive_overhead(size) + plogp.send_overhead(size)
        return np.maximum(count * plogp.gap(size), count * overheads + per_byte * m)

    segmented = step(float(SMALL_SEGMENT), np.ceil(m / SMALL_SEGMENT))
    return pd.DataFrame({"whole": step(m, 1.0), "segmented": segmented}, index=sizes)


def segmentation_conditions(found: Figure1, sizes: Sequence[int], per_byte: float) -> dict[str, pd.DataFrame]:
    """The conditions by Hockney, by PLogP as measured and by PLogP as fitted, at the sizes above a segment.

    Segments would help where `whole` is larger than `segmented`. `per_byte` is the time of the local reduction,
    seconds per byte.
    """
    above = [size for size in sizes if size > SMALL_SEGMENT]
    return {
        "Hockney": segmentation_by_hockney(found.hockney, above),
        f"PLogP, {MEASURED}": segmentation_by_plogp(found.measured, above, per_byte),
        "PLogP, fitted": segmentation_by_plogp(found.fitted, above, per_byte),
    }


# Figures 6 and 7.


def chain_steps(maps: Scores, loggp: LogGP) -> pd.DataFrame:
    """The time per further segment of the chain in simulation, beside LogGP's gap and LogGP's time of a message.

    The steps for 1 and 8 KiB are from the two largest messages of the map on its largest process count.
    """
    small, large = maps.right.message_bytes[-2:]
    rows = []
    for segment in (SMALL_SEGMENT, LARGE_SEGMENT):
        seconds = maps.right.seconds.values[maps.right.index_of(Choice("chain", segment)), -1]
        simulated = (seconds[-1] - seconds[-2]) / ((large - small) / segment)
        gap, message = loggp.gap_seconds + (segment - 1) * loggp.gap_seconds_per_byte, loggp.predict(segment)
        rows.append((segment, simulated, float(gap), float(message)))
    return pd.DataFrame(rows, columns=["segment_bytes", "simulated_seconds", "gap_seconds", "message_seconds"])


@dataclass(frozen=True)
class Repeated:
    """Everything that the paper shows, by one engine. `loggp` and `parameters` are by cluster, `maps` by MODEL_SETS."""

    loggp: Mapping[str, Mapping[str, LogGP]]
    parameters: Mapping[str, Figure1]
    barriers: Scores
    reductions: Scores
    conditions: Mapping[str, pd.DataFrame]
    exchanges: Scores
    maps: Mapping[str, Scores]


def repeated(broadcasts: Grid, context: SimulationContext) -> Repeated:
    """Repeats the paper by the engine of a context, figures 6 and 7 on the grid `broadcasts`."""
    boba, frodo = load_description("boba"), load_description("frodo")
    parameters = {platform.name: figure_1(platform, context) for platform in (boba, frodo)}
    models = models_of_set(AS_PRINTED, boba, context)
    maps = {}
    for name in MODEL_SETS:
        fitted = models_of_set(name, frodo, context)
        predictions = [one_segment_is_none(predicted(model, broadcasts)) for model in fitted]
        maps[name] = beside_simulation(frodo, broadcasts, predictions, context)
    return Repeated(
        {platform.name: table_5(platform, context) for platform in (boba, frodo)},
        parameters,
        compared(boba, BARRIERS, models, context),
        compared(boba, REDUCTIONS, models, context),
        segmentation_conditions(parameters["boba"], REDUCTIONS.message_bytes, boba.reduce_seconds_per_byte),
        compared(boba, EXCHANGES, models, context),
        maps,
    )
