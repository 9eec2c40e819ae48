"""Models from a parameter file of either kind, behind the interface that all of them share."""

from __future__ import annotations

from pathlib import Path

from collwise.common.errors import unknown_name
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.implementation_aware.parameters import MODELS, ModelParameters
from collwise.models.interface import CollectiveModel
from collwise.models.parameter_file import FORMAT, FittedParameters
from collwise.models.parameter_reading import read_document
from collwise.models.point_to_point import AS_PRINTED, FORMULAS, PRINTED, PointToPointModel


def load_models(path: str | Path) -> dict[str, CollectiveModel]:
    """Every model that a parameter file holds, by name; the one it was made for comes first.

    Raises UsageError, naming the file and what is wrong.
    """
    document = read_document(path)
    if document.get("format") == FORMAT:
        return models_of(FittedParameters.from_document(document, path))
    parameters = ModelParameters.load(path)
    return {name: ImplementationAware(parameters, name) for name in MODELS}


def load_model(path: str | Path, name: str | None = None) -> CollectiveModel:
    """The model of that name, or the one that the file was made for. Raises UsageError where it is not in the file."""
    models = load_models(path)
    if name is None:
        return next(iter(models.values()))
    if name not in models:
        raise unknown_name("model", name, models, f"those in {path}")
    return models[name]


def models_of(fitted: FittedParameters) -> dict[str, CollectiveModel]:
    """The model of fitted parameters; of heterogeneous ones the model of their means, too.

    Heterogeneous LogP, LogGP and PLogP have no formulas of collectives: only their means are models.
    """
    gamma, family = fitted.reduce_seconds_per_byte, fitted.family
    found: dict[str, CollectiveModel] = {}
    name = f"{family}_heterogeneous"
    if fitted.parameters.heterogeneous and name in FORMULAS:
        found[name] = PointToPointModel(name, fitted.platform, fitted.parameters, gamma)
    means = fitted.parameters.homogeneous()
    for one in (family, family + AS_PRINTED) if family in PRINTED else (family,):
        found[one] = PointToPointModel(one, fitted.platform, means, gamma)
    return found
