"""Models that are fitted and that predict: `fit`, `predict`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from collwise import arguments
from collwise.arguments import Names, Numbers, PlatformLike
from collwise.common.errors import UsageError, check_name, note, warn
from collwise.common.files import writable_folder
from collwise.common.project import results_folder
from collwise.models.registry import (
    CRITICAL_PATH,
    IMPLEMENTATION_AWARE,
    MODELS,
    PROCEDURE_NAMES,
    coverage,
    no_parameters,
)
from collwise.platforms import HostPlatform, known, load
from collwise.platforms.smpi import warn_of_free_messages
from collwise.simulator.bench import Bench, Measured, Simulated
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.method import PRECISION_OF_FITS, Method, Precision
from collwise.simulator.timing import Case
from collwise.targets import TARGET_OPTIONS, TargetOptions, target_from
from collwise.validation.select.consumers import (
    ALL_CONSUMERS,
    can_choose,
    choosable_for,
    needs_one_choice,
    segments_for,
)
from collwise.validation.times.defaults import MIN_DECIDED, SEGMENTS, sizes_of
from collwise.validation.times.grid import Grid, candidates
from collwise.validation.times.memory_limits import asked_points, warn_of_doubtful

if TYPE_CHECKING:
    import pandas as pd

    from collwise.models.interface import CollectiveModel
    from collwise.models.parameters import FittedParameters, ModelParameters, PathParameters
    from collwise.validation.times.files import AllTimes

    Parameters = ModelParameters | PathParameters | FittedParameters

FITTED_BY_ALGORITHM = (IMPLEMENTATION_AWARE, CRITICAL_PATH)
"""The models that are fitted to times of algorithms; all other models are point-to-point models."""


@dataclass(frozen=True, repr=False)
class FittedModel:
    """Estimated parameters and the models that they belong to; made by `fit`.

    `parameters` hold everything that was estimated. `models` are the models by name; the first is the model for which
    the parameters were estimated.
    """

    parameters: Parameters

    @cached_property
    def models(self) -> Mapping[str, CollectiveModel]:
        """The models that have these parameters, by name."""
        from collwise.validation.fitting import models_by_name

        return models_by_name.models_of(self.parameters)

    @property
    def platform(self) -> str:
        """The platform that the parameters were estimated on."""
        return self.parameters.platform

    def table(self) -> pd.DataFrame:
        """The parameters as people read them."""
        import pandas as pd

        from collwise.models.parameters import FittedParameters
        from collwise.studies.present.fitted import ALGORITHM_COLUMNS, algorithm_rows, parameter_rows

        if isinstance(self.parameters, FittedParameters):
            return pd.DataFrame(parameter_rows(self.parameters), columns=["parameter", "value"])
        return pd.DataFrame(algorithm_rows(self.parameters), columns=ALGORITHM_COLUMNS)

    @property
    def usual_file(self) -> Path:
        """The default file of `collwise fit`. Raises UsageError if the file's folder is not writable."""
        made_for = next(iter(self.models))
        kind = f".{made_for}" if made_for in (CRITICAL_PATH, *PROCEDURE_NAMES) else ""
        return writable_folder(results_folder()) / f"{self.platform}{kind}.parameters.toml"

    def save(self, path: str | Path) -> None:
        """Writes the parameter file (TOML), which `predict` reads. Raises UsageError if writing fails."""
        self.parameters.save(Path(path))

    def __repr__(self) -> str:
        return f"<FittedModel {next(iter(self.models))} on {self.platform}, {self.parameters.made_by}>"

    def _repr_html_(self) -> str:
        return f"<p>{next(iter(self.models))} on {self.platform}</p>" + self.table().to_html(index=False)


ModelLike: TypeAlias = "FittedModel | CollectiveModel | str | Path"
"""A result of `fit`, a model, or the path of a parameter file."""


def fit(
    platform: PlatformLike | TargetOptions | ExecutionTarget,
    model: str = IMPLEMENTATION_AWARE,
    *,
    procs: Numbers | None = None,
    segments: Numbers | None = None,
    collective: Names | None = None,
    chains: int | None = None,
    procedure: str | None = None,
    heterogeneous: bool | None = None,
    by_receivers: bool = False,
    precision: Precision | None = None,
    thorough: bool = False,
    ppn: int | None = None,
    context: SimulationContext | None = None,
) -> FittedModel:
    """Estimates the parameters of models from experiments that are simulated or measured.

    Experiments are measured on this machine, on hosts or on a test bed. The implementation-aware model has gamma(p),
    plus alpha and beta for each algorithm (Nuriyev & Lastovetsky 2021, section IV). The model critical_path has one set
    of parameters, which all collectives share, and uses schedules instead of formulas. The other models are
    point-to-point models, fitted to experiments between two or three processes.

    Returns a FittedModel, which `predict` takes. If `platform` is an execution target, experiments are measured on the
    target. Experiments in the store are not repeated.

    >>> import collwise
    >>> model = collwise.fit("exact", "hockney")
    >>> model
    <FittedModel hockney on exact, simulated, SimGrid ...>
    """
    from collwise.models.fitting.procedures import CLOSE, QUICK, request
    from collwise.validation.fitting.models_by_name import algorithms_parameters_on, parameters_on

    check_name("model", model, (*FITTED_BY_ALGORITHM, *PROCEDURE_NAMES))
    by_algorithm, measuring = model in FITTED_BY_ALGORITHM, isinstance(platform, TargetOptions | ExecutionTarget)
    if by_algorithm:
        of = f"--model {', '.join(PROCEDURE_NAMES)}"
        _refuse(
            of, procedure=procedure, heterogeneous=heterogeneous, by_receivers=by_receivers or None,
            thorough=thorough or None,
        )  # fmt: skip
    else:
        of = f"--model {', '.join(FITTED_BY_ALGORITHM)}"
        _refuse(of, segments=segments, collective=collective)
        if not measuring:
            _refuse(f"{of}, and for a target: {TARGET_OPTIONS}", ppn=ppn)
    if model != IMPLEMENTATION_AWARE:
        _refuse(f"--model {IMPLEMENTATION_AWARE}", chains=chains)
    if not measuring:
        _refuse(f"an execution target: {TARGET_OPTIONS}", thorough=thorough or None)
    where: HostPlatform | ExecutionTarget
    if isinstance(platform, TargetOptions):
        where = target_from(replace(platform, ppn=ppn))
    else:
        where = platform if isinstance(platform, ExecutionTarget) else arguments.platform(platform)
    counts = None if procs is None else arguments.counts(procs)
    with arguments.opened(context) as simulations:
        bench: Bench
        if isinstance(where, ExecutionTarget):
            method = Method(timing="maximum", precision=precision or PRECISION_OF_FITS)
            bench = Measured(where, simulations, method, _LIMIT_SECONDS.get(model, 3600.0))
        else:
            bench = Simulated(where, simulations)
        if by_algorithm:
            asked = () if collective in (None, "all") else arguments.collectives(collective)
            cut = None if segments is None else arguments.sizes(segments)
            found = algorithms_parameters_on(bench, model, counts, ppn, collectives=asked, segments=cut, chains=chains)
            return FittedModel(found)
        if counts is not None and len(counts) != 1:
            raise UsageError(f"--procs: --model {model} takes one process count, not {len(counts)}")
        if heterogeneous is None and not bench.is_heterogeneous:
            heterogeneous = False
        wanted = request(model, procedure, heterogeneous, by_receivers)
        detail = CLOSE if thorough or bench.is_exact else QUICK
        count = counts[0] if counts else None
        return FittedModel(parameters_on(bench, wanted, count, detail))


def _refuse(of: str, **given: Any) -> None:
    """Raises UsageError if one of the arguments `given` has a value, since they apply only to `of`."""
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"--{name.replace('_', '-')} is for {of}")


_LIMIT_SECONDS = {IMPLEMENTATION_AWARE: 600.0}


def predict(
    parameters: ModelLike,
    collective: Names,
    procs: Numbers,
    sizes: Numbers | None = None,
    *,
    algorithms: Names | None = None,
    segments: Numbers | None = None,
    consumer: str | None = None,
    margin: float | None = None,
    model: str | None = None,
    by_schedule: bool = False,
) -> AllTimes:
    """Evaluates a model at many P and m at once.

    Returns Times by collective. Times are missing where they are not deterministic or beyond what was fitted. For sizes
    between the points, Times evaluate the model, so that `select` finds the exact sizes at which choices change. Raises
    UsageError where the model has no formula.

    >>> import collwise
    >>> times = collwise.predict(collwise.fit("exact", "hockney"), "bcast", procs="2:8:x2", sizes="1KiB,1MiB")
    >>> times["bcast"].procs
    (2, 4, 8)
    """
    from collwise.validation.fitting.models_by_name import beyond_what_is_known
    from collwise.validation.fitting.scheduled_model import ScheduledModel
    from collwise.validation.times.files import AllTimes
    from collwise.validation.times.sources import predicted

    fitted = model_from(parameters, model)
    if by_schedule:
        fitted = ScheduledModel.of(fitted)
    if consumer is not None:
        check_name("library", consumer, ALL_CONSUMERS)
    counts, asked_sizes = arguments.counts(procs), None if sizes is None else arguments.sizes(sizes)
    usual = (fitted.segment_bytes,) if consumer is None else SEGMENTS
    cut = segments_for(consumer, usual if segments is None else arguments.sizes(segments))

    def grid_of(name: str) -> Grid:
        choices = candidates(name, cut, _with_formula(fitted, name, algorithms))
        grid = Grid(name, choices, counts, sizes_of(name, asked_sizes), fitted.processes_per_node or 1)
        if margin is not None:
            # Algorithms that cannot be chosen must not be the best ones.
            grid = grid.only(lambda choice: can_choose(consumer, name, choice))
        return choosable_for(consumer, grid)

    grids = [*arguments.possible(arguments.collectives(collective), grid_of).values()]
    described = load(fitted.platform) if fitted.platform in known() else None
    if described is not None:
        grids = asked_points(described, grids)
        warn_of_free_messages(described)
        warn_of_doubtful(described, grids)
    found = []
    for grid in grids:
        largest = max(grid.procs), max(grid.message_bytes)
        for line in beyond_what_is_known(fitted, grid.collective, *largest):
            warn(line)
        by_size = margin is not None and not needs_one_choice(grid.collective, consumer)
        times = predicted(fitted, grid, margin / 100 if by_size and margin is not None else None)
        if described is not None:
            times = replace(times, max_procs=described.max_procs(grid.processes_per_node))
        found.append(times if asked_sizes else times.with_facts(trusted_from=MIN_DECIDED[grid.collective]))
    return AllTimes.of(found)


def message(model: FittedModel | str | Path, pair: str, /, sizes: Numbers | None = None) -> pd.DataFrame:
    """Predicts the time of a message between two processes.

    `pair` is I,J for a message from process I to process J. The model must be a point-to-point model.
    """
    import numpy as np
    import pandas as pd

    from collwise.models.parameters import FittedParameters
    from collwise.validation.fitting.models_by_name import beyond_what_is_known, models_of

    ranks = [part.strip() for part in pair.split(",")]
    if len(ranks) != 2 or not all(rank.isdecimal() for rank in ranks) or int(ranks[0]) == int(ranks[1]):
        raise UsageError(f"'{pair}': write two different processes, for example 0,1")
    sender, receiver = map(int, ranks)
    fitted = model.parameters if isinstance(model, FittedModel) else FittedParameters.load(model)
    if not isinstance(fitted, FittedParameters):
        raise UsageError(f"{model} has no times of single messages; expected a model of {', '.join(PROCEDURE_NAMES)}")
    if fitted.parameters.heterogeneous and max(sender, receiver) >= fitted.procs:
        raise UsageError(f"'{pair}': {model} knows processes 0 to {fitted.procs - 1}")
    asked = sizes_of("bcast", arguments.sizes(sizes) if sizes else None)
    known = next(iter(models_of(fitted).values()))
    for line in beyond_what_is_known(known, "bcast", max(sender, receiver) + 1, max(asked)):
        warn(line)
    seconds = fitted.parameters.predict(np.array(asked), sender, receiver)
    frame = pd.DataFrame({"message_bytes": asked, "seconds": seconds})
    frame.attrs["title"] = f"message from {sender} to {receiver} on {fitted.platform}, predicted by {fitted.family}"
    frame.attrs["facts"] = {"model": fitted.family}
    return frame


def model_from(model: ModelLike, name: str | None = None) -> CollectiveModel:
    """The model `name`, or the model for which the parameters were made. Raises UsageError if there is none."""
    from collwise.validation.fitting import models_by_name

    if isinstance(model, FittedModel):
        return models_by_name.named_model(model.models, name, model)
    return models_by_name.load_model(model, name) if isinstance(model, (str, Path)) else model


def predicted_times(model: CollectiveModel, cases: Sequence[Case]) -> dict[Case, float]:
    """The model's times of cases, without cases for which it has no prediction."""
    found = {
        case: float(
            model.predict(
                case.collective, case.algorithm, case.procs, case.message_bytes, case.segment_bytes, case.parameter
            )
        )
        for case in cases
        if case.algorithm in model.algorithms(case.collective)
    }
    return {case: value for case, value in found.items() if not math.isnan(value)}


def _with_formula(model: CollectiveModel, collective: str, given: Names | None) -> list[str]:
    """The requested algorithms that the model covers. Raises UsageError if it covers none of them."""
    asked = arguments.algorithms(collective, given)
    covered = model.algorithms(collective)
    if given is None or arguments.names(given) == ("all",):
        # The model also covers algorithms that are measured but not offered as a choice.
        asked = tuple(dict.fromkeys((*asked, *covered)))
    missing = [name for name in asked if name not in covered]
    if len(missing) == len(asked):
        if not covered and model.name == CRITICAL_PATH:
            raise no_parameters(model.name, [collective])
        valid = f"; valid: {', '.join(covered)}" if covered else ""
        raise UsageError(f"model {model.name} has no formula for {collective} {', '.join(missing)}{valid}")
    if missing:
        note(f"model {model.name} has no formula for {collective} {', '.join(missing)}; left out")
    return [name for name in asked if name in covered]


def models(collectives: Names | None = None) -> pd.DataFrame:
    """Lists models, and procedures that estimate their parameters.

    With --collective it lists, for each algorithm, the models that have a formula. If a model has no formula or
    schedule for an algorithm, predict leaves the algorithm out and says so. A model whose name ends in _as_printed has
    formulas for the same algorithms as the model without this ending.

    Returns a DataFrame with the columns `name`, `what` (what the model is), `procedures` and `paper`. For given
    collectives, the columns are `collective`, `algorithm` and `formulas`: for each model, if it has a formula.
    """
    import pandas as pd

    if collectives is not None:
        rows = [(*key, formulas) for key, formulas in coverage(arguments.collectives(collectives)).items()]
        frame = pd.DataFrame(rows, columns=["collective", "algorithm", "formulas"])
        frame.attrs["title"] = "Models with formulas or schedules"
        return frame
    known = [(name, kind.title, kind.procedures, kind.paper) for name, kind in MODELS.items()]
    frame = pd.DataFrame(known, columns=["name", "what", "procedures", "paper"])
    frame.attrs["title"] = "Models of collectives"
    return frame
