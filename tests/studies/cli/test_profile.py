"""collwise program profile: what a report says, what would be saved, and what was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from collwise.simulator.execution.profiles import profile_of_runs, read_profile
from collwise.validation.select.decisions import DecisionTable, decisions_document
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.times import State, Times
from tests.command_line import printed
from tests.run_reports import OF_AN_APPLICATION, report
from tests.studies.cli.model_commands import Capture, done, run

CALL = {
    "collective": "bcast", "communicator": "MPI_COMM_WORLD", "ranks": "0-15", "processes": 16, "processes_per_node": 1,
    "mpis_own": "no rule", "min_bytes": 1048576, "max_bytes": 2097151, "mean_bytes": 1048576, "calls": 100,
    "seconds": 0.4, "shortest_seconds": 0.3, "longest_seconds": 0.5,
}  # fmt: skip
PART = CALL | {
    "collective": "allreduce", "communicator": "", "ranks": "0-6:2", "processes": 4, "min_bytes": 8, "max_bytes": 15,
    "mean_bytes": 8, "calls": 1000, "seconds": 0.1,
}  # fmt: skip
STARTED = PART | {"collective": "iallreduce", "mpis_own": "non-blocking", "calls": 7, "seconds": 0.02}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write("before.json", CALL, PART, STARTED)
    return tmp_path


def write(name: str, *rows: dict[str, object]) -> None:
    Path(name).write_text(json.dumps({"collwise_report": 1, "processes": 16, "seconds": 2.0, "rows": rows}))


def test_a_report_alone(capsys: Capture) -> None:
    shown, _ = done("program profile before.json", capsys)
    # 0.4 s of all processes, 0.1 and 0.02 s of a quarter of them.
    assert "The mean process spent 430 ms of 2.00 s in collectives (21.5 %)." in shown
    assert "ranks 0-6:2" in shown


def test_expected_savings_on_a_platform(capsys: Capture) -> None:
    asked = "program profile before.json --platform gros --baseline openmpi-4.1 --store s.sqlite"
    found = printed(run(f"{asked} --json -o rules.txt", capsys)[1])
    first, second, third = found.rows
    assert first["saving_seconds"] == pytest.approx(0.4 * (1 - first["tuned_seconds"] / first["default_seconds"]))
    assert first["saving_seconds"] > 0.05
    assert first["share"] == pytest.approx(0.2)
    assert (third["collective"], third["saving_seconds"]) == ("iallreduce", None)
    assert found.facts["saving_seconds"] == pytest.approx(first["saving_seconds"] + second["saving_seconds"] / 4)
    assert found.facts["left_out"] == [
        "7 calls of iallreduce on 4 processes: non-blocking, which libcollwise passes on"
    ]
    rules = [line for line in Path("rules.txt").read_text().splitlines() if line.startswith("bcast")]
    tuned = first["tuned"].split(",")[0]
    assert [line.split()[:5] for line in rules] == [
        ["bcast", "16", "1", "0", "default"],
        ["bcast", "16", "1", "1048576", tuned],
        ["bcast", "16", "1", "2097152", "default"],
        ["bcast", "17", "1", "0", "default"],
    ]
    text = run(asked, capsys)[1]
    assert "a tuned table would save " in text


def test_savings_over_what_the_library_does_not_run(capsys: Capture) -> None:
    """Open MPI 5.0 runs its component han with several processes on a node; the savings are those over tuned."""
    for per_node, baseline, caveat in ((4, "openmpi-5.0", True), (1, "openmpi-5.0", False), (4, "openmpi-4.1", False)):
        write("nodes.json", CALL | {"processes_per_node": per_node})
        asked = f"program profile nodes.json --platform gros --baseline {baseline} --store s.sqlite"
        assert ("runs its component han if that is installed" in done(asked, capsys)[0]) == caveat


def test_the_calls_of_more_processes(capsys: Capture) -> None:
    """The times are simulated, also those after a change; calls of smaller communicators are left out."""
    asked = "program profile before.json --platform gros --baseline openmpi-4.1 --store s.sqlite --procs 62"
    found = printed(run(f"{asked} --change bandwidth=x0.5 --json", capsys)[1])
    (row,) = found.rows
    assert (row["collective"], row["processes"], row["processes_per_node"], row["calls"]) == ("bcast", 62, 1, 100)
    assert row["seconds"] == pytest.approx(100 * row["default_seconds"])
    assert found.facts["saving_seconds"] == pytest.approx(100 * (row["default_seconds"] - row["tuned_seconds"]))
    totals = found.facts["totals"]
    assert totals["default_after"] > totals["default_before"] == pytest.approx(row["seconds"])
    assert "1000 calls of allreduce on 4 processes: their number with 62 is not known" in found.facts["left_out"]
    text = run(asked, capsys)[1]
    assert "With 62 processes, the same calls are simulated to take " in text
    assert "% of the run" not in text
    assert "--after compares measured times" in run(f"{asked} --after before.json", capsys)[2]


def write_decisions(tuned: Choice, seconds: Mapping[Choice, tuple[float, float]], source: str, made_by: str) -> None:
    """Writes d.json, which decides for broadcasts of 1 MiB on 16 processes by times with these half-widths."""
    ours = [choice for choice in seconds if choice != LIBRARY_DECIDES]
    grid = Grid("bcast", tuple(ours), (16,), (1048576,))
    grid = grid.with_besides(lambda p, m: LIBRARY_DECIDES if LIBRARY_DECIDES in seconds else None)
    times, widths = np.array([seconds[choice] for choice in grid.timed]).T[:, :, None, None]
    values = {"seconds": times, "half_width_seconds": widths, "state": np.full(times.shape, State.TIMED, np.int8)}
    known = Times.of_values(grid, values, "bed", source, "MPI")
    table = DecisionTable("bcast", "bed", 1, source, made_by, {16: ((1048576, tuned),)}, known)
    Path("d.json").write_text(json.dumps(decisions_document([table])))


DEFAULT, TUNED = Choice("scatter_allgather"), Choice("chain", 8192)


def test_savings_against_mpis_own_collective_where_it_was_measured(capsys: Capture) -> None:
    for own, saved, rules in ((0.004, "200 ms +- 63.2 ms (x2.00)", 1), (0.0021, "19.0 ms +- 120 ms (x1.05)", 0)):
        seconds = {TUNED: (0.002, 0.0002), LIBRARY_DECIDES: (own, 0.3 * own)}
        write_decisions(TUNED, seconds, "measured", "times measured under MPI")
        asked = "program profile before.json --decisions d.json -o rules.txt --force"
        shown, _ = done(asked, capsys)
        assert saved in shown
        assert "MPI's own" in shown
        assert ("may be no saving at all" in shown) == (not rules)
        assert Path("rules.txt").read_text().count("chain") == rules


def test_calls_for_which_nothing_is_decided_save_an_unknown_time(capsys: Capture) -> None:
    write_decisions(TUNED, {TUNED: (0.002, 0.0002), DEFAULT: (0.004, 0.0004)}, "simulated", "schedule engine")
    for call, begins in ((CALL | {"processes": 8}, "P = 16"), (CALL | {"mean_bytes": 4096}, "1048576 bytes")):
        write("other.json", call)
        shown, _ = done("program profile other.json --decisions d.json", capsys)
        assert f"below the first decision, for {begins}" in shown
        assert "Nothing is known of what a tuned table would save." in shown
        assert "would save 0 ns" not in shown


def test_runs_of_different_programs_are_warned_of(capsys: Capture) -> None:
    asked = "program profile before.json --after after.json"
    write("after.json", CALL, PART, STARTED)
    assert "warning" not in run(asked, capsys)[2]
    write("after.json", CALL | {"calls": 7}, PART)
    said = run(asked, capsys)[2]
    assert "warning: before.json and after.json differ in how often they made 2 of 3 kinds of calls" in said


def test_what_a_later_run_saved(capsys: Capture) -> None:
    ran = {key: value for key, value in CALL.items() if key != "mpis_own"} | {"algorithm": "chain", "seconds": 0.1}
    write("after.json", ran, PART | {"seconds": 0.12})
    asked = "program profile before.json --after after.json"
    rows = {row["collective"]: row for row in printed(run(f"{asked} --json", capsys)[1]).rows}
    assert rows["bcast"]["ran_after"] == "chain"
    assert rows["bcast"]["achieved_seconds"] == pytest.approx(0.3)
    assert rows["allreduce"]["achieved_seconds"] == pytest.approx(-0.02)
    assert rows["iallreduce"]["achieved_seconds"] is None
    shown, _ = done(asked, capsys)
    assert "Saved by the mean process in calls whose algorithm changed: 300 ms." in shown
    # A quarter of the processes lost 0.02 s.
    assert "Saved in calls whose algorithm did not change: -5.00 ms." in shown
    assert "single run" in shown
    write("after.json", CALL | {"mpis_own": "the rule says default"})
    assert "No call changed its algorithm." in run(asked, capsys)[1]


def test_several_runs_have_medians_and_their_range(capsys: Capture) -> None:
    """One disturbed run neither bends the times nor hides."""
    for name, factor in (("one", 1.0), ("two", 9.0), ("three", 1.1)):
        write(f"{name}.json", *(row | {"seconds": factor * row["seconds"]} for row in (CALL, PART)))
    asked = "program profile one.json two.json three.json"
    shown, _ = done(asked, capsys)
    assert "Times are medians of 3 runs, which spent 425 ms, 3.83 s, 468 ms in collectives." in shown
    assert "400 ms to 3.60 s" in shown
    found = printed(run(f"{asked} --json", capsys)[1])
    assert [row["seconds"] for row in found.rows] == pytest.approx([0.44, 0.11])
    assert found.rows[0]["slowest_run_seconds"] == pytest.approx(3.6)
    Path("all.json").write_text(
        profile_of_runs([read_profile(Path(f"{one}.json")) for one in ("one", "two", "three")]).text
    )
    again = printed(run("program profile all.json --json", capsys)[1])
    assert (again.rows, again.facts) == (found.rows, found.facts)
    shown = run(f"{asked} --after one.json --after three.json", capsys)[1]
    assert "single run" not in shown


def test_runs_that_are_not_alike(capsys: Capture) -> None:
    write("after.json", CALL | {"calls": 7}, PART, STARTED)
    asked = "program profile before.json after.json"
    _, said = done(asked, capsys)
    Path("both.json").write_text(
        profile_of_runs([read_profile(Path(f"{one}.json")) for one in ("before", "after")]).text
    )
    assert "warning: the runs of before.json, after.json differ in how often they made 1 of 3 kinds of calls" in said
    code, _, said = run("program profile before.json both.json", capsys)
    assert (code, said.count("\n")) == (2, 1)
    assert "a report already covers several runs; give reports of one run each" in said
    Path("small.json").write_text(report(4, CALL | {"processes": 4}))
    code, _, said = run("program profile before.json small.json", capsys)
    assert (code, said.count("\n")) == (2, 1)
    assert "runs of 4 and 16 processes" in said


def test_calls_on_a_changed_platform(capsys: Capture) -> None:
    Path("report.json").write_text(OF_AN_APPLICATION)
    asked = "program profile report.json --platform gros --change bandwidth=x4 --baseline openmpi-4.1"
    shown, _ = done(asked, capsys)
    assert "no saving known: 1 call of gatherv on 8 processes: their sizes are not known" in shown
    assert "All calls: " in shown
    rows, facts = printed(run(f"{asked} --json", capsys)[1])
    totals = facts["totals"]
    assert totals["tuned_after"] < totals["tuned_before"] <= totals["default_before"]
    timed = [row for row in rows if row["default_changed_seconds"] is not None]
    for row in timed:
        assert row["tuned_changed_seconds"] <= row["default_changed_seconds"] <= row["default_seconds"]
    assert totals["default_after"] == pytest.approx(sum(row["calls"] * row["default_changed_seconds"] for row in timed))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no json", "not JSON; make one with 'collwise program run --report FILE.json'"),
        ("[]", "not a libcollwise JSON report"),
        ('{"collwise_report": 1, "seconds": 1, "rows": []}', "other.json: processes is missing"),
        (
            '{"collwise_report": 1, "processes": 1, "seconds": -1, "rows": []}',
            "seconds = -1; valid: a number",
        ),
        (
            json.dumps({"collwise_report": 1, "processes": 4, "seconds": 1, "rows": [CALL, 7]}),
            "rows[2] = 7; valid",
        ),
        (
            json.dumps({"collwise_report": 1, "processes": 4, "seconds": 1, "rows": [CALL | {"calls": 1.5}]}),
            "rows[1].calls = 1.5; valid: a whole number of at least 0",
        ),
    ],
)
def test_other_files_are_one_error(text: str, said: str, capsys: Capture) -> None:
    Path("other.json").write_text(text)
    code, _, error = run("program profile other.json", capsys)
    assert (code, error.count("\n")) == (2, 1)
    assert said in error
