"""Which models of collectives there are, what estimates them, and which of them has a formula for which algorithm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collwise.algorithms.catalogue import Catalogue
from collwise.models.implementation_aware import bcast
from collwise.models.implementation_aware.estimation import AS_PRINTED as AS_PRINTED_BY_NURIYEV
from collwise.models.implementation_aware.estimation import BY_PARTS
from collwise.models.implementation_aware.estimation import FORMULAS as IMPLEMENTATION_FORMULAS
from collwise.models.implementation_aware.parameters import TRADITIONAL
from collwise.models.point_to_point import AS_PRINTED, FORMULAS
from collwise.validation.fitting.models_by_name import HETEROGENEOUS, MODEL_NAMES
from collwise.validation.fitting.point_to_point import PROCEDURES

_NURIYEV = "Nuriyev & Lastovetsky 2021"
_PJESIVAC = "Pješivac-Grbović et al. 2007"
_OFLYNN = "O'Flynn 2009"
_BY_FIT = ("implementation-aware",)

_WHAT: Mapping[str, tuple[str, str]] = {
    BY_PARTS: ("one alpha and beta a part of each algorithm and protocol", f"{_NURIYEV}, taken apart"),
    AS_PRINTED_BY_NURIYEV: ("one alpha and beta an algorithm", _NURIYEV),
    TRADITIONAL: ("binary and binomial broadcast from roundtrips", f"{_NURIYEV}, section III-C"),
    "hockney": ("alpha + m beta", _PJESIVAC),
    "hockney_by_size": ("alpha and beta as functions of m", _PJESIVAC),
    "logp": ("L, o and g, whatever the size", _PJESIVAC),
    "loggp": ("LogP with G, a gap a byte", _PJESIVAC),
    "plogp": ("L and the functions o_s(m), o_r(m), g(m)", _PJESIVAC),
    "lmo": ("processors' shares apart from the network's", _OFLYNN),
    "hockney" + HETEROGENEOUS: ("alpha and beta of each pair", _OFLYNN),
    "lmo" + HETEROGENEOUS: ("C and t of each processor, L and 1/beta of each pair", _OFLYNN),
}


@dataclass(frozen=True)
class About:
    """A model of collectives: what it is, its paper, and the procedures of 'collwise fit', the default first."""

    name: str
    what: str
    paper: str
    procedures: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """An algorithm of the catalogue and, by model, whether that has a formula for it."""

    collective: str
    algorithm: str
    formulas: Mapping[str, bool]


def about_models() -> list[About]:
    """Every model, in the order of MODEL_NAMES."""
    return [_about(name) for name in MODEL_NAMES]


def _about(name: str) -> About:
    if name not in _WHAT:
        family = name.removesuffix(AS_PRINTED)
        return About(name, f"{family} with the formulas as printed", _WHAT[family][1], _procedures(family))
    what, paper = _WHAT[name]
    return About(name, what, paper, _procedures(name))


def _procedures(name: str) -> tuple[str, ...]:
    procedures = PROCEDURES.get(name.removesuffix(HETEROGENEOUS))
    if procedures is None:
        return _BY_FIT
    return tuple(
        procedure for procedure, one in procedures.items() if not name.endswith(HETEROGENEOUS) or one.heterogeneous
    )


def coverage(collectives: Sequence[str] = ()) -> list[Row]:
    """A row for every algorithm of these collectives, or of all. Raises UsageError for an unknown one."""
    catalogue = Catalogue.load()
    chosen = [catalogue.collective(name) for name in collectives] or list(catalogue.collectives.values())
    return [
        Row(one.name, algorithm, {model: algorithm in covered_by(model, one.name) for model in MODEL_NAMES})
        for one in chosen
        for algorithm in one.algorithms
    ]


def covered_by(model: str, collective: str) -> tuple[str, ...]:
    """The algorithms that a model of MODEL_NAMES has formulas for."""
    if model == TRADITIONAL:
        return tuple(bcast.TRADITIONAL) if collective == "bcast" else ()
    formulas = IMPLEMENTATION_FORMULAS.get(model) or FORMULAS[model.removesuffix(AS_PRINTED)]
    return tuple(formulas.get(collective, ()))
