"""Pješivac-Grbović et al. 2007 repeated in simulation: what a study of the paper needs.

What the paper publishes is in pjesivac2007_tables, what is found of its claims comes from pjesivac2007_claims. Here:

- `table_5`, `figure_1`: the parameters of the models, by each procedure;
- `barriers`, `reductions`, `exchanges`: figures 2, 3 and 5, simulated and predicted;
- `segmentation`: figure 4, the conditions under which segments would help a binomial reduction;
- `broadcasts`: figures 6 and 7, decision maps and penalty maps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from collwise.common.errors import CollwiseError
from collwise.common.units import format_size
from collwise.models.fitting.procedures import FitRequest, request
from collwise.models.hockney import HockneyBySize
from collwise.models.interface import CollectiveModel
from collwise.models.loading import models_of
from collwise.models.loggp import LogGP
from collwise.models.parameter_file import FittedParameters
from collwise.models.piecewise import Array
from collwise.models.plogp import PLogP
from collwise.models.registry import MODELS
from collwise.platforms import HostPlatform
from collwise.platforms.truth import point_to_point
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.runner import RunResult
from collwise.studies.papers.pjesivac2007.tables import TABLE_5
from collwise.validation.fitting.models_by_name import simulated_parameters
from collwise.validation.selection.cases import CaseGrid
from collwise.validation.selection.choice import Choice
from collwise.validation.selection.decision_table import DecisionTable
from collwise.validation.selection.decisions import select_by_model
from collwise.validation.selection.maps import DecisionMaps, decision_maps
from collwise.validation.selection.predictions import predicted_seconds, simulated_seconds

KIB, MIB = 1024, 2**20
LARGEST_BYTES = 8 * MIB
SMALL_SEGMENT, LARGE_SEGMENT = KIB, 8 * KIB


def _doubling(least: int, largest: int, by: int = 2) -> tuple[int, ...]:
    return tuple(least * by**k for k in range(64) if least * by**k <= largest)


# Models.


@dataclass(frozen=True)
class ModelSet:
    """Three models: which procedure estimates which, and whether the formulas are the printed or the derived ones."""

    name: str
    requests: tuple[FitRequest, ...]
    printed: bool

    def on(self, platform: HostPlatform, context: SimulationContext) -> list[CollectiveModel]:
        """The models estimated on a simulated platform: Hockney, LogGP, PLogP."""
        fitted = [models_of(simulated_parameters(platform, one, context)) for one in self.requests]
        return [model for models in fitted for name, model in models.items() if MODELS[name].printed == self.printed]


PAPERS_PROCEDURES = (request("hockney_by_size", "roundtrips"), request("loggp", "fitted"), request("plogp", "fitted"))
"""Section 6.1: Hockney's parameters as functions of m, PLogP fitted to two collectives, LogGP made from it."""

USUAL_PROCEDURES = (request("hockney"), request("loggp"), request("plogp"))

AS_IN_THE_PAPER = ModelSet("as printed", PAPERS_PROCEDURES, printed=True)
DERIVED = ModelSet("derived", USUAL_PROCEDURES, printed=False)
MODEL_SETS = (
    AS_IN_THE_PAPER,
    ModelSet("derived formulas, the paper's procedures", PAPERS_PROCEDURES, printed=False),
    ModelSet("printed formulas, usual procedures", USUAL_PROCEDURES, printed=True),
    DERIVED,
)
"""Both kinds of formulas with both kinds of procedures, to tell apart what each of them does."""


def table_5(platform: HostPlatform, context: SimulationContext) -> dict[str, LogGP]:
    """LogGP by column: published, what the description holds, and what each procedure estimates in simulation.

    The description charges sending with g, which is its send overhead. Raises UsageError for a platform whose
    parameters are not straight lines.
    """
    truth = point_to_point(platform)
    send, receive = float(truth.send_seconds[0]), float(truth.receive_seconds[0])
    per_byte = float(truth.network_seconds_per_byte[0, 1])
    latency = float(truth.seconds(1)) - send - receive
    found = {"published": TABLE_5[platform.name], "description": LogGP(latency, send, receive, send, per_byte)}
    for procedure in ("culler", "hoefler", "kielmann", "fitted"):
        parameters = simulated_parameters(platform, request("loggp", procedure), context).parameters
        assert isinstance(parameters, LogGP)
        found[procedure] = parameters
    return found


def worst_difference(found: LogGP, other: LogGP) -> float:
    """The largest difference of L, o, g and G, as a share of the other's."""
    names = ("latency_seconds", "overhead_seconds", "gap_seconds", "gap_seconds_per_byte")
    return max(abs(float(getattr(found, name)) / float(getattr(other, name)) - 1) for name in names)


@dataclass(frozen=True)
class Figure1:
    """Hockney's and PLogP's parameters of a platform as functions of m, PLogP's measured and fitted."""

    hockney: HockneyBySize
    measured: PLogP
    fitted: PLogP
    eager_limit_bytes: int


def figure_1(platform: HostPlatform, context: SimulationContext) -> Figure1:
    """Estimates what figure 1 shows."""
    fits: dict[str, FittedParameters] = {
        name: simulated_parameters(platform, wanted, context)
        for name, wanted in (
            ("hockney", request("hockney_by_size")),
            ("measured", request("plogp", "kielmann")),
            ("fitted", request("plogp", "fitted")),
        )
    }
    hockney, measured, fitted = (fits[name].parameters for name in ("hockney", "measured", "fitted"))
    assert isinstance(hockney, HockneyBySize)
    assert isinstance(measured, PLogP)
    assert isinstance(fitted, PLogP)
    return Figure1(hockney, measured, fitted, fits["hockney"].eager_limit_bytes)


# Figures 2 to 5.


@dataclass(frozen=True)
class Curves:
    """Seconds of every method by its label, shape (P, m): simulated, and predicted by model."""

    plan: CaseGrid
    simulated: Mapping[str, Array]
    predicted: Mapping[str, Mapping[str, Array]]

    def order_kept(self, model: str, labels: Sequence[str]) -> float:
        """The share of points at which the model orders the methods as simulation does; a tie keeps any order."""
        ours = np.stack([self.simulated[label] for label in labels])
        theirs = np.stack([self.predicted[model][label] for label in labels])
        kept = np.ones(ours.shape[1:], dtype=bool)
        for one in range(len(labels)):
            for other in range(one):
                kept &= (ours[one] - ours[other]) * (theirs[one] - theirs[other]) >= 0
        return float(np.mean(kept))

    def ratio(self, model: str, label: str) -> Array:
        """Predicted over simulated time, shape (P, m)."""
        return np.asarray(self.predicted[model][label] / self.simulated[label])

    def mean_error(self, model: str, label: str) -> float:
        """The mean of |predicted / simulated - 1|."""
        return float(np.mean(np.abs(self.ratio(model, label) - 1)))


def curves(
    platform: HostPlatform, plan: CaseGrid, models: Sequence[CollectiveModel], context: SimulationContext
) -> Curves:
    """Simulates the plan's methods and predicts them. Raises CollwiseError when a case fails."""
    sweep = context.simulate(platform, plan.cases())  # fmt: skip
    _stop_if_failed(sweep)
    seconds = simulated_seconds(plan, sweep)
    return Curves(
        plan,
        dict(zip(plan.candidates, seconds, strict=True)),
        {model.name: dict(zip(plan.candidates, predicted_seconds(model, plan), strict=True)) for model in models},
    )


def _stop_if_failed(sweep: RunResult) -> None:
    if sweep.failed:
        raise CollwiseError(f"{len(sweep.failed)} cases failed; first: {sweep.failed[0].case}: {sweep.failed[0].error}")


BARRIERS = CaseGrid("barrier", tuple(range(2, 33)), (0,), 1, (0,), ("bruck", "recursive_doubling", "linear"))
"""Figure 2."""

REDUCTIONS = CaseGrid("reduce", (8, 24), _doubling(1, MIB), 1, (0, SMALL_SEGMENT), ("binomial", "pipeline"))
"""Figures 3 and 4; the figure's largest message is not in the text."""

CUT = f", {format_size(SMALL_SEGMENT)}"
"""What the label of a method in small segments ends in."""

EXCHANGES = CaseGrid("alltoall", tuple(range(2, 25, 2)), _doubling(1, 64 * KIB, 4), 1, (0,), ("pairwise",))
"""Figure 5; message bytes are those of a block, of which every process sends P."""

BROADCASTS = CaseGrid(
    "bcast", tuple(range(3, 33)), _doubling(1, LARGEST_BYTES), 1, (0, SMALL_SEGMENT, LARGE_SEGMENT),
    ("linear", "binomial", "binary", "split_binary", "chain"),
)  # fmt: skip
"""Figures 6 and 7: section 6.3. Our linear algorithm knows no segments; they would only make it slower."""

FEW_BROADCASTS = replace(BROADCASTS, procs=(3, 8, 16, 32), message_bytes=_doubling(1, 256 * KIB, 4))
"""Enough to try everything out."""


@dataclass(frozen=True)
class Segmentation:
    """Figure 4: the two sides of the conditions, by message size m > m_s; seconds, or seconds a byte of the message.

    Segments would help where `whole` is larger than `cut`.
    """

    message_bytes: Array
    whole: Array
    cut: Array
    a_byte: bool = False

    @property
    def met(self) -> float:
        """The share of the sizes at which segments help."""
        return float(np.mean(self.whole > self.cut))


def segmentation_by_hockney(hockney: HockneyBySize, sizes: Sequence[int]) -> Segmentation:
    """alpha(m) / m + beta(m) > alpha(m_s) / m_s + beta(m_s)."""
    m, segment = np.asarray(sizes, dtype=float), float(SMALL_SEGMENT)
    cut = np.full(m.shape, float(hockney.predict(segment)) / segment)
    return Segmentation(m, hockney.predict(m) / m, cut, a_byte=True)


def segmentation_by_plogp(plogp: PLogP, sizes: Sequence[int], per_byte: float) -> Segmentation:
    """max{g(m), o_r(m) + o_s(m) + gamma m} > max{n_s g(m_s), n_s (o_r(m_s) + o_s(m_s)) + gamma m}."""
    m, segment = np.asarray(sizes, dtype=float), float(SMALL_SEGMENT)
    segments = np.ceil(m / segment)
    whole = np.maximum(plogp.gap(m), plogp.receive_overhead(m) + plogp.send_overhead(m) + per_byte * m)
    overheads = float(plogp.receive_overhead(segment) + plogp.send_overhead(segment))
    cut = np.maximum(segments * float(plogp.gap(segment)), segments * overheads + per_byte * m)
    return Segmentation(m, whole, cut)


# Figures 6 and 7.


def broadcasts(
    platform: HostPlatform, plan: CaseGrid, sets: Sequence[ModelSet], context: SimulationContext
) -> dict[str, DecisionMaps]:
    """Decision and penalty maps, by the name of the set of models. Raises CollwiseError when a case fails."""
    made = {}
    for one in sets:
        maps = decision_maps(platform, plan, one.on(platform, context), context)
        _stop_if_failed(maps.sweep)
        made[one.name] = maps
    return made


@dataclass(frozen=True)
class ChainStep:
    """What each further segment of the chain broadcast takes: simulated, a gap of LogGP, and a message of it."""

    segment_bytes: int
    simulated_seconds: float
    gap_seconds: float
    message_seconds: float


def chain_steps(maps: DecisionMaps, loggp: LogGP) -> list[ChainStep]:
    """From the two largest messages of the map, on its most processes; for 1 and 8 KiB."""
    small, large = maps.grid.message_bytes[-2:]
    found = []
    for segment in (SMALL_SEGMENT, LARGE_SEGMENT):
        index = next(i for i, one in enumerate(maps.methods) if one == Choice("chain", segment))
        seconds = maps.seconds[index, -1]
        simulated = float(seconds[-1] - seconds[-2]) / ((large - small) / segment)
        gap, message = loggp.gap_seconds + (segment - 1) * loggp.gap_seconds_per_byte, loggp.predict(segment)
        found.append(ChainStep(segment, simulated, float(gap), float(message)))
    return found


def exact_switches(model: CollectiveModel, procs: Sequence[int]) -> DecisionTable:
    """To the byte, where the model switches between the methods of BROADCASTS."""
    return select_by_model(model, replace(BROADCASTS, procs=tuple(procs)))
