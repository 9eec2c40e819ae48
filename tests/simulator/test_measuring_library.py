"""The measuring library inside programs: its clock, rounds, timings and quantiles under real MPI."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from collwise.models.point_to_point import PointToPointModel
from collwise.models.single_messages import LMO
from collwise.platforms import load
from collwise.platforms.linear_costs import point_to_point
from collwise.simulator.execution.installations import find_installation
from collwise.simulator.execution.launchers import LocalMachine, run_program
from collwise.simulator.execution.smpirun import smpi_files, smpirun_command
from collwise.validation.fitting.recovery import true_parameters
from tests.needs import each, needs

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "simulator" / "programs" / "measuring"


def compiled(library: str, source: Path, folder: Path) -> Path:
    """As a user builds a program: the header, the static library, MPI and libm, nothing else."""
    program = folder / f"{source.stem}-{library}"
    archive = find_installation(library).program("libcollwise_measuring.a")
    compiler = "smpicc" if library == "smpi" else f"mpicc.{library}"
    command = [compiler, "-Wall", "-Wextra", "-Werror", "-O2", f"-I{LIBRARY}", "-o", str(program)]
    done = subprocess.run([*command, str(source), str(archive), "-lm"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("openmpi", Path(__file__).with_name("measuring.c"), tmp_path_factory.mktemp("driver"))


@needs("openmpi")
def test_what_is_installed_is_all_that_a_program_needs(tmp_path: Path) -> None:
    installation = find_installation("openmpi")
    for name in ("libcollwise.so", "libcollwise_measuring.a"):
        installation.program(name)
    install = ["cmake", "--install", str(installation.build_directory), "--prefix", str(tmp_path)]
    subprocess.run(install, capture_output=True, check=True)
    source = tmp_path / "program.c"
    headers = ("collwise", "collwise_decisions", "collwise_measuring", "collwise_models")
    example = (LIBRARY / "models_example.c").read_text()
    source.write_text("".join(f'#include "{name}.h"\n' for name in headers) + example)
    command = ["mpicc.openmpi", "-Werror", f"-I{tmp_path}/include", "-o", str(tmp_path / "program"), str(source)]
    command += [str(tmp_path / "lib" / name) for name in ("libcollwise_measuring.a", "libcollwise.so")]
    done = subprocess.run([*command, "-lm"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


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
@pytest.mark.parametrize("procs", [2, 5])
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
    status, repetitions, late, greatest = numbers(driver, 2, ["late", "3"])
    assert (status, repetitions) == (0, 8)
    assert 3 <= late <= 8
    assert greatest < 0.4


@needs("openmpi")
def test_a_process_that_is_always_late_ends_the_measurement(driver: Path) -> None:
    status, repetitions, late, _ = numbers(driver, 2, ["late", "1"])
    assert (status, late) == (3, 10)
    assert repetitions == 0


@needs("openmpi")
def test_every_timing_sees_the_slowest_process(driver: Path) -> None:
    root, maximum, global_time = numbers(driver, 3, ["busy"])
    # It is busy for 2 ms; processes do not leave the barrier before at the same moment, least of all on a busy machine.
    assert min(root, maximum, global_time) >= 0.0015


@needs("openmpi")
def test_a_repetition_is_the_mean_of_its_calls(driver: Path) -> None:
    assert numbers(driver, 2, ["calls"]) == pytest.approx([3 * (2 + 5), 0.002, 6 * (2 + 5), 0.002])


@pytest.mark.parametrize("library", each("openmpi", "mpich"))
def test_the_example_builds_and_runs(tmp_path: Path, library: str) -> None:
    program = compiled(library, LIBRARY / "example.c", tmp_path)
    run = run_program(library, str(program), 2, timeout_seconds=900)
    assert run.returncode == 0, run.error_text
    (line,) = [line for line in run.output_lines if line.startswith("mean ")]
    assert "repetitions" in line


def lines_of_models(output: Sequence[str]) -> pd.DataFrame:
    """The output of models_example.c: a row for each size, with the seconds of each prediction."""
    found = [re.findall(r"[\d.]+(?:e-\d+)?|linear$|binomial$", line) for line in output if " bytes: " in line]
    columns = ["bytes", "message", "linear", "binomial", "faster"]
    table = pd.DataFrame(found, columns=columns).set_index("bytes")
    assert len(table) == 3
    return table


@needs("smpi")
def test_lmo_is_estimated_as_a_platform_has_it_and_predicts_as_our_models_do(tmp_path: Path) -> None:
    """All of LMO's assumptions hold in the simulation, which has the parameters exactly."""
    program, procs, platform = compiled("smpi", LIBRARY / "models_example.c", tmp_path), 5, load("exact-heterogeneous")
    written = tmp_path / "lmo.txt"
    with smpi_files(platform, procs, 1) as files:
        command = smpirun_command(find_installation("smpi"), files, procs, program)
        runs = [
            subprocess.run([*command, str(written)], capture_output=True, text=True, check=True).stdout.splitlines()
            for _ in range(2)
        ]
    head, *rows = written.read_text().splitlines()
    assert head == f"lmo {procs}"
    constant, per_byte, *tables = (np.array(row.split(), dtype=float) for row in rows)
    true = true_parameters("lmo", point_to_point(platform))
    assert isinstance(true, LMO)
    pairs = ~np.eye(procs, dtype=bool)
    for found, name in (
        (constant, "processor_seconds"),
        (per_byte, "processor_seconds_per_byte"),
        (np.array(tables[:procs])[pairs], "latency_seconds"),
        (np.array(tables[procs:])[pairs], "network_seconds_per_byte"),
    ):
        wanted = np.asarray(getattr(true, name))
        wanted = wanted[:procs] if wanted.ndim == 1 else wanted[:procs, :procs][pairs]
        assert found == pytest.approx(wanted, rel=1e-3), name
    # The second run reads the file.
    assert runs[0] == runs[1]
    lmo = LMO(constant, per_byte, np.array(tables[:procs]), np.array(tables[procs:]))
    model = PointToPointModel("lmo_heterogeneous", "", lmo)
    printed = lines_of_models(runs[1])
    sizes = [int(size) for size in printed.index]
    for name in ("linear", "binomial"):
        assert [*printed[name].astype(float)] == pytest.approx(model.predict("scatter", name, procs, sizes), rel=1e-5)
    assert [*printed.message.astype(float)] == pytest.approx(lmo.predict(sizes, 0, 1), rel=1e-5)
    faster = printed.binomial.astype(float) < printed.linear.astype(float)
    assert [*printed.faster] == ["binomial" if one else "linear" for one in faster]


@needs("openmpi")
def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    program, wrong = compiled("openmpi", LIBRARY / "models_example.c", tmp_path), tmp_path / "lmo.txt"
    for text in ("", "hockney 2\n", "lmo 3\n1 2\n", "lmo -1\n", "lmo 2\n" + "nan " * 12):
        wrong.write_text(text)
        run = LocalMachine("openmpi").run(str(program), 2, [str(wrong)], timeout_seconds=900)
        assert run.returncode != 0
        assert wrong.read_text() == text
