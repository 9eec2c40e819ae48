"""Input that cannot work, or means less than it seems to: refused up front, or warned of."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from collwise.common import errors
from collwise.models.implementation_aware.message_counts import Gamma
from collwise.models.parameters import FittedParameters, ModelParameters, Observation
from collwise.models.piecewise import PiecewiseLinear
from collwise.models.single_messages import Hockney as Line, HockneyBySize
from collwise.platforms import load
from collwise.studies.cli.main import main
from collwise.validation.three_way.plan import ThreeWayPlan
from tests.command_line import printed
from tests.needs import needs

COLLWISE = [sys.executable, "-P", "-m", "collwise.studies"]
NEW = ["platforms", "new", "mine", "--nodes", "4", "--gbits", "1", "--latency-us", "10"]
CLUSTER = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="world" routing="Full">
    <cluster id="c" prefix="n-" suffix=".x" radical="0-{last}" speed="1Gf" bw="1GBps" lat="10us"
             topology="{topology}" topo_parameters="{parameters}"/>
  </zone>
</platform>
"""
TOPOLOGIES = [("FAT_TREE", "2;4,4;1,2;1,2", 16), ("TORUS", "3,3", 9), ("DRAGONFLY", "3,4;3,2;3,1;2", 54)]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    errors.warn.cache_clear()


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[[list[str]], tuple[int, str, str]]:
    def call(arguments: list[str]) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return call


Told = Callable[[list[str]], tuple[int, str, str]]


def test_validate_without_models_is_compared(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    def planned(plan: ThreeWayPlan, *_: object) -> NoReturn:
        raise errors.UsageError(f"planned with models: {plan.models}")

    monkeypatch.setattr("collwise.validation.three_way.pipeline.ThreeWayComparison", planned)
    assert "planned with models: False" in told(["check", "three-way", "--testbed", "--quick", "--no-models"])[2]


@pytest.mark.parametrize(("topology", "parameters", "size"), TOPOLOGIES)
def test_a_topology_of_another_size_than_the_hosts(told: Told, topology: str, parameters: str, size: int) -> None:
    file = Path("c.xml")
    what = f"c.xml:5: topology {topology} of <cluster> has {size} nodes, its radical names 10 hosts"
    file.write_text(CLUSTER.format(last=9, topology=topology, parameters=parameters))
    assert told(["platforms", "show", "c.xml", "--check"])[:2] == (1, f"{what}; the two numbers must be equal\n")
    simulated = ["simulate", "--platform", "c.xml", "--collective", "bcast", "--procs", "4"]
    assert told(simulated) == (2, "", f"collwise: --platform: {what}; the two numbers must be equal\n")
    file.write_text(CLUSTER.format(last=size - 1, topology=topology, parameters=parameters))
    assert len(load(file).hosts) == size


@pytest.mark.parametrize("arguments", [["platforms", "show", "--json"], ["platforms", "show"], ["platforms", "--help"]])
def test_a_full_device_is_one_line(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*COLLWISE, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=900)
    assert (done.returncode, done.stderr) == (2, "collwise: cannot write the output: No space left on device\n")


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (NEW, "mine.toml"),
        ([*NEW, "-o", "other.toml"], "other.toml"),
        (["platforms", "show", "gros", "-o", "gros.xml"], "gros.xml"),
        (["platforms", "calibrate", "--published", "gros", "-o", "gros.toml"], "gros.toml"),
        (["fit", "--platform", "gros", "-o", "p.toml"], "p.toml"),
        (["select", "none.times", "-o", "d.json"], "d.json"),
        (["export", "none.json", "-o", "r.rules"], "r.rules"),
        (["measure", "--collective", "bcast", "--procs", "2", "--raw", "raw.csv"], "raw.csv"),
        (["measure", "--collective", "bcast", "--procs", "2", "--script", "there.sh"], "there.sh"),
        (["platforms", "ranks", "--platform", "hcl16", "--collective", "scatter", "-o", "hosts"], "hosts"),
        (["program", "profile", "none.json", "-o", "t.table"], "t.table"),
        (["program", "gain", "none.json", "--procs", "2", "--report", "r.md"], "r.md"),
        (["platforms", "thresholds", "-o", "t.toml"], "t.toml"),
        (["platforms", "thresholds", "--report", "r.md"], "r.md"),
        (["platforms", "calibrate", "--nominal", "gros", "--points", "none.csv"], "gros.toml"),
        (["platforms", "calibrate", "--nominal", "gros", "--testbed", "-o", "o.toml"], "o.points.csv"),
    ],
)
def test_a_file_that_exists_is_not_overwritten(told: Told, arguments: list[str], file: str) -> None:
    Path(file).write_text("dear to somebody")
    code, _, err = told(arguments)
    assert (code, err) == (2, f"collwise: {file} already exists; name another file, or overwrite it with --force\n")
    assert Path(file).read_text() == "dear to somebody"


def test_a_script_goes_into_a_folder_and_starts_as_many_processes_on_a_node(told: Told) -> None:
    asked = ["measure", "--collective", "bcast", "--procs", "16,64", "--sizes", "8KiB", "--script", "."]
    assert told(asked)[0] == 0
    script = Path("collwise-measure.sh")
    assert "launcher=${LAUNCHER:-mpirun}" in script.read_text()
    code, _, err = told([*asked, "--ppn", "32", "--launcher", "srun"])
    assert (code, err) == (
        2,
        "collwise: collwise-measure.sh already exists; name another file, or overwrite it with --force\n",
    )
    assert told([*asked, "--force", "--ppn", "32", "--launcher", "srun", "--mpirun-args", "--mpi=pmi2"])[0] == 0
    wanted = "--ntasks=64 --nodes=2 --ntasks-per-node=32 --distribution=block --kill-on-bad-exit=1 --cpu-bind=cores"
    assert f"launcher=${{LAUNCHER:-srun --mpi=pmix {wanted} --mpi=pmi2}}" in script.read_text()
    assert script.read_text().splitlines()[1] == "#SBATCH --exclusive --nodes=2 --ntasks-per-node=32"
    _, out, err = told([*asked, "--force", "--launcher", "srun", "--library", "mpich"])
    assert "launcher=${LAUNCHER:-srun --mpi=pmi2 --cpu-bind=cores}" in script.read_text()
    assert "#SBATCH" not in script.read_text()
    assert out.endswith("on the machine to be measured, run: bash collwise-measure.sh\n")
    assert "without --ppn, the job sets the number of processes per node" in err
    for library, words in (("openmpi", "mpirun --map-by ppr:32:node}"), ("mpich", "mpirun -ppn 32}")):
        assert told([*asked, "--force", "--ppn", "32", "--launcher", "mpirun", "--library", library])[0] == 0
        assert words in script.read_text()


def test_a_script_leaves_out_what_the_memory_of_a_node_cannot_hold(told: Told) -> None:
    """The buffers of 32 processes in an alltoall of 64: 32 * (64 + 64) messages."""
    assert (
        told(["platforms", "new", "small", "--nodes", "2", "--gbits", "1", "--latency-us", "9", "--memory", "1GiB"])[0]
        == 0
    )
    asked = [
        "measure",
        "--collective",
        "alltoall",
        "--procs",
        "64",
        "--ppn",
        "32",
        "--script",
        ".",
        "--launcher",
        "srun",
    ]
    code, out, err = told([*asked, "--sizes", "256KiB,512KiB", "--platform", "small.toml"])
    assert code == 0
    assert "the buffers of a node's 32 processes take more than the 1 GiB that 'small' has: alltoall at 1 of 2" in err
    whole = told([*asked, "--sizes", "256KiB", "--force"])[1]
    assert out == whole
    code, _, err = told([*asked, "--sizes", "512KiB", "--platform", "small.toml", "--force"])
    assert (code, err.count("\n")) == (2, 1)
    assert "no point of alltoall fits" in err


def test_force_overwrites_wherever_it_stands(told: Told) -> None:
    for arguments in ([*NEW, "--force"], [*NEW[:3], "--force", *NEW[3:]], ["platforms", "new", "--force", *NEW[2:]]):
        Path("mine.toml").write_text("of no worth")
        assert told(arguments)[0] == 0
        assert "of no worth" not in Path("mine.toml").read_text()
    assert told([*NEW, "-o", "/dev/null"])[0] == 0


def test_more_processes_than_cores_are_warned_of(monkeypatch: pytest.MonkeyPatch, told: Told) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    measure = ["measure", "--collective", "barrier", "--algorithms", "linear", "--repetitions", "5", "--procs"]
    code, _, err = told([*measure, "5,6"])
    assert code == 0
    assert err.count("warning") == 1
    assert "warning: 6 processes share 1 core of this machine; their times mostly show waiting for a core" in err
    assert "warning: 2 processes share 1 core of this machine; their times include" in told([*measure, "2"])[2]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert "warning" not in told([*measure, "2"])[2]


@needs("openmpi")
def test_measure_repeats_no_case_and_takes_mpis_own_collective(told: Told) -> None:
    words = ["measure", "--collective", "allreduce", "--procs", "2", "--sizes", "8,16KiB", "--repetitions", "2"]
    code, out, _ = told([*words, "--algorithms", "library,segmented_ring", "--segments", "8KiB,16KiB,32KiB", "--json"])
    assert code == 0
    found = [(row["algorithm"], row["message_bytes"], row["segment_bytes"]) for row in printed(out).rows]
    ours = {("segmented_ring", 8, 8192), ("segmented_ring", 16384, 8192), ("segmented_ring", 16384, 16384)}
    assert len(found) == 5
    assert set(found) == ours | {("-", 8, 0), ("-", 16384, 0)}


def parameters(platform: str) -> ModelParameters:
    seen = [Observation("collective", procs, size, 0, 1e-3) for procs in (4, 50) for size in (1024, 2**20)]
    gamma = Gamma((8192.0,), ((1.0, 1.1),))
    return ModelParameters(platform, "hand", 1, 65536, 8192, gamma, Line(1e-5, 1e-9), {}, {"bcast": {"chain": seen}})


@pytest.mark.parametrize(
    ("platform", "procs", "size", "said"),
    [
        ("gros", 124, 2**20, ""),
        ("gros", 125, 2**20, "P = 125 is beyond platform 'gros', which holds 124 with 1 per node"),
        ("gros", 124, 2**21, "messages of 2 MiB are beyond what was fitted, 1 MiB at most"),
        ("elsewhere", 100, 2**20, ""),
        ("elsewhere", 101, 2**20, "P = 101 is far beyond what was fitted, which ends at P = 50"),
    ],
)
def test_predictions_beyond_fit_and_platform_are_warned_of(
    told: Told, platform: str, procs: int, size: int, said: str
) -> None:
    parameters(platform).save("p.toml")
    predict = ["predict", "--parameters", "p.toml", "--model", "traditional", "--collective", "bcast"]
    code, _, err = told([*predict, "--algorithms", "binomial", "--procs", f"2,{procs}", "--sizes", f"1KiB,{size}"])
    assert code == 0
    beyond = [line for line in err.splitlines() if "has no overheads" not in line]
    assert beyond == ([f"collwise: warning: {said}"] if said else [])


@pytest.mark.parametrize(
    ("platform", "pair", "size", "said"),
    [
        ("gros", "0,1", "128KiB", "messages of 128 KiB are beyond what was fitted, 64 KiB at most"),
        ("gros", "0,123", "64KiB", ""),
        ("gros", "0,124", "64KiB", "P = 125 is beyond platform 'gros', which holds 124 with 1 per node"),
        ("gros", "124,0", "64KiB", "P = 125 is beyond platform 'gros', which holds 124 with 1 per node"),
        ("elsewhere", "0,124", "64KiB", ""),
    ],
)
def test_messages_beyond_fit_and_platform_are_warned_of(
    told: Told, platform: str, pair: str, size: str, said: str
) -> None:
    by_size = HockneyBySize(PiecewiseLinear((1.0, 65536.0), (1e-5, 1e-3)))
    FittedParameters("hockney_by_size", "hand", platform, "hand", 2, 65536, 0.0, by_size).save("p.toml")
    code, _, err = told(["show", "message", "p.toml", pair, "--sizes", size])
    assert (code, err) == (0, f"collwise: warning: {said}\n" if said else "")
