"""The benchmark program in SMPI against closed formulas of the platform, and for real."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import astuple, replace
from pathlib import Path

import pytest

from collwise.platforms import Calibration, load_description
from collwise.simulator.execution.launchers import run_program
from collwise.simulator.execution.processes import ProgramRun, case_lines
from collwise.simulator.timing import Case
from tests.needs import needs

# No factors, no cross traffic: a message takes two links' latency and its bytes, envelope included, over bandwidth.
PLATFORM = replace(load_description("grisou"), name="plain", calibration=Calibration(crosstraffic=False))
ENVELOPE_BYTES = 16
SMALL, LARGE = 8192, 1_000_000
PRECISION = 2e-9


def message(size: float, flows: int = 1) -> float:
    """Seconds of `flows` messages of that size that share one link."""
    return 2 * PLATFORM.link_latency_seconds + flows * (size + ENVELOPE_BYTES) / PLATFORM.link_bytes_per_second


def bcast(algorithm: str, procs: int, size: int, segment: int = 0, parameter: int = 0, root: int = 0) -> Case:
    return Case("bcast", algorithm, procs, size, segment, parameter, root=root)


def gather(algorithm: str, procs: int, size: int, segment: int = 0, root: int = 0) -> Case:
    return Case("gather", algorithm, procs, size, segment, root=root)


def lmo(collective: str, procs: int, size: int, bound: int, limit: int = 0) -> Case:
    return Case(collective, "lmo", procs, size, bound, limit_bytes=limit)


def special(experiment: str, procs: int, size: int, root: int = 0) -> Case:
    return Case("bcast", "split_binary", procs, size, experiment=experiment, root=root)


def run_text(text: str, procs: int, folder: Path, library: str = "smpi", *args: str) -> ProgramRun:
    (folder / "cases.txt").write_text(text)
    platform = PLATFORM if library == "smpi" else None
    return run_program(
        library, "benchmark", procs, [str(folder / "cases.txt"), *args], platform=platform, timeout_seconds=900
    )


def records(run: ProgramRun) -> list[dict[str, float]]:
    assert run.returncode == 0, run.error_text
    return [json.loads(line) for line in run.output_lines if line.startswith("{")]


def simulated(cases: Sequence[Case], folder: Path, procs: int = 0) -> list[dict[str, float]]:
    found = records(run_text(case_lines(cases), procs or max(case.procs for case in cases), folder))
    assert [record["id"] for record in found] == list(range(len(cases)))
    return found


# Each piece a barrier and a gather. While the first two pieces of a process flow, its signal for the barrier behind
# does, too.
IN_THREE_PIECES = 3 * (2 * message(1) + 3 * message(SMALL / 3)) + 2 * (message(1, 2) - message(1))


EXACT = [
    *((bcast("linear_nonblocking", 2, size), message(size)) for size in (1, SMALL, 65535, 65536, LARGE)),
    (bcast("linear_nonblocking", 3, SMALL), message(SMALL, 2)),
    (bcast("linear_nonblocking", 7, SMALL), message(SMALL, 6)),
    (bcast("linear", 5, SMALL), message(SMALL, 4)),
    (bcast("linear", 5, LARGE), 4 * message(LARGE)),
    (bcast("chain", 3, SMALL), 2 * message(SMALL)),
    (bcast("chain", 3, LARGE), 2 * message(LARGE)),
    (bcast("chain", 5, 10 * SMALL, SMALL), (5 + 10 - 2) * message(SMALL)),
    (bcast("chain", 3, 2 * SMALL + 100, SMALL), 3 * message(SMALL) + message(100)),
    (bcast("k_chain", 5, SMALL), message(SMALL, 4)),
    (bcast("k_chain", 5, SMALL, parameter=2), message(SMALL, 2) + message(SMALL)),
    (bcast("k_chain", 9, SMALL), message(SMALL, 4) + message(SMALL)),
    (bcast("binary", 3, SMALL), message(SMALL, 2)),
    (bcast("binary", 7, SMALL), 2 * message(SMALL, 2)),
    (bcast("binomial", 4, SMALL), message(SMALL, 2) + message(SMALL)),
    (bcast("binomial", 8, SMALL), message(SMALL, 3) + message(SMALL, 2) + message(SMALL)),
    (bcast("split_binary", 3, SMALL), message(SMALL / 2, 2) + message(SMALL / 2)),
    (gather("linear", 4, SMALL), 3 * message(SMALL)),
    (gather("linear", 4, LARGE), 3 * message(LARGE)),
    (gather("binomial", 2, SMALL), message(SMALL)),
    (gather("binomial", 4, LARGE), message(LARGE) + message(2 * LARGE)),
    (gather("binomial", 8, LARGE), message(LARGE) + message(2 * LARGE) + message(4 * LARGE)),
    (gather("linear_sync", 4, 2 * LARGE), 3 * (message(0) + 2 * message(LARGE))),
    *((lmo("gather", 4, SMALL, *bounds), 3 * message(SMALL)) for bounds in ((0, 0), (SMALL + 1, 0), (1024, SMALL - 1))),
    *((lmo("gather", 4, SMALL, 3000, limit), IN_THREE_PIECES) for limit in (0, SMALL)),
    (lmo("gather", 2, SMALL, SMALL), 2 * (message(1) + message(SMALL / 2))),
    (lmo("scatter", 3, LARGE, LARGE + 1), 2 * message(LARGE)),
    (lmo("scatter", 3, LARGE, LARGE), 2 * 2 * message(LARGE / 2)),
    (special("exchange", 3, 2 * LARGE), message(LARGE)),
    (special("exchange", 7, 2 * SMALL), message(SMALL)),
    (special("barrier", 1, 0), 0.0),
    (bcast("binomial", 1, SMALL), 0.0),
    (gather("binomial", 1, SMALL), 0.0),
    (bcast("chain", 4, 0), 0.0),
    *((special("barrier", procs, 0), math.ceil(math.log2(procs)) * message(1)) for procs in (2, 3, 4, 5, 8, 9)),
]


@pytest.fixture(scope="module")
def exact_times(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, float]]:
    return simulated([case for case, _ in EXACT], tmp_path_factory.mktemp("exact"))


@needs("smpi")
@pytest.mark.parametrize("index", range(len(EXACT)), ids=lambda index: "-".join(map(str, astuple(EXACT[index][0]))))
def test_simulated_times_are_exact(exact_times: list[dict[str, float]], index: int) -> None:
    assert exact_times[index]["seconds"] == pytest.approx(EXACT[index][1], rel=1e-6, abs=PRECISION)


@needs("smpi")
def test_the_paper_experiment_is_its_parts_one_after_another(tmp_path: Path) -> None:
    experiment = replace(bcast("chain", 4, 10 * SMALL, SMALL), experiment="bcast_gather", gather_bytes=1024)
    (whole,) = simulated([experiment], tmp_path)
    # The last process of the chain reaches the barrier last, and every other one waits for it there.
    expected = (4 + 10 - 2) * message(SMALL) + 2 * message(1) + 3 * message(1024)
    assert whole["root_seconds"] == pytest.approx(expected, rel=1e-6)
    assert whole["seconds"] == pytest.approx(expected, rel=1e-6)


@needs("smpi")
def test_barriers_cost_processors_their_time(tmp_path: Path) -> None:
    """With overheads a linear barrier costs the root P - 1 receives and as many sends."""
    calibration = Calibration(os=((0, 1e-5, 0.0),), or_=((0, 1e-5, 0.0),), crosstraffic=False)
    cases = [Case("barrier", "linear", procs, 0) for procs in (2, 40)]
    (tmp_path / "cases.txt").write_text(case_lines(cases))
    platform = replace(PLATFORM, calibration=calibration)
    few, many = records(run_program("smpi", "benchmark", 40, [str(tmp_path / "cases.txt")], platform=platform))
    assert many["seconds"] - few["seconds"] == pytest.approx(38 * 2e-5, rel=0.01)


@needs("smpi")
def test_the_root_may_be_done_before_the_last(tmp_path: Path) -> None:
    sends, receives = simulated([bcast("chain", 4, 65536), gather("linear", 4, SMALL)], tmp_path)
    assert sends["root_seconds"] == pytest.approx(message(65536), rel=1e-6)
    assert sends["seconds"] == pytest.approx(3 * message(65536), rel=1e-6)
    assert receives["root_seconds"] == receives["seconds"]


@needs("smpi")
def test_every_root_gives_the_same_time(tmp_path: Path) -> None:
    """Nodes are alike, so only a start at different instants could make a difference."""
    algorithms = ("linear", "linear_nonblocking", "chain", "k_chain", "binary", "split_binary", "binomial")
    for make in (
        *(lambda root, name=name: bcast(name, 7, 20000, SMALL, root=root) for name in algorithms),
        *(lambda root, name=name: gather(name, 7, 20000, root=root) for name in ("linear", "linear_sync", "binomial")),
        lambda root: special("barrier", 7, 0, root),
        lambda root: special("exchange", 7, SMALL, root),
    ):
        found = simulated([make(root) for root in range(7)], tmp_path, procs=9)
        for key in ("seconds", "root_seconds"):
            values = [record[key] for record in found]
            assert max(values) - min(values) < PRECISION, (make(0), key, values)
            assert max(values) > 0 or key == "root_seconds"


@needs("smpi")
def test_bad_cases_are_told_and_the_others_run(tmp_path: Path) -> None:
    good = "{} collective bcast chain 3 0 8192 0 0 0 0\n"
    bad = [
        ("unknown algorithm", "collective bcast chian 3 0 8192 0 0 0 0"),
        ("unknown experiment", "colective bcast chain 3 0 8192 0 0 0 0"),
        ("root is not a whole number from 0 to 2", "collective bcast chain 3 3 8192 0 0 0 0"),
        ("procs is not a whole number from 1 to 4", "collective bcast chain 5 0 8192 0 0 0 0"),
        ("procs is not a whole number from 1 to 4", "collective bcast chain three 0 8192 0 0 0 0"),
        ("message_bytes is not a whole number from 0 to 1073741824", "collective bcast chain 3 0 1073741825 0 0 0 0"),
        (
            "gather_bytes is not a whole number from 0 to 1073741824",
            "bcast_gather bcast chain 3 0 8192 0 0 4294967297 0",
        ),
        (
            "count is not a whole number from -2147483648 to 2147483647",
            "collective bcast k_chain 3 0 8192 0 99999999999999999999 0 0",
        ),
        ("limit_bytes is not a whole number from 0 to 9223372036854775807", "collective bcast chain 3 0 8192 0 0 0"),
        ("there is more on the line than its fields", "collective bcast chain 3 0 8192 0 0 0 0 0"),
        ("'within' has to be from 0 to 3", "collective bcast tasks_chain 3 0 8192 0 9 0 0"),
        ("'radix' has to be at least 2, or 0 for the default", "collective bcast knomial 3 0 8192 0 1 0 0"),
        ("the number of chains, requests or leaders is negative", "collective bcast k_chain 3 0 8192 0 -4 0 0"),
    ]
    lines = [good.format(0), *(f"{i} {line}\n" for i, (_, line) in enumerate(bad, 1)), "hello\n", good.format(99)]
    found = records(run_text("".join(lines), 4, tmp_path))
    assert [record["id"] for record in found] == [*range(len(bad) + 1), -1, 99]
    no_id = f"id is not a whole number from 0 to {2**63 - 1}"
    assert [record.get("error") for record in found] == [None, *(error for error, _ in bad), no_id, None]
    assert found[0]["seconds"] == pytest.approx(found[-1]["seconds"], abs=PRECISION)


@needs("smpi")
def test_a_missing_case_file_ends_the_program(tmp_path: Path) -> None:
    run = run_program("smpi", "benchmark", 2, [str(tmp_path / "none.txt")], platform=PLATFORM)
    assert run.returncode == 2
    assert f"benchmark: cannot read {tmp_path / 'none.txt'}" in run.error_text


@needs("smpi")
@pytest.mark.parametrize(
    "args",
    [["--timing", "median"], ["--timing"], ["--min-repetitions", "0"], ["--max-repetitions", "x"],
     ["--min-repetitions", "1.5"], ["--min-repetitions"], ["--warmup", "0"], ["--speed", "3"], ["--nrep", "1"],
     ["--synchronisation", "late"], ["--limit-seconds", "soon"]],
)  # fmt: skip
def test_wrong_options_end_the_program(tmp_path: Path, args: list[str]) -> None:
    run = run_text("", 2, tmp_path, "smpi", *args)
    assert run.returncode == 2
    assert args[0] in run.error_text
    assert "benchmark: " in run.error_text


@needs("openmpi")
@pytest.mark.parametrize("timing", ["root", "maximum", "global"])
def test_for_real(tmp_path: Path, timing: str) -> None:
    cases = [
        bcast("chain", 4, 65536, SMALL),
        bcast("split_binary", 3, 1000, 100, root=2),
        gather("binomial", 4, 4096, root=1),
        gather("linear_sync", 4, 300000),
        replace(bcast("binomial", 4, SMALL), experiment="bcast_gather", gather_bytes=512),
        special("barrier", 4, 0),
        special("exchange", 4, SMALL),
    ]
    args = ["--timing", timing, "--min-repetitions", "5", "--max-repetitions", "5", "--warmup", "1"]
    found = records(run_text(case_lines(cases), 4, tmp_path, "openmpi", *args))
    assert sorted(record["id"] for record in found) == list(range(len(cases)))
    for record in found:
        assert record["repetitions"] == 5
        assert 0 < record["least_seconds"] <= record["seconds"] <= record["greatest_seconds"] < 3600
        assert 0 <= record["half_width_seconds"] < math.inf


@needs("openmpi")
def test_a_bad_case_is_told_and_the_next_one_runs_for_real(tmp_path: Path) -> None:
    lines = f"0 collective bcast chain 2 0 {SMALL} 0 0 0\n1 collective bcast chain 2 0 {SMALL} 0 0 0 0\n"
    bad, good = records(run_text(lines, 2, tmp_path, "openmpi", "--max-repetitions", "5"))
    assert bad == {"id": 0, "error": f"limit_bytes is not a whole number from 0 to {2**63 - 1}"}
    assert good["seconds"] > 0
