"""The registry of models of collectives: what each is, its paper, its formulas, and the procedures that fit it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from collwise.algorithms.catalogue import Catalogue, Collective
from collwise.common.errors import UsageError, unknown_name
from collwise.models.collectives import alltoall, barrier, bcast, gather, printed, reduce, scatter
from collwise.models.collectives.steps import Steps, steps_of
from collwise.models.fitting.procedures import PROCEDURES
from collwise.models.implementation_aware import bcast as bcast_parts
from collwise.models.implementation_aware import gather as gather_parts
from collwise.models.implementation_aware import reduce as reduce_parts
from collwise.models.implementation_aware import scatter as scatter_parts
from collwise.models.interface import Points
from collwise.models.piecewise import Array

Formulas = Mapping[str, Mapping[str, Callable[..., Any]]]
"""By collective and algorithm. A point-to-point model's formula takes points and parameters and gives seconds; an
implementation-aware one takes points and gamma and gives parts."""

IMPLEMENTATION_AWARE = "implementation-aware"
"""The family whose models are fitted together: one fit serves its three sets of formulas."""
BY_PARTS, AS_PRINTED, TRADITIONAL = "by_parts", "as_printed", "traditional"
CRITICAL_PATH = "critical_path"
"""The model that has schedules in place of formulas, and so covers every algorithm of the catalogue."""


@dataclass(frozen=True)
class ModelKind:
    """A model of collectives, whatever the platform. Its name on the command line is `str(kind)`.

    `family` is what `collwise fit --model` fits, `variant` the set of formulas of an implementation-aware model. One
    `by_schedule` has no formulas, but plays the schedule of every algorithm. A `heterogeneous` model has parameters of
    each pair; a `printed` one has the formulas of its family as the paper prints them.
    """

    family: str
    title: str
    paper: str
    formulas: Formulas = field(repr=False, compare=False)
    variant: str = ""
    heterogeneous: bool = False
    printed: bool = False
    by_schedule: bool = False

    def __str__(self) -> str:
        words = (self.variant or self.family, "heterogeneous" * self.heterogeneous, AS_PRINTED * self.printed)
        return "_".join(filter(None, words))

    @classmethod
    def parse(cls, name: str) -> ModelKind:
        """The model of that name. Raises UsageError."""
        if name not in MODELS:
            raise unknown_name("model", name, MODELS)
        return MODELS[name]

    @property
    def procedures(self) -> tuple[str, ...]:
        """The procedures of 'collwise fit' that estimate the parameters, the default first."""
        if self.family in (IMPLEMENTATION_AWARE, CRITICAL_PATH):
            return (self.family,)
        known = PROCEDURES[self.family].items()
        return tuple(name for name, procedure in known if not (procedure.means_only and self.heterogeneous))

    def algorithms(self, collective: str) -> tuple[str, ...]:
        """The algorithms with a formula; none for a collective without any."""
        if self.by_schedule:
            return _own(Catalogue.load().collective(collective))
        return tuple(self.formulas.get(collective, {}))

    def covers(self, collective: str) -> bool:
        """Whether there is an algorithm of the collective that the model can predict."""
        return self.by_schedule or collective in self.formulas


def _with_steps(formula: Callable[[Points, Steps], Array], points: Points, parameters: Any) -> Array:
    return formula(points, steps_of(parameters))


def _of_steps(*formulas: Callable[[Points, Steps], Array]) -> dict[str, Callable[[Points, Any], Array]]:
    """The formulas over steps, as ones over parameters, by the algorithms that they are named after."""
    return {formula.__name__: partial(_with_steps, formula) for formula in formulas}


_BCAST = _of_steps(bcast.linear, bcast.chain, bcast.binary, bcast.split_binary, bcast.binomial)
_SCATTER = _of_steps(scatter.linear)
_STEPS: Formulas = {
    "barrier": _of_steps(barrier.linear, barrier.double_ring, barrier.recursive_doubling, barrier.bruck),
    "bcast": {"linear": _BCAST["linear"], "linear_nonblocking": _BCAST["linear"]} | _BCAST,
    "reduce": _of_steps(reduce.linear, reduce.chain, reduce.pipeline, reduce.binary, reduce.binomial),
    "alltoall": _of_steps(alltoall.linear, alltoall.pairwise),
    "scatter": _SCATTER | {"binomial": scatter.binomial},
    "gather": _SCATTER | {"binomial": gather.binomial},
}
_LMO: Formulas = {
    "scatter": {"linear": scatter.linear_lmo, "binomial": scatter.binomial},
    "gather": {"linear": gather.linear_lmo, "binomial": gather.binomial},
}
_PAIRS: Formulas = {
    "scatter": {"linear": scatter.linear_between_pairs, "binomial": scatter.binomial},
    "gather": {"linear": gather.linear_between_pairs, "binomial": gather.binomial},
}

_BY_PARTS: Formulas = {
    "bcast": bcast_parts.BY_PARTS,
    "gather": gather_parts.BY_PARTS,
    "reduce": reduce_parts.BY_PARTS,
    "scatter": scatter_parts.BY_PARTS,
}
_AS_PRINTED: Formulas = {"bcast": bcast_parts.AS_PRINTED, "gather": gather_parts.AS_PRINTED}
_TRADITIONAL: Formulas = {"bcast": bcast_parts.TRADITIONAL}


def _as_printed(*formulas: Callable[[Points, Any], Array]) -> Formulas:
    """The formulas, named COLLECTIVE_ALGORITHM_FAMILY, by collective and algorithm; and the alltoall of all papers."""
    found: dict[str, dict[str, Callable[..., Any]]] = {
        "alltoall": {"linear": partial(_with_steps, alltoall.linear_in_turn)}
    }
    for formula in formulas:
        collective, _, rest = formula.__name__.partition("_")
        found.setdefault(collective, {})[rest.rpartition("_")[0]] = formula
    return found


_PRINTED_HOCKNEY = _as_printed(
    printed.barrier_linear_hockney, printed.bcast_binary_hockney, printed.bcast_split_binary_hockney
)
_PRINTED_LOGGP = _as_printed(
    printed.bcast_binary_loggp,
    printed.bcast_split_binary_loggp,
    printed.reduce_linear_loggp,
    printed.reduce_pipeline_loggp,
    printed.reduce_binary_loggp,
    printed.reduce_binomial_loggp,
)
_PRINTED_PLOGP = _as_printed(
    printed.bcast_split_binary_plogp,
    printed.reduce_linear_plogp,
    printed.reduce_pipeline_plogp,
    printed.reduce_binary_plogp,
    printed.reduce_binomial_plogp,
)

_NURIYEV = "Nuriyev & Lastovetsky 2021"
_PJESIVAC = "Pješivac-Grbović et al. 2007"
_OFLYNN = "O'Flynn 2009"


def _printed(kind: ModelKind, formulas: Formulas) -> ModelKind:
    """The same model with these formulas in place of its own."""
    merged = {collective: {**own, **formulas.get(collective, {})} for collective, own in kind.formulas.items()}
    return replace(kind, title=f"{kind.family} with the formulas as printed", formulas=merged, printed=True)


def _kinds() -> Iterable[ModelKind]:
    yield ModelKind(
        IMPLEMENTATION_AWARE,
        "one alpha and beta per part of each algorithm and protocol",
        f"{_NURIYEV}, taken apart",
        _BY_PARTS,
        BY_PARTS,
    )
    yield ModelKind(IMPLEMENTATION_AWARE, "one alpha and beta per algorithm", _NURIYEV, _AS_PRINTED, AS_PRINTED)
    yield ModelKind(
        IMPLEMENTATION_AWARE,
        "binary and binomial broadcast from roundtrips",
        f"{_NURIYEV}, section III-C",
        _TRADITIONAL,
        TRADITIONAL,
    )
    own = "one alpha and beta per algorithm, counted along the critical path of its schedule"
    yield ModelKind(CRITICAL_PATH, own, f"{_NURIYEV}, with schedules for formulas", {}, by_schedule=True)
    homogeneous = [
        (ModelKind("hockney", "alpha + m beta", _PJESIVAC, _STEPS), _PRINTED_HOCKNEY),
        (ModelKind("hockney_by_size", "alpha and beta as functions of m", _PJESIVAC, _STEPS), _PRINTED_HOCKNEY),
        (ModelKind("logp", "L, o and g, whatever the size", _PJESIVAC, _STEPS), _PRINTED_LOGGP),
        (ModelKind("loggp", "LogP with G, a gap per byte", _PJESIVAC, _STEPS), _PRINTED_LOGGP),
        (ModelKind("plogp", "L and the functions o_s(m), o_r(m), g(m)", _PJESIVAC, _STEPS), _PRINTED_PLOGP),
    ]
    yield from (kind for kind, _ in homogeneous)
    yield ModelKind("lmo", "processors' shares apart from the network's", _OFLYNN, _LMO)
    # Heterogeneous LogP, LogGP and PLogP have no formulas of collectives (O'Flynn 2009, section 5.2).
    yield ModelKind("hockney", "alpha and beta of each pair", _OFLYNN, _PAIRS, heterogeneous=True)
    of_each = "C and t of each processor, L and 1/beta of each pair"
    yield ModelKind("lmo", of_each, _OFLYNN, _LMO, heterogeneous=True)
    yield from (_printed(kind, formulas) for kind, formulas in homogeneous)


MODELS: Mapping[str, ModelKind] = MappingProxyType({str(kind): kind for kind in _kinds()})
"""Every model of collectives by name, as on the command line."""
MODEL_NAMES = tuple(MODELS)
DEFAULT_MODEL = CRITICAL_PATH
"""The model whose picks have the least slowdown in docs/evaluation.md, on average over each collective and platform."""


class RegisteredModel:
    """The base of all models of collectives, which have a name in the registry."""

    name: str

    @property
    def kind(self) -> ModelKind:
        """The registry's entry."""
        return ModelKind.parse(self.name)

    def algorithms(self, collective: str) -> tuple[str, ...]:
        """The algorithms with a formula; none for a collective without any."""
        return self.kind.algorithms(collective)

    def formula(self, collective: str, algorithm: str) -> Callable[..., Any]:
        """The formula of an algorithm. Raises UsageError for one without."""
        if algorithm not in self.algorithms(collective):
            raise unknown_name(f"{collective} algorithm", algorithm, self.algorithms(collective))
        return self.kind.formulas[collective][algorithm]


def models_of_family(family: str) -> tuple[ModelKind, ...]:
    """The models that one fit of the family serves: the one it was made for first."""
    found = (kind for kind in MODELS.values() if kind.family == family)
    return tuple(sorted(found, key=lambda kind: not kind.heterogeneous))


@dataclass(frozen=True)
class Coverage:
    """An algorithm of the catalogue and, by model name, whether the model has a formula for it."""

    collective: str
    algorithm: str
    formulas: Mapping[str, bool]


def coverage(collectives: Sequence[str] = ()) -> list[Coverage]:
    """The coverage of every algorithm of these collectives, or of all. Raises UsageError for an unknown one."""
    catalogue = Catalogue.load()
    chosen = [catalogue.collective(name) for name in collectives] or list(catalogue.collectives.values())
    return [
        Coverage(one.name, algorithm, {name: algorithm in kind.algorithms(one.name) for name, kind in MODELS.items()})
        for one in chosen
        for algorithm in _own(one)
    ]


def _own(collective: Collective) -> tuple[str, ...]:
    """The algorithms but for mock-ups, of which there are no models: what they do depends on the MPI library."""
    return tuple(name for name in collective.algorithms if name not in collective.mock_ups)


def no_parameters(model: str, collectives: Sequence[str]) -> UsageError:
    """The error for a fitted model whose parameters, of each collective its own, have none for these."""
    return UsageError(
        f"the parameters of model {model} have none for {', '.join(collectives)}; fit them: collwise fit --model "
        f"{model} --collective {','.join(collectives)}"
    )


def check_formulas(model: str, collectives: Sequence[str]) -> None:
    """Raises UsageError naming those of the collectives that the model has no formulas for."""
    kind = ModelKind.parse(model)
    missing = [name for name in collectives if not kind.covers(name)]
    if missing:
        others = [name for name, one in MODELS.items() if not one.printed and all(map(one.covers, missing))]
        raise UsageError(
            f"model {model} has no formulas for {', '.join(missing)}; these have: {', '.join(others)}. "
            "Every collective can be chosen by simulated times: collwise select --by simulated"
        )
