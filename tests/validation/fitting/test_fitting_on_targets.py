"""Models fitted to measured times: here through shared memory, and on a test bed."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.experiments import Experiment, Measurement
from collwise.models.fitting.procedures import request
from collwise.models.registry import BY_PARTS
from collwise.simulator.bench import Measured
from collwise.simulator.execution.launchers import LocalMachine
from collwise.simulator.execution.processes import run_command
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.sweeps.method import Method, Precision
from collwise.simulator.timing import Case, Timing
from collwise.validation.fitting.implementation_aware import (
    MEASURED_SIZES,
    ExperimentSizes,
    FitPlan,
    fit,
    measured_plan,
    measured_procs,
)
from collwise.validation.fitting.models_by_name import measured_models, parameters_on
from collwise.validation.testbed.bed import Bed, Shape, down, up
from collwise.validation.testbed.target import AGENT, TestBed
from tests.needs import need, needs

TWICE = Precision(2, 2)
SMALL = ExperimentSizes((8192, 65536), (64,), (1024, 65536), (64,), (1024, 4096), (64, 8192), (2,))


class Alike:
    """A bench whose cases take what a function says; nothing is run."""

    name, source, made_by, eager_limit_bytes = "alike", "measured", "measured, nobody", 65536
    reduce_seconds_per_byte, is_exact, is_heterogeneous, max_procs = None, False, False, 4

    def __init__(self, seconds: Callable[[Case], float] = lambda case: 1.0, per_node: int = 1) -> None:
        self._seconds, self._per_node, self.seen = seconds, per_node, list[Case]()

    def alike(self, procs: int) -> tuple[int, int]:
        return procs, self._per_node

    def processes_per_node(self, procs: int) -> int:
        return self._per_node

    def time(self, cases: Sequence[Case], label: str = "") -> dict[Case, Timing]:
        self.seen += dict.fromkeys(cases)
        return {case: Timing(case, self._seconds(case)) for case in cases}

    def laboratory(self, procs: int, processes_per_node: int = 1) -> Roundtrips:
        return Roundtrips()


class Roundtrips:
    """A laboratory in which a roundtrip takes 1 ms + 1 us a byte."""

    def run(self, experiments: list[Experiment]) -> list[Measurement]:
        assert {one.kind for one in experiments} == {"roundtrip"}
        assert all(one.message_bytes == one.reply_bytes for one in experiments)
        return [Measurement(1e-3 + 1e-6 * one.message_bytes) for one in experiments]


def measured(
    target: ExecutionTarget, store: Store, precision: Precision = TWICE, limit_seconds: float = 60.0
) -> Measured:
    return Measured(target, SimulationContext(store), Method(timing="maximum", precision=precision), limit_seconds)


def test_a_measured_plan_is_small_and_fits() -> None:
    plan = measured_plan(Alike(), measured_procs(8))  # type: ignore[arg-type]
    assert plan.procs == (5, 8)
    assert plan.sizes == MEASURED_SIZES
    assert measured_procs(2) == (2,)
    assert measured_procs(4) == (3, 4)


def test_several_a_node_are_refused() -> None:
    with pytest.raises(UsageError, match=r"2 processes per node.*--ppn 1"):
        fit(Alike(per_node=2), FitPlan((4,), 2))  # type: ignore[arg-type]


def test_the_time_of_the_slowest_stands_for_the_roots() -> None:
    bench = Alike(lambda case: 1e-3 + 1e-6 * case.message_bytes * (2 if case.procs > 2 else 1))
    found = fit(bench, FitPlan((3, 4), 1, more_segments=(), sizes=SMALL))  # type: ignore[arg-type]
    # Half of a roundtrip of 1 ms + 1 us a byte.
    assert found.hockney.alpha_seconds == pytest.approx(5e-4, rel=1e-3)
    assert found.hockney.beta_seconds_per_byte == pytest.approx(5e-7, rel=1e-3)
    assert found.platform == "alike"
    assert len(bench.seen) == len(set(bench.seen))
    assert {case.experiment for case in bench.seen} == {"collective", "barrier", "bcast_gather", "exchange"}


def test_times_that_noise_swallows_are_said() -> None:
    bench = Alike(lambda case: 2.0 if case.experiment == "barrier" else 1.0)
    with pytest.raises(CollwiseError, match=r"took -1 s, too little to tell from noise: .*bcast_gather"):
        fit(bench, FitPlan((3,), 1, sizes=SMALL))  # type: ignore[arg-type]


def test_models_without_time_left_are_noted() -> None:
    notes: list[str] = []
    assert measured_models(lambda left: Alike(), 2, budget_seconds=0, on_note=notes.append) == []  # type: ignore
    assert len(notes) == 8
    assert all("not fitted, the budget of 0 s was spent" in note for note in notes)


def test_each_family_of_models_gets_an_equal_share_of_the_time_left() -> None:
    shares: list[float] = []

    def bench_within(seconds: float) -> Alike:
        shares.append(seconds)
        raise CollwiseError("takes no time")

    assert measured_models(bench_within, 2, budget_seconds=840) == []  # type: ignore[arg-type]
    assert shares == pytest.approx([840 / count for count in range(8, 0, -1)], rel=0.01)


@needs("openmpi")
def test_an_experiment_beyond_its_time_ends(tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as store, pytest.raises(CollwiseError, match="time limit"):
        parameters_on(measured(LocalMachine("openmpi"), store, limit_seconds=0), request("hockney"), 2)


@pytest.fixture
def bed() -> Iterator[Bed]:
    need("testbed")
    name = f"lt{os.getpid()}"
    try:
        yield up(Shape(3, 100e6), name)
    finally:
        down(name)


@pytest.mark.slow
@needs("openmpi")
def test_every_model_on_a_test_bed(tmp_path: Path, bed: Bed) -> None:
    notes: list[str] = []
    with Store(tmp_path / "s.sqlite") as store:
        target = TestBed(bed)
        benches = partial(measured, target, store, TWICE)
        models = measured_models(benches, 3, on_note=notes.append)
    assert not notes
    wanted = {"by_parts", "critical_path", "hockney", "hockney_by_size", "logp", "loggp", "plogp", "lmo"}
    assert wanted <= {one.name for one in models}
    # 128 KiB to two others at 12 MB/s: 21 ms; models by size must not be off by more than a factor.
    for model in models:
        if model.name in ("hockney_by_size", "plogp", BY_PARTS):
            seconds = float(model.predict("bcast", "linear", 3, 131072))
            assert math.isfinite(seconds)
            assert 0.01 < seconds < 0.05


@pytest.mark.slow
@needs("openmpi")
def test_mpirun_on_named_hosts_of_a_test_bed(bed: Bed) -> None:
    """The launcher itself runs on the first node, and reaches the second one by the bed's agent instead of ssh."""
    code = (
        "import json; from collwise.simulator.execution.launchers import Mpirun; "
        "from collwise.simulator.execution.cluster import LaunchOptions; "
        "target = Mpirun({'n1': 1, 'n2': 1}, "
        "LaunchOptions(transport='tcp', reach_seconds=900, extra_args=('--mca', 'btl_tcp_if_include', '10.77.0.0/16', "
        f"'--mca', 'oob_tcp_if_include', '10.77.0.0/16')), {f'{AGENT} {bed.name}'!r}); "
        "print(json.dumps([dict(target.facts), target.name, target.eager_limit_bytes]))"
    )
    command = [str(AGENT), bed.name, "n1", shlex.join([sys.executable, "-c", code])]
    run = run_command(command, timeout_seconds=900)
    assert run.returncode == 0, run.error_text
    facts, name, eager_limit = json.loads(run.output_lines[-1])
    assert facts["hosts"] == "n1*1,n2*1"
    assert (facts["transport"], name, eager_limit) == ("tcp", "n", 65536)
