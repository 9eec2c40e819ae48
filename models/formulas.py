"""The formulas of every model of collectives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from collwise.models.collectives import barrier, bcast, blocks, printed, reduce
from collwise.models.collectives.steps import Steps, steps_of
from collwise.models.implementation_aware import (
    bcast as bcast_parts,
    gather as gather_parts,
    reduce as reduce_parts,
    scatter as scatter_parts,
)
from collwise.models.interface import Points
from collwise.models.piecewise import Array

Formulas = Mapping[str, Mapping[str, Callable[..., Any]]]
"""The formulas by collective and algorithm; those of point-to-point models give seconds, the others give parts."""


def _with_steps(formula: Callable[[Points, Steps], Array], points: Points, parameters: Any) -> Array:
    return formula(points, steps_of(parameters))


def _of_steps(*formulas: Callable[[Points, Steps], Array]) -> dict[str, Callable[[Points, Any], Array]]:
    """Turns formulas that take steps into formulas that take parameters, and returns these by algorithm."""
    return {formula.__name__: partial(_with_steps, formula) for formula in formulas}


_BCAST = _of_steps(bcast.linear, bcast.chain, bcast.binary, bcast.split_binary, bcast.binomial)
_LINEAR = _of_steps(blocks.linear)
_STEPS: Formulas = {
    "barrier": _of_steps(barrier.linear, barrier.double_ring, barrier.recursive_doubling, barrier.bruck),
    "bcast": {"linear": _BCAST["linear"], "linear_nonblocking": _BCAST["linear"]} | _BCAST,
    "reduce": _of_steps(reduce.linear, reduce.chain, reduce.pipeline, reduce.binary, reduce.binomial),
    "alltoall": _LINEAR | _of_steps(blocks.pairwise),
    "scatter": _LINEAR | {"binomial": blocks.scatter_binomial},
    "gather": _LINEAR | {"binomial": blocks.gather_binomial},
}
_LMO: Formulas = {
    "scatter": {"linear": blocks.scatter_lmo, "binomial": blocks.scatter_binomial},
    "gather": {"linear": blocks.gather_lmo, "binomial": blocks.gather_binomial},
}
_PAIRS: Formulas = {
    "scatter": {"linear": blocks.scatter_between_pairs, "binomial": blocks.scatter_binomial},
    "gather": {"linear": blocks.gather_between_pairs, "binomial": blocks.gather_binomial},
}

_BY_PARTS: Formulas = {
    "bcast": bcast_parts.BY_PARTS,
    "gather": gather_parts.BY_PARTS,
    "reduce": reduce_parts.BY_PARTS,
    "scatter": scatter_parts.BY_PARTS,
}
_AS_PRINTED: Formulas = {"bcast": bcast_parts.AS_PRINTED, "gather": gather_parts.AS_PRINTED}
_TRADITIONAL: Formulas = {"bcast": bcast_parts.TRADITIONAL}


def _as_printed(family: str) -> Formulas:
    """The formulas in steps, or the functions of `printed` that are named COLLECTIVE_ALGORITHM_FAMILY, if any."""
    found = {collective: dict(formulas) for collective, formulas in _STEPS.items()}
    for name, formula in vars(printed).items():
        if name.endswith(f"_{family}"):
            collective, _, algorithm = name.removesuffix(f"_{family}").partition("_")
            found[collective][algorithm] = formula
    return found


FORMULAS: Mapping[str, Formulas] = {
    "by_parts": _BY_PARTS,
    "as_printed": _AS_PRINTED,
    "traditional": _TRADITIONAL,
    "hockney": _STEPS,
    "hockney_by_size": _STEPS,
    "logp": _STEPS,
    "loggp": _STEPS,
    "plogp": _STEPS,
    "lmo": _LMO,
    "hockney_heterogeneous": _PAIRS,
    "lmo_heterogeneous": _LMO,
    "hockney_as_printed": _as_printed("hockney"),
    "hockney_by_size_as_printed": _as_printed("hockney"),
    "logp_as_printed": _as_printed("loggp"),
    "loggp_as_printed": _as_printed("loggp"),
    "plogp_as_printed": _as_printed("plogp"),
}
"""Formulas by the name of their model; heterogeneous LogP, LogGP and PLogP have none (O'Flynn 2009, section 5.2)."""
