"""Presentations, figures and reports of results that need MPI, a test bed or hours: here they are made up."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

import collwise
from collwise.calibrations import FittedFigures
from collwise.models.parameters import Thresholds
from collwise.models.piecewise import PiecewiseLinear
from collwise.models.single_messages import HockneyBySize, PLogP
from collwise.models.switch_points import NOBODY
from collwise.platforms import load
from collwise.programs import ApplicationTimes
from collwise.simulator.schedule.library import SPANS, Trace
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SimulationContext
from collwise.simulator.timing import Case, Timing
from collwise.studies.figures import maps, measurements, three_way
from collwise.studies.figures.explorer import Explorer
from collwise.studies.figures.schedule import schedule_figure
from collwise.studies.figures.style import label_lines
from collwise.studies.papers.luo2020 import whole
from collwise.studies.papers.oflynn2009 import figures as thesis
from collwise.studies.papers.pjesivac2007 import figures as pjesivac
from collwise.studies.papers.pjesivac2007.analysis import Figure1
from collwise.studies.present import programs, testbed
from collwise.studies.present.fitted import figures as fitted_figures
from collwise.studies.present.shown import Shown
from collwise.studies.reports.shared_nodes import shared_node_document, shared_node_sections
from collwise.studies.reports.validation_report import document, write_validation
from collwise.validation.calibration.calibration import CalibrationResult
from collwise.validation.calibration.calibration_points import CalibrationPoint, Kind
from collwise.validation.calibration.from_times import PredictedCells
from collwise.validation.calibration.segmented_regression import Segment
from collwise.validation.compare.scores import AllScores, Scores, compare
from collwise.validation.correctness.verification import VerificationResult
from collwise.validation.measurement.applications import ApplicationRow
from collwise.validation.measurement.gain import GainRow, MeasuredGain
from collwise.validation.measurement.irregular_regions import ALGORITHMS, Regions, Series
from collwise.validation.testbed.check import BedCheck, Exchange
from collwise.validation.testbed.shape import Shape, simulated_platform
from collwise.validation.testbed.target import TcpCounts
from collwise.validation.three_way.disagreements import Diagnosis, Pair, disagreements
from collwise.validation.three_way.pipeline import Stage, Validation
from collwise.validation.three_way.plan import usual_plan
from collwise.validation.three_way.verdicts import SCHEDULED, SIMULATED, Repeatability
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.files import AllTimes
from collwise.validation.times.grid import Grid
from collwise.validation.times.times import State, Times
from tests.golden.presented import drawn, figures_of, parts_of, plain
from tests.golden.shapes import brief
from tests.validation.three_way.made_up import made_up

KIB, PLACES = 1024, ("testbed-8x100M", "testbed-4x100M")


def presentations(folder: Path) -> dict[str, Any]:
    """All of them."""
    shown: dict[str, Shown] = {
        "regions": testbed.regions([_regions()]),
        "gain": programs.gain(_gain()),
        "applications": programs.application(_applications()),
        "fitted figures": fitted_figures(_fitted()),
    }
    found: dict[str, Any] = {name: parts_of(one, folder) for name, one in shown.items()}
    found |= {f"{name}, as drawn": figures_of(one) for name, one in shown.items()}
    found |= {f"calibration, {kind}": drawn(measurements.calibration_figure(_calibrated(), kind)) for kind in Kinds}
    report, shared = validation(), _shared_nodes()
    _, text = write_validation(report, folder)
    found["report"] = [plain(line, folder) for line in text.read_text().splitlines() if line]
    found["document of the report"] = brief(document(report))
    found["shared nodes"] = [
        [*one.paragraphs, *(table.markdown().split("\n") for table in one.tables)]
        for one in shared_node_sections(shared)
    ]
    found["document of shared nodes"] = brief(shared_node_document(shared))
    return found | _figures(report) | _maps() | _lines() | _of_papers() | {"explorer": _explorer()}


Kinds = (Kind.SEND, Kind.PING_PONG, Kind.RECEIVE)


def _regions() -> Regions:
    """Gathers escalate from 8 KiB to 12 KiB in one of two repetitions."""
    sizes, late = (4 * KIB, 8 * KIB, 12 * KIB, 16 * KIB), np.array([[0, 0, 0, 0], [0, 0.2, 0.3, 0]])
    times = np.array([[1e-3, 2e-3, 3e-3, 4e-3], [1.1e-3, 2.1e-3, 3.1e-3, 4.1e-3]])
    series = {name: Series("gather", name, sizes, times * (1 + n), {}) for n, name in enumerate(ALGORITHMS)}
    series["linear"] = Series("gather", "linear", sizes, times + late, {"all": TcpCounts(1, 2, 3, 4)})
    scatter = Series("scatter", "linear", sizes, times[::-1], {})
    thresholds = Thresholds(12 * KIB, 8 * KIB, 16 * KIB)
    return Regions("bed", "reno", 8, series["linear"], scatter, thresholds, (*series.values(),))


def _gain() -> MeasuredGain:
    def time(seconds: float) -> Timing:
        return Timing(Case("bcast", "chain", 8, 1), seconds, half_width_seconds=0.1)

    rows = (
        GainRow("bcast", 8, 1, Choice("chain", 8192), time(2.0), time(1.0), time(1.0)),
        GainRow("bcast", 8, 2, Choice("chain"), time(2.0), time(1.95), time(1.0), "a note", Choice("binary")),
        GainRow("reduce", 8, 4, Choice("chain"), time(2.0), None, time(3.0)),
        GainRow("bcast", 16, 1, Choice("chain"), time(2.0), None, time(1.0)),
    )
    return MeasuredGain(rows, (), "bed", "Open MPI 4.1.4")


def _applications() -> ApplicationTimes:
    rows = [
        ApplicationRow("asp", name, procs, 2, seconds, 0.3 * seconds, 0.4 * seconds, 4.0 / seconds, algorithms)
        for procs in (4, 8)
        for name, seconds, algorithms in (("ompi", 4.0, ""), ("mpich", 5.0, ""), ("t.table", 3.2, "chain"))
    ]
    nan = float("nan")
    rows.append(ApplicationRow("asp", "impi", 8, 2, nan, nan, nan, nan, "", "it broke"))
    return ApplicationTimes(tuple(rows), load("gros"), ("asp", "--rows", "8"))


def _fitted() -> FittedFigures:
    figure = {"before": 1e-6, "fitted": 2e-6, "factor": 2.0, "low": 1.5, "high": 2.5, "told": True}
    others = figure | {"before": 1e-9, "fitted": 1.1e-9, "factor": 1.1, "told": False}
    crossed = {"bcast": PredictedCells([0.1, 0.3], [0.0, 0.2]), "messages": PredictedCells([0.1], [])}
    telling = [Case("reduce", "chain", 8, 8192)]
    return FittedFigures(load("gros"), {"latency": figure, "rate": others}, crossed, telling, 7, 9, ["a note"])


def _calibrated() -> CalibrationResult:
    """Points at five sizes of which one is beyond the eager limit; simulation is off by 1 %, and once by 40 %."""
    sizes, limit = (8, 64, 1024, 32768, 131072), {"within_node": False}
    points = [CalibrationPoint(Kind.CLOCK, 0, 1, 1, False, 0, 1, (1e-8, 1e-8))]
    rows = []
    for number, kind in enumerate((Kind.SEND, Kind.RECEIVE, Kind.PING_PONG), 1):
        for size in sizes:
            seconds = number * 1e-6 + size * 1e-9
            points.append(CalibrationPoint(kind, 0, 1, 1, False, size, 1, (seconds, 1.2 * seconds, 0.9 * seconds)))
            error = 0.4 if size == 64 else 0.01
            times = {"measured_seconds": seconds, "simulated_seconds": (1 + error) * seconds, "relative_error": error}
            rows.append({"kind": kind, "message_bytes": size} | limit | times)
    segments = {kind: [Segment(0, 1e-6, 1e-9, 3), Segment(1024, 2e-6, 1e-9, 2)] for kind in Kinds}
    return CalibrationResult(load("gros"), tuple(points), segments, pd.DataFrame(rows))


def validation() -> Validation:
    """One collective on two test beds: simulation is 10 % off for the chain, and 50 % for linear."""
    others = {SIMULATED: {"chain": [1.1e-3] * 2, "linear": [1.0e-3] * 2}, "hockney": {"chain": [3e-3] * 2}}
    measured = {"chain": [1e-3] * 2, "linear": [2e-3] * 2}
    how: dict[str, Any] = {"sizes": (1024, 8192), "half_width": 1e-5, "own": [0.9e-3] * 2}
    scores = {place: AllScores([made_up(measured, others, place=place, **how)]) for place in PLACES}
    found = disagreements(scores[PLACES[0]].values())
    diagnosis = Diagnosis(found[0], "two cores", Pair(1e-3, 2e-3), {"two cores": Pair(1e-3, 1.1e-3)}, TcpCounts(7))
    return Validation(
        plan=usual_plan(collectives=("bcast",), sizes=(1024, 8192)),
        scores=scores,
        platforms={place: simulated_platform(Shape(8)) for place in PLACES},
        repeated=Repeatability(10, 8, 9, 7, 0.01, 0.2, 0.02),
        checked=BedCheck(1.2e7, 1.2e7, 9e7, 9.6e7, 0.4, 3e-5, (Exchange(1000, 0.04, 0.06),)),
        disagreements=found,
        diagnoses=[diagnosis],
        failed=[Timing(Case("bcast", "binary", 8, 8), float("nan"), error="died")],
        notes=["lmo: not fitted"],
        stages=[Stage("measured", 12.0)],
    )


def _shared_nodes() -> Validation:
    """SMPI chooses rightly; the engine takes the flat chain for the fastest, which takes twice as long."""
    tasks_chain, in_memory = Choice("tasks_chain"), Choice("tasks_chain", parameter=1)
    measured = {"chain": [2e-3] * 2, tasks_chain: [1e-3] * 2, in_memory: [1.5e-3] * 2}
    others = {
        SIMULATED: {"chain": [2.2e-3] * 2, tasks_chain: [1.1e-3] * 2},
        SCHEDULED: {"chain": [1e-3] * 2, tasks_chain: [1.2e-3] * 2},
    }
    how: dict[str, Any] = {"sizes": (1024, 8192), "procs": 16, "per_node": 4}
    components = {
        name: AllTimes.of([made_up({LIBRARY_DECIDES: [seconds] * 2}, {}, **how).right])
        for name, seconds in (("tuned", 3e-3), ("han", 0.5e-3))
    }
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "store.sqlite") as store:
        context = SimulationContext(store, SCHEDULE)
        tasks = collwise.time_tasks("bcast", platform="stampede2", nodes=4, ppn=2, context=context)
    return Validation(
        plan=usual_plan(nodes=4, ranks_per_node=4, collectives=("bcast",), sizes=(1024, 8192)),
        scores={"bed": AllScores([made_up(measured, others, half_width=1e-5, **how)])},
        components=components,
        verified=[
            VerificationResult("openmpi", "4.1.4", "bcast", name, 40, 0, failures, first, (16,))
            for name, failures, first in (("tasks_chain", 0, None), ("hierarchical", 2, "P = 16: wrong"))
        ],
        tasks=tasks,
    )


def _figures(report: Validation) -> dict[str, Any]:
    every = report.scores[PLACES[0]]
    picks = pd.DataFrame(
        [("model", "bcast", 8, 0.5), ("model", "reduce", 64, 0.0), ("other", "bcast", 8, 0.125)],
        columns=["source", "collective", "message_bytes", "slowdown"],
    )
    ranks = pd.DataFrame(
        [("bcast", "hockney_by_size", 0.5), ("all", "hockney_by_size", 0.25), ("all", "lmo", -0.5)],
        columns=["collective", "source", "tau_distinguishable"],
    )
    return {
        "scatter": drawn(three_way.scatter(every, "title")),
        "times": drawn(three_way.times(every["bcast"], "title")),
        "slowdown maps": drawn(three_way.slowdown_maps(picks, "title")),
        "rank map": drawn(three_way.rank_map(ranks, "title")),
    }


def _scores(collective: str, sizes: tuple[int, ...], segments: tuple[int, ...], *algorithms: str) -> Scores:
    grid = Grid.of(collective, (4, 8), sizes, 1, segments, algorithms)
    seconds = np.arange(1.0, 1 + len(grid.choices) * 2 * len(sizes)).reshape(-1, 2, len(sizes)) * 1e-5
    times = [
        Times.of_seconds(grid, seconds**power, "boba", "predicted", maker, State.NO_FORMULA)
        for maker, power in (("simulated", 1.0), ("hockney", 1.1), ("plogp", 0.9))
    ]
    return compare(*times)


def _maps() -> dict[str, Any]:
    """Small maps with each kind of cell, and maps of too many cells for digits."""
    procs, sizes, many = (4, 8), (1024, 8192, 65536), [8 << k for k in range(25)]
    methods = [Choice("chain"), Choice("linear"), Choice("chain", 8192), Choice("scatter_ring_allgather")]
    regions = np.zeros((8, 12), dtype=np.int64)
    regions[:, 4:9], regions[:, 9:], regions[0, 11] = 2, 3, 1
    panels = {"times": np.array([[0, 2, NOBODY], [0, 0, 0]]), "model": np.array([[0, NOBODY, 0], [2, 0, 0]])}
    values = np.array([[0.0, np.nan, np.nan], [0.04, 3.5, -0.001]])
    slowdowns = maps.Slowdowns(values, np.array([[True, False, True], [True, True, True]]))
    large = maps.Slowdowns(np.zeros((30, 3)), np.ones((30, 3), dtype=bool))
    thin = np.tile(np.arange(25), (2, 1))
    known = {"engine": {("bcast", 1): 0.0, ("gather", 8): 0.5}, "model": {("bcast", 1): 0.125}}
    nothing = Trace(np.zeros(0, SPANS), np.zeros(0, np.int64), np.zeros(0, np.uint64), 0.0)
    return {
        "regions named": drawn(maps.method_map({"times": regions}, methods, range(2, 10), many[:12])),
        "thin pieces": drawn(maps.method_map({"times": thin}, [Choice("chain", one) for one in many], procs, many)),
        "choices and blanks": drawn(maps.method_map(panels, methods, procs, sizes, timed="times")),
        "slowdowns": drawn(maps.slowdown_map({"model": slowdowns}, procs, sizes)),
        "slowdowns, many": drawn(maps.slowdown_map({"model": large}, range(3, 33), sizes)),
        "what is close": drawn(maps.closeness_map({"next": values}, procs, sizes)),
        "what is close, many": drawn(maps.closeness_map({"next": np.full((2, 25), 0.1)}, procs, many)),
        "of collectives": drawn(maps.collective_maps(known, "title", "error (%)")),
        "an empty schedule": drawn(schedule_figure(nothing, 64, "title")),
    }


def _lines() -> dict[str, Any]:
    """Lines that hide each other or leave their axes, panels of the same lines, and too many lines for names."""
    figure, axes = plt.subplots(2, 2)
    for name, values in {"below": [1, 5, 1], "upon it": [1, 5, 1], "upon both": [1, 5, 1], "steep": [0, 2, 9]}.items():
        axes[0, 0].plot([1, 2, 3], values, "-o", label=name)
        axes[0, 1].plot([1, 2, 3], values, "-o", label=name)
    axes[1, 0].plot([1, 2, 3], [0, 2, 9], label="steep")
    axes[1, 1].set(ylim=(0, 3))
    axes[1, 1].plot([1, 2, 3], [0, 2, 9], label="steep")
    label_lines(*axes.flat)
    crowded, axis = plt.subplots()
    for number in range(13):
        axis.plot([1, 2], [1, number], label=str(number))
    label_lines(axis)
    return {"lines": drawn(figure), "crowded lines": drawn(crowded)}


def _of_papers() -> dict[str, Any]:
    bends = PiecewiseLinear((1.0, 1024.0, 65536.0), (1e-5, 2e-5, 9e-4))
    plogp = PLogP(3e-5, bends, PiecewiseLinear((0.0,), (0.0,)), bends)
    sizes = [1024, 65536, 204800]
    curve, series = pd.Series([1e-3, 2e-3, 3e-3], sizes), ("single", "series")
    columns = {f"{kind}, {what}": curve * n for n, kind in enumerate(series, 1) for what in ("minimum", "maximum")}
    predicted = pd.DataFrame({"linear": [0.2, 0.3, 0.1], "no losses": [0.01, 0.02, 0.1]}, sizes)
    measured = pd.DataFrame({"gather": ["linear"] * 3 + ["lmo"] * 3, "ratio": [1, 9, 20, 1, 1.1, 1.2]})
    conditions = {"Hockney": pd.DataFrame({"whole": [1.0, 2.0, 3.0], "segmented": [2.0, 2.0, 2.0]}, sizes)}
    seconds = pd.DataFrame(2.0, sizes, [whole.HAN, whole.HIERARCHICAL, whole.FLAT, whole.DEFAULT, *whole.DECISIONS])
    seconds[whole.HAN] = [1.0, 0.5, 1.0]
    wholes = [whole.Whole(*whole.FIGURES[number], seconds, seconds.map(str), seconds) for number in (10, 12)]
    figures = {
        "luo2020": whole.times_and_speed_ups(wholes),
        "luo2020, programs": whole.over_procs(pd.DataFrame({"ompi": [1.0, 2.0]}, [12, 24]), "title"),
        "oflynn2009": thesis.size_curves(
            {"a": {"simulated": curve, "LMO": curve * 2}, "b": {"PLogP": curve}}, "t", 65536
        ),
        "oflynn2009, series": thesis.series_curves({"scatter": pd.DataFrame(columns)}, "title"),
        "oflynn2009, escalations": thesis.escalations(predicted, measured, "title"),
        "pjesivac2007, 1": pjesivac.parameters({"Boba": Figure1(HockneyBySize(bends), plogp, plogp, 2048)}, "title"),
        "pjesivac2007, 2": pjesivac.over_procs(_scores("barrier", (0,), (0,), "bruck", "linear"), "title"),
        "pjesivac2007, 3": pjesivac.over_sizes(_scores("reduce", (KIB, 65536), (0, KIB), "chain"), "title"),
        "pjesivac2007, 4": pjesivac.conditions(conditions, "title"),
        "pjesivac2007, 5": pjesivac.exchange(
            _scores("alltoall", (8, KIB), (0,), "pairwise"), "pairwise", (4,), "title"
        ),
    }
    return {name: drawn(figure) for name, figure in figures.items()}


def _explorer() -> dict[str, Any]:
    """The settings of all controls."""
    found = Explorer(collwise.live_map("gros", "allreduce", procs="4,8", sizes="1KiB,64KiB"), lambda *_: None)  # type: ignore[arg-type, return-value]
    names = ("value", "min", "max", "step", "base", "options")
    return {
        f"{name}: {control.description}": [str(getattr(control, one, "-")) for one in names]
        for name, control in vars(found).items()
        if isinstance(control, widgets.DOMWidget) and hasattr(control, "description") and name[0] != "_"
    }
