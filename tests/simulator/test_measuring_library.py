"""The measuring library inside programs: its clock, rounds, timings and quantiles under real MPI."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from scipy import stats

from collwise.simulator.execution.installations import mpi_installation
from collwise.simulator.execution.local_machine import LocalMachine, run_program
from tests.needs import each, needs

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "simulator" / "programs" / "measuring"


def compiled(library: str, source: Path, folder: Path) -> Path:
    """As a user builds a program: the header, the static library, MPI and libm, nothing else."""
    program = folder / f"{source.stem}-{library}"
    archive = mpi_installation(library).program("libcollwise_measuring.a")
    command = [f"mpicc.{library}", "-Wall", "-Wextra", "-Werror", "-O2", f"-I{LIBRARY}", "-o", str(program)]
    done = subprocess.run([*command, str(source), str(archive), "-lm"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("openmpi", Path(__file__).with_name("measuring.c"), tmp_path_factory.mktemp("driver"))


def numbers(program: Path, procs: int, args: Sequence[str]) -> list[float]:
    run = LocalMachine("openmpi").run(str(program), procs, args, timeout_seconds=900)
    assert run.returncode == 0, run.error_text
    return [float(word) for word in run.output_lines[-1].split()]


@needs("openmpi")
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_quantiles_are_scipys(driver: Path, confidence: float) -> None:
    found = numbers(driver, 1, ["quantiles", str(confidence)])
    wanted = stats.t.ppf(0.5 + confidence / 2, range(1, 1101))
    assert found[:1000] == pytest.approx(list(wanted[:1000]), rel=1e-9)
    # Above, that of 1000 stands in: not smaller, and hardly larger.
    assert all(w <= f <= 1.005 * w for f, w in zip(found[1000:], wanted[1000:], strict=True))


@needs("openmpi")
@pytest.mark.parametrize("procs", [2, 3, 5])
def test_clocks_that_are_apart_and_drift_become_one(driver: Path, procs: int) -> None:
    at_once, later, offset, bound = numbers(driver, procs, ["clock"])
    assert offset <= bound
    # The check bounds the error of each clock against process 0's, so that of two of them by twice as much; some time
    # passes between it and what the test sees, in which clocks drift by what is left of it.
    assert at_once <= 2 * bound + 2e-3
    # Unless the drift is taken into account, 0.4 s bring 40 ms a rank.
    assert later <= 2 * bound + 2e-2


@needs("openmpi")
def test_a_process_that_comes_late_is_counted_and_does_not_count(driver: Path) -> None:
    status, repetitions, late, greatest = numbers(driver, 3, ["late", "3"])
    assert (status, repetitions) == (0, 20)
    assert 6 <= late <= 20
    assert greatest < 0.4


@needs("openmpi")
def test_a_process_that_is_always_late_ends_the_measurement(driver: Path) -> None:
    status, repetitions, late, _ = numbers(driver, 3, ["late", "1"])
    assert (status, late) == (3, 10)
    assert repetitions == 0


@needs("openmpi")
def test_every_timing_sees_the_slowest_process(driver: Path) -> None:
    root, maximum, global_time = numbers(driver, 3, ["busy"])
    # It is busy for 2 ms; processes do not leave the barrier before at the same moment, least of all on a busy machine.
    assert min(root, maximum, global_time) >= 0.0015


@pytest.mark.parametrize("library", each("openmpi", "mpich"))
def test_the_example_builds_and_runs(tmp_path: Path, library: str) -> None:
    program = compiled(library, LIBRARY / "example.c", tmp_path)
    run = run_program(library, str(program), 2, timeout_seconds=900)
    assert run.returncode == 0, run.error_text
    (line,) = [line for line in run.output_lines if line.startswith("mean ")]
    assert "repetitions" in line
