"""Models that are fitted and that predict: `fit`, `predict`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from collwise import arguments
from collwise.algorithms.catalogue import Catalogue
from collwise.arguments import Names, Numbers, PlatformLike
from collwise.common.errors import UsageError, unknown_name, warn
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.implementation_aware.parameters import ModelParameters
from collwise.models.interface import CollectiveModel
from collwise.models.loading import implementation_aware_models, load_models, models_of
from collwise.models.parameter_file import FAMILIES, FittedParameters
from collwise.models.registry import BY_PARTS, IMPLEMENTATION_AWARE, MODELS
from collwise.platforms import HostPlatform
from collwise.validation.selection.defaults import SEGMENTS_TEXT, sizes_of

if TYPE_CHECKING:
    from collwise.simulator.sweeps.context import SimulationContext

Parameters = ModelParameters | FittedParameters


@dataclass(frozen=True, repr=False)
class FittedModel:
    """Estimated parameters and the models that they belong to; made by `fit`.

    `parameters` hold everything that was estimated, `models` the models by name, the one they were made for first.
    """

    parameters: Parameters

    @cached_property
    def models(self) -> Mapping[str, CollectiveModel]:
        """The models that have these parameters, by name."""
        if isinstance(self.parameters, FittedParameters):
            return models_of(self.parameters)
        return implementation_aware_models(self.parameters)

    @property
    def platform(self) -> str:
        """The platform that the parameters were estimated on."""
        return self.parameters.platform

    def table(self) -> pd.DataFrame:
        """The parameters as people read them."""
        from collwise.studies.reports.parameters import ALGORITHM_COLUMNS, algorithm_rows, parameter_rows

        if isinstance(self.parameters, FittedParameters):
            return pd.DataFrame(parameter_rows(self.parameters), columns=["parameter", "value"])
        return pd.DataFrame(algorithm_rows(self.parameters), columns=ALGORITHM_COLUMNS)

    def save(self, path: str | Path) -> None:
        """Writes the parameter file (TOML) that `predict` and `select` read. Raises UsageError where it cannot."""
        self.parameters.save(Path(path))

    def __repr__(self) -> str:
        return f"<FittedModel {next(iter(self.models))} on {self.platform}, {self.parameters.made_by}>"

    def _repr_html_(self) -> str:
        return f"<p>{next(iter(self.models))} on {self.platform}</p>" + self.table().to_html(index=False)


ModelLike = FittedModel | CollectiveModel | str | Path
"""What `fit` returned, a model, or the path of a parameter file."""


def fit(
    platform: PlatformLike,
    model: str = "implementation-aware",
    *,
    procs: Numbers | None = None,
    segments: Numbers = SEGMENTS_TEXT,
    collectives: Names = "all",
    procedure: str | None = None,
    heterogeneous: bool | None = None,
    ppn: int | None = None,
    context: SimulationContext | None = None,
) -> FittedModel:
    """Estimates a model's parameters from simulated experiments on a platform.

    Parameters: `platform`, see `platform`; `model`, 'implementation-aware' (Nuriyev & Lastovetsky 2021) or one of the
    point-to-point models 'hockney', 'hockney_by_size', 'logp', 'loggp', 'plogp', 'lmo'; `procs`, the process counts of
    the experiments, one number for point-to-point models; `context`, see `session`. Implementation-aware models take
    `segments`, segment sizes in bytes, `collectives`, those that are fitted, by default all that have formulas, and
    `ppn`, processes per node; point-to-point models take `procedure` and `heterogeneous` (parameters of each pair of
    processes, by default where nodes differ).

    Returns a FittedModel, for `predict`, `select` and its own `save`. Experiments that the store has are not simulated
    again. Raises UsageError for wrong arguments, CollwiseError when an experiment fails.

    >>> import collwise
    >>> model = collwise.fit("exact", "hockney")
    >>> model
    <FittedModel hockney on exact, simulated, SimGrid ...>
    """
    if model not in (IMPLEMENTATION_AWARE, *FAMILIES):
        raise unknown_name("model", model, (IMPLEMENTATION_AWARE, *FAMILIES))
    where = arguments.platform(platform)
    counts = None if procs is None else arguments.counts(procs)
    if model == IMPLEMENTATION_AWARE:
        with arguments.opened(context) as simulations:
            return FittedModel(_fit_algorithms(where, counts, segments, collectives, ppn, simulations))
    from collwise.models.fitting.procedures import request
    from collwise.validation.fitting.models_by_name import simulated_parameters

    if counts is not None and len(counts) != 1:
        raise UsageError(f"procs: one number for model {model}, not {len(counts)}")
    by_default = None if where.heterogeneous else False
    wanted = request(model, procedure, by_default if heterogeneous is None else heterogeneous)
    with arguments.opened(context) as simulations:
        return FittedModel(simulated_parameters(where, wanted, simulations, counts[0] if counts else None))


def _fit_algorithms(
    platform: HostPlatform,
    procs: tuple[int, ...] | None,
    segments: Numbers,
    collectives: Names,
    ppn: int | None,
    context: SimulationContext,
) -> ModelParameters:
    from collwise.validation.fitting.implementation_aware import FitPlan, default_procs
    from collwise.validation.fitting.implementation_aware import fit as run_fit
    from collwise.validation.fitting.models_by_name import fitted_segments

    per_node = ppn or platform.default_processes_per_node
    common, *more = fitted_segments(arguments.sizes(segments))
    fitted = tuple(MODELS[BY_PARTS].formulas) if collectives == "all" else arguments.collectives(collectives)
    plan = FitPlan(
        procs or default_procs(platform, per_node), per_node, common, more_segments=tuple(more), collectives=fitted
    )
    return run_fit(platform, plan, context)


def predict(
    model: ModelLike,
    collective: str,
    procs: Numbers,
    sizes: Numbers | None = None,
    *,
    algorithms: Names | None = None,
    segments: Numbers | None = None,
    name: str | None = None,
) -> pd.DataFrame:
    """Predicted times of a collective's algorithms at every process count and message size.

    Parameters: `model`, what `fit` returned, or the path of a parameter file; `collective`, a name; `procs`, process
    counts; `sizes`, message sizes in bytes; `algorithms`, by default all that the model covers; `segments`, segment
    sizes in bytes, 0 for unsegmented, by default that of the fit; `name`, which of the file's models predicts.

    Returns a DataFrame with one row per algorithm, segment size, P and m: `collective`, `algorithm`, `segment_bytes`,
    `procs`, `message_bytes`, `seconds`; nan where the time is not deterministic or beyond what was fitted. Its `attrs`
    name the `platform` and the `model`. Raises UsageError where the model has no formula.

    >>> import collwise
    >>> times = collwise.predict(collwise.fit("exact", "hockney"), "bcast", procs="2:8:x2", sizes="1KiB,1MiB")
    >>> sorted(times.columns)
    ['algorithm', 'collective', 'message_bytes', 'procs', 'seconds', 'segment_bytes']
    """
    fitted = model_from(model, name)
    covered = _with_formula(fitted, collective, algorithms)
    counts, message_bytes = arguments.counts(procs), sizes_of(collective, arguments.sizes(sizes) if sizes else None)
    _warn_beyond(fitted, collective, max(counts), max(message_bytes))
    p, m = np.array(counts)[:, None], np.array(message_bytes)[None, :]
    methods = [
        (algorithm, segment)
        for algorithm in covered
        for segment in _segments_of(fitted, collective, algorithm, segments)
    ]
    seconds = [fitted.predict(collective, algorithm, p, m, segment) for algorithm, segment in methods]
    points = len(counts) * len(message_bytes)
    frame = pd.DataFrame(
        {
            "collective": collective,
            "algorithm": np.repeat([algorithm for algorithm, _ in methods], points),
            "segment_bytes": np.repeat([segment for _, segment in methods], points),
            "procs": np.tile(np.repeat(counts, len(message_bytes)), len(methods)),
            "message_bytes": np.tile(message_bytes, len(methods) * len(counts)),
            "seconds": np.concatenate([values.ravel() for values in seconds]),
        }
    )
    frame.attrs = {"platform": fitted.platform, "model": fitted.name}
    return frame


def model_from(model: ModelLike, name: str | None = None) -> CollectiveModel:
    """The model of that name, or the one that the parameters were made for. Raises UsageError where it is missing."""
    if isinstance(model, FittedModel):
        found = model.models
    elif isinstance(model, (str, Path)):
        found = load_models(model)
    else:
        return model
    if name is not None and name not in found:
        raise unknown_name("model", name, found, f"those in {model}")
    return found[name] if name is not None else next(iter(found.values()))


def _with_formula(model: CollectiveModel, collective: str, given: Names | None) -> list[str]:
    """Those asked for that the model covers; a line for each of the others. Raises UsageError where it covers none."""
    asked = arguments.algorithms(collective, given)
    covered = model.algorithms(collective)
    if given is None or arguments.names(given) == ("all",):
        # Also those that are measured but not offered as a choice.
        asked = tuple(dict.fromkeys((*asked, *covered)))
    missing = [name for name in asked if name not in covered]
    if len(missing) == len(asked):
        known = f"; valid: {', '.join(covered)}" if covered else ""
        raise UsageError(f"model {model.name} has no formula for {collective} {', '.join(missing)}{known}")
    for name in missing:
        arguments.note(f"model {model.name} has no formula for {collective} {name}; left out")
    return [name for name in asked if name in covered]


def _segments_of(model: CollectiveModel, collective: str, algorithm: str, given: Numbers | None) -> tuple[int, ...]:
    """The segment sizes asked for, or that of the fit, where the algorithm cuts messages."""
    if not Catalogue.load().algorithm(collective, algorithm).pipelined:
        return (0,)
    if given is not None:
        return arguments.sizes(given)
    return (model.parameters.segment_bytes if isinstance(model, ImplementationAware) else 0,)


def _warn_beyond(model: CollectiveModel, collective: str, procs: int, message_bytes: int) -> None:
    from collwise.validation.fitting.models_by_name import beyond_what_is_known

    for line in beyond_what_is_known(model, collective, procs, message_bytes):
        warn(line)
