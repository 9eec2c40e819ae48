"""Random sequences of calls: that they find nothing, and that they find what is wrong."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import pytest

from collwise.simulator.execution.processes import ProgramRun
from collwise.validation.correctness import verification
from collwise.validation.correctness.verification import MAX_SEED, VerificationResult, verify_sequences
from tests.algorithms.compiling import built_from, mistaken_sources
from tests.algorithms.test_verify import each_engine
from tests.command_line import run
from tests.needs import need, needs

FIXED_SEED = 20
WAYS = {"linked", "libcollwise"}


def assert_nothing_wrong(results: list[VerificationResult]) -> None:
    assert [result.first_failure for result in results if not result.ok] == []
    assert {result.algorithm for result in results} == WAYS


@each_engine
def test_nothing_is_wrong_in_sequences(library: str, yielding_mpich: None) -> None:
    """Two sequences are always the same, one for each way; the others are new ones."""
    progress: list[str] = []
    results = verify_sequences(library, FIXED_SEED, on_progress=progress.append)
    assert f"seed {FIXED_SEED}, " in progress[0]
    results += verify_sequences(library, FIXED_SEED + 1)
    results += verify_sequences(library, secrets.randbelow(MAX_SEED + 1), 10)
    assert_nothing_wrong(results)
    assert all(result.cases > 1000 for result in results)


@pytest.mark.slow
@each_engine
def test_nothing_is_wrong_in_ten_minutes_of_sequences(library: str, yielding_mpich: None) -> None:
    assert_nothing_wrong(verify_sequences(library, secrets.randbelow(MAX_SEED + 1), 600))


@needs("openmpi")
def test_a_seed_says_everything() -> None:
    first, again = (verify_sequences("openmpi", 19) for _ in range(2))
    assert first == again
    (result,) = first
    assert (result.algorithm, result.procs) == ("libcollwise", (3,))


@needs("smpi")
def test_sequences_of_one_algorithm(capsys: pytest.CaptureFixture[str]) -> None:
    run(
        "check",
        "algorithms",
        "--library",
        "smpi",
        "--collective",
        "scan",
        "--algorithm",
        "linear",
        "--seed",
        "2",
        "--json",
    )
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["collective"], row["algorithm"], row["procs"]) == ("sequences", "linked", [7])
    assert row["cases"] > 0
    assert (row["skipped"], row["failures"], row["first_failure"]) == (0, 0, None)


@needs("openmpi")
def test_functions_that_are_not_libcollwises_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library in place every call would come out right, by MPI's own algorithms."""
    monkeypatch.setattr(verification, "preloadable", lambda path, directory: "")
    (result,) = verify_sequences("openmpi", 1)
    assert result.failures == 1
    assert result.first_failure is not None
    assert "the program calls the bcast of" in result.first_failure
    assert "not of libcollwise" in result.first_failure


def entry(call: str, state: int, entered: int = 3, complaint: str = "", by_ours: int = 0) -> bytes:
    return verification._ENTRY.pack(entered, 5, 1, by_ours, state, call.encode(), complaint.encode())


RUNNING, FINISHED, FAILED, STUCK = range(4)
ENDED, KILLED = ProgramRun(0), ProgramRun(9, error_text="a process exited on signal 9\n")


@pytest.mark.parametrize(
    ("board", "ended", "problem"),
    [
        ([entry("the end", FINISHED), entry("the end", FINISHED)], ENDED, ""),
        (
            [entry("call 4", FAILED, 4, "late"), entry("call 3", FAILED, 3, "rank 1 has a wrong byte")],
            KILLED,
            "call 3: rank 1 has a wrong byte",
        ),
        (
            [entry("call 4", STUCK), entry("call 3", RUNNING), entry("call 4", RUNNING)],
            KILLED,
            "no progress (rank 0, 2 in call 4; rank 1 in call 3)",
        ),
        ([entry("call 4", RUNNING)], KILLED, "a process exited on signal 9 (exit code 9) (rank 0 in call 4)"),
        ([], KILLED, "a process exited on signal 9 (exit code 9) (at the start)"),
        (
            [entry("the end", FINISHED)],
            ProgramRun(0, error_text="collwise: warning: rules:3: unknown\n"),
            "collwise: warning: rules:3: unknown",
        ),
    ],
    ids=["nothing", "wrong data", "hang", "crash", "no start", "rules refused"],
)
def test_problems_of_a_sequence(board: list[bytes], ended: ProgramRun, problem: str, tmp_path: Path) -> None:
    (tmp_path / "board").write_bytes(b"".join(board))
    processes = verification._read_board(tmp_path / "board")
    assert verification._problem(ended, processes, tmp_path / "report.json") == problem


def test_calls_that_libcollwise_ran_otherwise_are_found(tmp_path: Path) -> None:
    row = {
        "collective": "bcast",
        "communicator": "",
        "ranks": "0-1",
        "processes": 2,
        "processes_per_node": 2,
        "algorithm": "chain",
        "parameters": "",
        "min_bytes": 8,
        "max_bytes": 8,
        "mean_bytes": 8.0,
        "calls": 4,
        **dict.fromkeys(("seconds", "shortest_seconds", "longest_seconds"), 0.1),
    }
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"collwise_report": 1, "processes": 2, "seconds": 1.0, "rows": [row]}))
    (tmp_path / "board").write_bytes(entry("the end", FINISHED, by_ours=3) + entry("the end", FINISHED))
    processes = verification._read_board(tmp_path / "board")
    said = "libcollwise reports 4 calls by our algorithms, but its rules choose them for 3"
    assert verification._problem(ENDED, processes, report) == said


# Errors that calls by themselves do not show: file, text, its replacement, and a library under which they are found.
MISTAKES = {
    "a node's memory is overwritten before its reader has come": (
        "algorithms/windows.c",
        "!collwise_window_told(window, there->root, COLLWISE_COMBINED, there->combined)",
        "there->combined > chunk",
        "openmpi",
    ),
    "MPI's reduce-scatter gets elements with gaps": (
        "algorithms/mock_ups.c",
        "algorithm->calls_reduce_scatter && !is_filled(type, call->comm)",
        "algorithm->calls_reduce_scatter && !is_filled(type, call->comm) && 0",
        "mpich",
    ),
    "libcollwise does not ask mock-ups": (
        "algorithms/interpose/interpose.c",
        "const char *objection = collwise_objection(algorithm, call);",
        "const char *objection = collwise_procs_objection(algorithm, state->procs);",
        "openmpi",
    ),
    "a non-blocking collective waits for all to call it": (
        "algorithms/interpose/interpose.c",
        "interpose_state *state = interpose_find_state(settings, call->comm);\n    uint64_t",
        "interpose_state *state = interpose_find_state_with_rows(settings, call->comm);\n    uint64_t",
        "openmpi",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_sequences_find_a_mistake(
    mistake: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, yielding_library: str
) -> None:
    file, text, replacement, library = MISTAKES[mistake]
    need(library)
    mistaken_sources(tmp_path, file, text, replacement)
    built_from(tmp_path, monkeypatch)
    if library == "mpich":
        monkeypatch.setenv("LD_PRELOAD", yielding_library)
    seed = secrets.randbelow(MAX_SEED + 1)
    results = verify_sequences(library, seed, 300)
    assert any(result.failures for result in results), f"nothing found from seed {seed} on"
