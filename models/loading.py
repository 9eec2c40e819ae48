"""Models with formulas from parameters, fitted or read from a parameter file."""

from __future__ import annotations

from pathlib import Path

from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.implementation_aware.parameters import ModelParameters
from collwise.models.interface import CollectiveModel
from collwise.models.parameter_file import FORMAT, FittedParameters
from collwise.models.parameter_reading import read_document
from collwise.models.point_to_point import PointToPointModel
from collwise.models.registry import IMPLEMENTATION_AWARE, models_of_family


def load_models(path: str | Path) -> dict[str, CollectiveModel]:
    """Every model with formulas that a parameter file holds, by name; the one it was made for is first.

    Raises UsageError, naming the file and what is wrong.
    """
    document = read_document(path)
    if document.get("format") == FORMAT:
        return models_of(FittedParameters.from_document(document, path))
    return implementation_aware_models(ModelParameters.from_document(document, path))


def implementation_aware_models(parameters: ModelParameters) -> dict[str, CollectiveModel]:
    """The models that one fit of implementation-aware parameters serves, by name."""
    return {str(kind): ImplementationAware(parameters, str(kind)) for kind in models_of_family(IMPLEMENTATION_AWARE)}


def models_of(fitted: FittedParameters) -> dict[str, CollectiveModel]:
    """The models that fitted parameters serve, by name; heterogeneous ones also serve the models of their means.

    Heterogeneous LogP, LogGP and PLogP have no formulas of collectives, so that only their means are models.
    """
    parameters, means = fitted.parameters, fitted.parameters.homogeneous()
    return {
        str(kind): PointToPointModel(
            str(kind),
            fitted.platform,
            parameters if kind.heterogeneous else means,
            fitted.reduce_seconds_per_byte,
        )
        for kind in models_of_family(fitted.family)
        if parameters.heterogeneous or not kind.heterogeneous
    }
