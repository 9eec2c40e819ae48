"""Point-to-point models as models of collectives: which formula goes with which model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import unknown_name
from collwise.models.collectives import alltoall, barrier, bcast, gather, printed, reduce, scatter
from collwise.models.collectives.steps import Steps, steps_of
from collwise.models.hockney import Hockney, HockneyBySize
from collwise.models.interface import Points
from collwise.models.lmo import LMO
from collwise.models.loggp import LogGP
from collwise.models.piecewise import Array
from collwise.models.plogp import HeterogeneousPLogP, PLogP

Parameters = Hockney | HockneyBySize | LogGP | PLogP | HeterogeneousPLogP | LMO
# The model is of the family's class.
Formula = Callable[[Points, Any], Array]
# Of a collective and an algorithm.
Formulas = Mapping[str, Mapping[str, Formula]]


def _from_steps(formula: Callable[[Points, Steps], Array]) -> Formula:
    return partial(_with_steps, formula)


def _with_steps(formula: Callable[[Points, Steps], Array], points: Points, model: Any) -> Array:
    return formula(points, steps_of(model))


_OF_STEPS: Formulas = {
    "barrier": {
        "linear": _from_steps(barrier.linear),
        "double_ring": _from_steps(barrier.double_ring),
        "recursive_doubling": _from_steps(barrier.recursive_doubling),
        "bruck": _from_steps(barrier.bruck),
    },
    "bcast": {
        "linear": _from_steps(bcast.linear),
        "linear_nonblocking": _from_steps(bcast.linear),
        "chain": _from_steps(bcast.chain),
        "binary": _from_steps(bcast.binary),
        "split_binary": _from_steps(bcast.split_binary),
        "binomial": _from_steps(bcast.binomial),
    },
    "reduce": {
        "linear": _from_steps(reduce.linear),
        "chain": _from_steps(reduce.chain),
        "pipeline": _from_steps(reduce.pipeline),
        "binary": _from_steps(reduce.binary),
        "binomial": _from_steps(reduce.binomial),
    },
    "alltoall": {"linear": _from_steps(alltoall.linear), "pairwise": _from_steps(alltoall.pairwise)},
    "scatter": {"linear": _from_steps(scatter.linear), "binomial": scatter.binomial},
    "gather": {"linear": _from_steps(scatter.linear), "binomial": gather.binomial},
}
_LMO: Formulas = {
    "scatter": {"linear": scatter.linear_lmo, "binomial": scatter.binomial},
    "gather": {"linear": gather.linear_lmo, "binomial": gather.binomial},
}

FORMULAS: Mapping[str, Formulas] = MappingProxyType(
    {
        "hockney": _OF_STEPS,
        "hockney_by_size": _OF_STEPS,
        "logp": _OF_STEPS,
        "loggp": _OF_STEPS,
        "plogp": _OF_STEPS,
        "lmo": _LMO,
        "hockney_heterogeneous": {
            "scatter": {"linear": scatter.linear_between_pairs, "binomial": scatter.binomial},
            "gather": {"linear": gather.linear_between_pairs, "binomial": gather.binomial},
        },
        "lmo_heterogeneous": _LMO,
    }
)
"""Of a family, a collective and an algorithm. Heterogeneous LogP models have none (O'Flynn 2009, section 5.2)."""

_IN_TURN = {"linear": _from_steps(alltoall.linear_in_turn)}
_PRINTED_HOCKNEY: Formulas = {
    "barrier": {"linear": printed.barrier_linear_hockney},
    "bcast": {"binary": printed.bcast_binary_hockney, "split_binary": printed.bcast_split_binary_hockney},
    "alltoall": _IN_TURN,
}
_PRINTED_LOGGP: Formulas = {
    "bcast": {"binary": printed.bcast_binary_loggp, "split_binary": printed.bcast_split_binary_loggp},
    "reduce": {
        "linear": printed.reduce_linear_loggp,
        "pipeline": printed.reduce_pipeline_loggp,
        "binary": printed.reduce_binary_loggp,
        "binomial": printed.reduce_binomial_loggp,
    },
    "alltoall": _IN_TURN,
}
_PRINTED_PLOGP: Formulas = {
    "bcast": {"split_binary": printed.bcast_split_binary_plogp},
    "reduce": {
        "linear": printed.reduce_linear_plogp,
        "pipeline": printed.reduce_pipeline_plogp,
        "binary": printed.reduce_binary_plogp,
        "binomial": printed.reduce_binomial_plogp,
    },
    "alltoall": _IN_TURN,
}

PRINTED: Mapping[str, Formulas] = MappingProxyType(
    {
        "hockney": _PRINTED_HOCKNEY,
        "hockney_by_size": _PRINTED_HOCKNEY,
        "logp": _PRINTED_LOGGP,
        "loggp": _PRINTED_LOGGP,
        "plogp": _PRINTED_PLOGP,
    }
)
"""What takes the place of FORMULAS for predictions as those of Pješivac-Grbović et al. 2007."""

AS_PRINTED = "_as_printed"

_CLASSES: Mapping[str, tuple[type, bool]] = MappingProxyType(
    {
        "hockney": (Hockney, False),
        "hockney_by_size": (HockneyBySize, False),
        "logp": (LogGP, False),
        "loggp": (LogGP, False),
        "plogp": (PLogP, False),
        "lmo": (LMO, False),
        "hockney_heterogeneous": (Hockney, True),
        "lmo_heterogeneous": (LMO, True),
    }
)


@dataclass(frozen=True)
class PointToPointModel:
    """A family of FORMULAS with parameters of its class: heterogeneous for '..._heterogeneous' only.

    `name` is the family's, or that with '_as_printed', which puts PRINTED first. `reduce_seconds_per_byte` is gamma.
    LogP takes LogGP's parameters and has G = 0. Raises ValueError for parameters that are not the family's.
    """

    name: str
    platform: str
    parameters: Parameters
    reduce_seconds_per_byte: float = 0.0

    def __post_init__(self) -> None:
        wanted, heterogeneous = _CLASSES[self.family]
        if not isinstance(self.parameters, wanted) or self.parameters.heterogeneous != heterogeneous:
            kind = "heterogeneous" if heterogeneous else "homogeneous"
            raise ValueError(f"model {self.name} takes {kind} parameters of class {wanted.__name__}")

    @property
    def family(self) -> str:
        """The name in FORMULAS."""
        return self.name.removesuffix(AS_PRINTED)

    def algorithms(self, collective: str) -> tuple[str, ...]:
        """Those with a formula; none of a collective without any."""
        return tuple(FORMULAS[self.family].get(collective, {}))

    def predict(
        self,
        collective: str,
        algorithm: str,
        procs: ArrayLike,
        message_bytes: ArrayLike,
        segment_bytes: ArrayLike = 0,
        fanout: int = 0,
    ) -> Array:
        """Seconds at every (P, m); 0 for one process.

        Segments count where the catalogue's algorithm has them; `fanout` 0 is the catalogue's default.
        nan where linear gather's time is not deterministic (LMO), and beyond the processors of a heterogeneous model.
        Raises UsageError for an algorithm without a formula.
        """
        if algorithm not in self.algorithms(collective):
            raise unknown_name(f"{collective} algorithm", algorithm, self.algorithms(collective))
        formula = FORMULAS[self.family][collective][algorithm]
        if self.name != self.family:
            formula = PRINTED[self.family].get(collective, {}).get(algorithm, formula)
        entry = Catalogue.load().algorithm(collective, algorithm)
        segments = segment_bytes if entry.pipelined else np.zeros(np.shape(segment_bytes))
        fanout = fanout or entry.default_count
        points = Points.of(procs, message_bytes, segments, fanout, self.reduce_seconds_per_byte)
        known = (points.procs > 1) & (points.procs <= self._most_procs)
        # Formulas are for two processes and more, of those that there are parameters for.
        safe = replace(points, procs=np.where(known, points.procs, 2.0))
        seconds = formula(safe, self._model)
        return np.where(known, seconds, np.where(points.procs > 1, np.nan, 0.0))

    @property
    def _model(self) -> Parameters:
        if self.family == "logp" and isinstance(self.parameters, LogGP):
            return replace(self.parameters, gap_seconds_per_byte=0.0)
        return self.parameters

    @property
    def _most_procs(self) -> float:
        pairs = self.parameters.as_hockney() if isinstance(self.parameters, LMO) else self.parameters
        return len(np.asarray(pairs.alpha_seconds)) if isinstance(pairs, Hockney) and pairs.heterogeneous else np.inf


@dataclass(frozen=True)
class Coverage:
    """Which families of FORMULAS have a formula for one algorithm of the catalogue."""

    collective: str
    algorithm: str
    families: tuple[str, ...]


def coverage(catalogue: Catalogue) -> list[Coverage]:
    """One for every algorithm of the catalogue, in its order; no families where no model has a formula."""
    return [
        Coverage(
            collective.name,
            algorithm,
            tuple(family for family in FORMULAS if algorithm in FORMULAS[family].get(collective.name, {})),
        )
        for collective in catalogue.collectives.values()
        for algorithm in collective.algorithms
    ]
