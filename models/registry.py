"""The registry of models of collectives, which needs no numpy: formulas and procedures load on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from collwise.algorithms.catalogue import Catalogue, Collective
from collwise.common.errors import UsageError, check_name

if TYPE_CHECKING:
    from collwise.models.formulas import Formulas

IMPLEMENTATION_AWARE = "implementation-aware"
"""The family whose models are fitted together: one fit serves its three sets of formulas."""
BY_PARTS, AS_PRINTED, TRADITIONAL = "by_parts", "as_printed", "traditional"
PROCEDURE_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "hockney": ("regression", "two-sizes"),
        "hockney_by_size": ("roundtrips",),
        "logp": ("culler",),
        "loggp": ("culler", "hoefler", "kielmann", "fitted"),
        "plogp": ("kielmann", "saturation", "fitted"),
        "lmo": ("triplets",),
    }
)
"""The families of point-to-point models, with the names of the procedures that fit each, the default first."""
CRITICAL_PATH = "critical_path"
"""The model that uses schedules instead of formulas, and so covers every algorithm of the catalogue."""


@dataclass(frozen=True)
class ModelKind:
    """A model of collectives, independent of the platform. Its name on the command line is `str(kind)`.

    `family` is what `collwise fit --model` fits, and `variant` is the set of formulas of an implementation-aware model.
    If `by_schedule`, the model replays schedules; if `heterogeneous`, it has parameters of each pair; if `printed`, it
    uses the formulas as the paper prints them.
    """

    family: str
    title: str
    paper: str
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
        check_name("model", name, MODELS)
        return MODELS[name]

    @cached_property
    def formulas(self) -> Formulas:
        """The formulas by collective and algorithm; empty for a model by schedule."""
        from collwise.models.formulas import FORMULAS

        return FORMULAS[str(self)] if not self.by_schedule else {}

    @property
    def procedures(self) -> tuple[str, ...]:
        """The procedures of 'collwise fit' that estimate the parameters, the default first."""
        if self.family in (IMPLEMENTATION_AWARE, CRITICAL_PATH):
            return (self.family,)
        from collwise.models.fitting.procedures import PROCEDURES

        known = PROCEDURES[self.family].items()
        return tuple(name for name, procedure in known if not (procedure.means_only and self.heterogeneous))

    def algorithms(self, collective: str) -> tuple[str, ...]:
        """The algorithms that have a formula, or a schedule in a model by schedule; empty if there are none."""
        if self.by_schedule:
            return _own(Catalogue.load().collective(collective))
        return tuple(self.formulas.get(collective, {}))


_NURIYEV = "Nuriyev & Lastovetsky 2021"
_PJESIVAC = "Pješivac-Grbović et al. 2007"
_OFLYNN = "O'Flynn 2009"


_OF_PJESIVAC = (
    ModelKind("hockney", "alpha + m beta", _PJESIVAC),
    ModelKind("hockney_by_size", "alpha and beta as functions of m", _PJESIVAC),
    ModelKind("logp", "L, o and g, whatever the size", _PJESIVAC),
    ModelKind("loggp", "LogP with G, a gap per byte", _PJESIVAC),
    ModelKind("plogp", "L and the functions o_s(m), o_r(m), g(m)", _PJESIVAC),
)
_PARTS = "one alpha and beta per part of each algorithm and protocol"
_PATHS = "one alpha and beta per algorithm, with messages counted along its schedule's critical path"
_ROUNDTRIPS = "binary and binomial broadcast from roundtrips"
_EACH = "C and t of each processor, L and 1/beta of each pair"
_KINDS = (
    ModelKind(IMPLEMENTATION_AWARE, _PARTS, f"{_NURIYEV}, split into parts", BY_PARTS),
    ModelKind(IMPLEMENTATION_AWARE, "one alpha and beta per algorithm", _NURIYEV, AS_PRINTED),
    ModelKind(IMPLEMENTATION_AWARE, _ROUNDTRIPS, f"{_NURIYEV}, section III-C", TRADITIONAL),
    ModelKind(CRITICAL_PATH, _PATHS, f"{_NURIYEV}, with schedules, not formulas", by_schedule=True),
    *_OF_PJESIVAC,
    ModelKind("lmo", "separate times of processors and of the network", _OFLYNN),
    # Heterogeneous LogP, LogGP and PLogP have no formulas of collectives (O'Flynn 2009, section 5.2).
    ModelKind("hockney", "alpha and beta of each pair", _OFLYNN, heterogeneous=True),
    ModelKind("lmo", _EACH, _OFLYNN, heterogeneous=True),
    *(replace(kind, title=f"{kind.family} with the formulas as printed", printed=True) for kind in _OF_PJESIVAC),
)
MODELS: Mapping[str, ModelKind] = MappingProxyType({str(kind): kind for kind in _KINDS})
"""Every model of collectives by name, as on the command line."""
MODEL_NAMES = tuple(MODELS)
DEFAULT_MODEL = CRITICAL_PATH
"""The model whose picks have the smallest mean slowdown in docs/evaluation.md."""


class UnlimitedModel:
    """The base of all models; parameters hold for any segment size and placement unless a subclass says otherwise."""

    plays = False
    segment_bytes = 0

    @property
    def processes_per_node(self) -> int | None:
        """The processes per node for which the parameters hold; None if they hold for any number."""
        return None

    def reach(self, collective: str) -> tuple[int, float]:
        """The largest P and m to which the model was fitted; 0 if the parameters do not say."""
        return 0, 0


class RegisteredModel(UnlimitedModel):
    """The base of models with formulas, which have a name in the registry."""

    name: str

    @property
    def kind(self) -> ModelKind:
        """The registry's entry."""
        return ModelKind.parse(self.name)

    def algorithms(self, collective: str) -> tuple[str, ...]:
        """The algorithms that have a formula; empty if the collective has none."""
        return self.kind.algorithms(collective)

    def formula(self, collective: str, algorithm: str) -> Callable[..., Any]:
        """The formula of an algorithm. Raises UsageError if the algorithm has none."""
        check_name(f"{collective} algorithm", algorithm, self.algorithms(collective))
        return self.kind.formulas[collective][algorithm]


def models_of_family(family: str) -> tuple[ModelKind, ...]:
    """The models that one fit of the family serves, heterogeneous models first."""
    found = (kind for kind in MODELS.values() if kind.family == family)
    return tuple(sorted(found, key=lambda kind: not kind.heterogeneous))


def coverage(collectives: Sequence[str] = ()) -> dict[tuple[str, str], dict[str, bool]]:
    """Says for each algorithm of the collectives (default: all) which models cover it: True or False by model."""
    catalogue = Catalogue.load()
    chosen = [catalogue.collective(name) for name in collectives] or list(catalogue.collectives.values())
    return {
        (collective.name, algorithm): {
            name: algorithm in kind.algorithms(collective.name) for name, kind in MODELS.items()
        }
        for collective in chosen
        for algorithm in _own(collective)
    }


def _own(collective: Collective) -> tuple[str, ...]:
    """The algorithms except mock-ups; no model covers mock-ups, since what they do depends on the MPI library."""
    return tuple(name for name in collective.algorithms if name not in collective.mock_ups)


def no_parameters(model: str, collectives: Sequence[str]) -> UsageError:
    """The error for a fitted model that has parameters by collective, but none for these collectives."""
    return UsageError(
        f"model {model} has no parameters for {', '.join(collectives)}; fit them: collwise fit --model "
        f"{model} --collective {','.join(collectives)}"
    )
