"""Checks of fits against known parameters, and of predictions against measured times: `recovery`, `check_machines`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import collwise.studies
from collwise import arguments
from collwise.arguments import PlatformLike
from collwise.common.errors import UsageError, note
from collwise.common.files import write_text
from collwise.common.project import results_folder
from collwise.simulator.bench import Simulated
from collwise.simulator.sweeps.context import SimulationContext

if TYPE_CHECKING:
    import pandas as pd

    from collwise.validation.measurement.confidence import Discrepancy, Sureness
    from collwise.validation.measurement.judging import Cell
    from collwise.validation.measurement.training import FromMessages, Trained

MACHINES = Path(collwise.studies.__file__).parent / "machines"
"""The folder of the project's tables of measured runs, and of maps of machines' nodes."""


def recovery(platform: PlatformLike | None = None, *, context: SimulationContext | None = None) -> pd.DataFrame:
    """Checks that every fitting procedure recovers known parameters.

    It shows the errors of a platform's parameters. A procedure is left out if the platform violates the assumptions of
    the procedure's paper. The exit code is 1 if a parameter is off by more than 2 % (LMO: 5 %).

    Returns a DataFrame with a row for each parameter: its `true` and `estimated` values, `worst_error`, `ok`.
    """
    import pandas as pd

    from collwise.platforms.linear_costs import point_to_point
    from collwise.validation.fitting.models_by_name import parameters_on
    from collwise.validation.fitting.recovery import LMO_TOLERANCE, PLATFORMS, TOLERANCE, objection, recover, requests

    rows, left_out = [], []
    with arguments.opened(context) as simulations:
        for host_platform in map(arguments.platform, PLATFORMS if platform is None else [platform]):
            wanted, truth = requests(host_platform.heterogeneous), point_to_point(host_platform)
            for asked in wanted:
                if why := objection(asked, truth):
                    left_out.append(f"{host_platform.name}: {asked.family} by {asked.procedure} {why}; left out")
            rows += recover(host_platform, wanted, partial(parameters_on, Simulated(host_platform, simulations)))
    frame = pd.DataFrame([asdict(row) | {"ok": row.ok} for row in rows])
    frame.attrs |= {"title": "Estimated and true parameters, in seconds (per byte)", "lines": left_out}
    if wrong := [row for row in rows if not row.ok]:
        first = wrong[0]
        frame.attrs["problem"] = (
            f"{len(wrong)} of {len(rows)} parameters are off by more than {TOLERANCE * 100:.0f} % "
            f"(LMO: {LMO_TOLERANCE * 100:.0f} %); first: {first.platform}, {first.family} by {first.procedure}, "
            f"{first.parameter}"
        )
    return frame


@dataclass(frozen=True)
class JudgedMachines:
    """Cells of measured runs, the choices that predictions make in them, the file of the predictions, and notes.

    `placed` has the jobs that were predicted on the nodes where they ran, by the names of their node maps. `sure` says
    how sure the choices by predictions are. It uses the discrepancy of the other machines or, if there is only one
    machine, the project's own discrepancy. `discrepancy` was learned on all machines; it is None if there are no cells.
    If `trained` is true, figures were fitted to some of the times. Then `sure` and `discrepancy` are missing, and
    `messages` holds predictions of runs that are based only on these runs' messages between two nodes.
    """

    cells: Sequence[Cell]
    file: Path
    sha256: str
    platforms: Mapping[str, str]
    placed: Mapping[str, Sequence[str]]
    notes: Sequence[str]
    sure: Sequence[Sureness] = ()
    discrepancy: Discrepancy | None = None
    trained: bool = False
    messages: Sequence[FromMessages] = ()

    def frame(self) -> pd.DataFrame:
        """A row for each cell and decider: the choice and its seconds, the oracle and its seconds, and the regret."""
        import pandas as pd

        rows = [
            {
                **asdict(cell.place),
                "message_bytes": cell.message_bytes,
                "decider": decider,
                "chosen": chosen,
                "seconds": cell.seconds[chosen],
                "oracle": cell.oracle,
                "oracle_seconds": cell.oracle_seconds,
                "regret": cell.lost[chosen],
                "iterations": cell.iterations,
            }
            for cell in self.cells
            for decider, chosen in cell.choices.items()
        ]
        return pd.DataFrame(rows)


def _by_kind(cell: Cell, training: Trained) -> Cell:
    return replace(cell, place=replace(cell.place, machine=f"{cell.place.machine}, {training.kind(cell)}"))


def check_machines(
    *folders: Path,
    predictions: Path | None = None,
    models: bool = True,
    train: bool = False,
    context: SimulationContext | None = None,
) -> JudgedMachines:
    """Judges predictions by times measured on supercomputers.

    It shows the errors of predicted times, and the losses of choices. The folders contain runs of PICO, as in its
    repository, or tables that 'collwise times import' reads; store:platform=NAME names the times that were imported.
    Without folders, the project's times of supercomputers and a cloud are used. Each machine is described by the
    platform that has the same name as the machine's folder. A job is predicted on the nodes where it ran, if there is a
    map of these nodes. Times are predicted by an engine, and by every analytical model once the model has been fitted
    to the description. Predictions are written, with their hash, before any measured time is read. docs/machines.md
    says what is counted and how.

    With `train` it first fits the parameters of each description to some of the machine's times: every second size of
    three collectives at one P. Other times are shown in three groups: those of a new size, of a new collective, and of
    a new P or job. If messages between two nodes were measured, it also predicts from these alone. Parameters that
    these messages do not determine keep their prior ranges; median errors are then shown for both ends of each range.

    Returns JudgedMachines, whose `frame()` has a row for each cell and way of choosing.

    >>> import collwise
    >>> from collwise.checks import MACHINES
    >>> judged = collwise.check_machines(MACHINES / "lumi-2025_03_27___19_15_25.csv.gz", models=False)
    >>> sorted(set(judged.frame().collective))
    ['allgather']
    """
    from collwise.store_contents import measured_runs
    from collwise.studies.reports.sureness import DISCREPANCY
    from collwise.validation.measurement import confidence
    from collwise.validation.measurement.deciding import choosers_among, ruled, with_choices
    from collwise.validation.measurement.judging import cells_of, predictions_text, with_decided
    from collwise.validation.measurement.predicting import predicted
    from collwise.validation.measurement.training import from_messages, trained

    paths = folders or (MACHINES,)
    measured = measured_runs(paths) if train else None
    training = trained(measured) if measured else {}
    factors = {machine: item.factors for machine, item in training.items()}
    with arguments.opened(context, engine="schedule") as simulations:
        runs = [with_decided(run) for run in measured_runs(paths, values=False, maps=[MACHINES])]
        found = predicted(runs, simulations, models, factors)
    if not found.platforms and not any(run.messages for run in measured or ()):
        raise UsageError(f"nothing can be predicted: {'; '.join(found.notes)}")
    text = predictions_text(found.predictions)
    file = predictions or results_folder() / "machines-predictions.csv"
    write_text(file, text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    when = "some measured times were read before" if train else "measured times are read now"
    note(f"{file}: predictions, SHA-256 {digest}; {when}")
    judged_runs = map(with_decided, measured or measured_runs(paths))
    cells = [cell for run in judged_runs for cell in cells_of(run, found.predictions)]
    cells = with_choices(cells, choosers_among(cells))
    if train:
        cells = [_by_kind(cell, training[cell.place.machine]) for cell in cells if cell.place.machine in training]
        judged = JudgedMachines(cells, file, digest, found.platforms, found.placed, found.notes, trained=True)
        return replace(judged, messages=tuple(from_messages(measured or ())))
    notes = list(found.notes)
    if len({cell.place.machine for cell in cells}) == 1:
        learned_from = ", ".join(DISCREPANCY.machines)
        notes.append(f"confidence and robust choices are based on the errors of predictions for {learned_from}")
    note(f"judging choices at {len(cells)} points")
    cells, sure = confidence.judged(cells, DISCREPANCY)
    cells = ruled(cells, confidence.ROBUST)
    discrepancy = confidence.learned(cells) if cells else None
    return JudgedMachines(cells, file, digest, found.platforms, found.placed, notes, sure, discrepancy)
