"""collwise guidelines on the command line: in SMPI, on a real library, for a decision table, and wrong input."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

import collwise
from collwise.platforms import load
from collwise.simulator.execution.interposed import LibraryOptions
from collwise.studies.cli.main import main
from collwise.validation.guidelines.checks import GUIDELINES
from collwise.validation.libraries.baselines import BASELINES
from collwise.validation.libraries.pgmpi import parse_profile
from collwise.validation.times.grid import case_of
from tests.command_line import printed
from tests.needs import each, needs

Capture = pytest.CaptureFixture[str]


def run(words: str, code: int = 0) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert (ended.value.code or 0) == code


@needs("smpi")
def test_a_selector_is_repaired_in_simulation(tmp_path: Path, capsys: Capture) -> None:
    """SMPI's own gather for Intel MPI is slower than its gatherv: a table and a profile repair it."""
    asked = (
        f"--platform gros --library impi --collective gather,scatter --procs 4 --sizes 8,64,1KiB --store {tmp_path}/s"
    )
    run(f"guidelines simulate {asked} --json -o {tmp_path}/out --figures {tmp_path}/figures")
    rows, facts = printed(capsys.readouterr().out)
    (found,) = facts["libraries"]
    assert found["violations_before"]["pattern"] > 0
    assert found["violations_after"]["pattern"] == 0
    assert all(one["repaired"] for one in found["outcomes"] if one["guideline"] in GUIDELINES)
    assert found["largest_gain"]["gain"] > 1.01
    rules = tmp_path / "out" / "gros-impi.rules"
    LibraryOptions(rules).check()
    repaired = {(one["collective"], one["message_bytes"]) for one in found["repairs"]}
    profiles = [parse_profile(file.read_text()) for file in (tmp_path / "out").glob("*.prf")]
    assert {
        (one.function[4:].lower(), size) for one in profiles for size in (8, 64, 1024) if one.lookup(size)
    } == repaired
    run(f"guidelines simulate {asked} --csv")
    assert len(list(csv.DictReader(io.StringIO(capsys.readouterr().out)))) == len(rows)
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["guidelines-gros-impi-4.png"]


def test_recorded_decisions_are_repaired_with_many_processes(tmp_path: Path, capsys: Capture) -> None:
    """Decisions of Open MPI 4.1 and MPICH 4 on 32 nodes of 16; MPICH's pairwise reduce_scatter_block is not known."""
    asked = f"--collective reduce,reduce_scatter_block --procs 512 --ppn 16 --sizes 32KiB --store {tmp_path}/s"
    run(f"guidelines simulate --platform jupiter --engine schedule {asked} --json -o {tmp_path}/out")
    rows, facts = printed(capsys.readouterr().out)
    openmpi, mpich = facts["libraries"]
    assert "reduce_scatter_block, P = 512" in mpich["failed"]
    assert not openmpi["failed"]
    assert openmpi["violations_before"]["pattern"] > 0
    assert openmpi["violations_after"]["pattern"] == 0
    mine = [row for row in rows if row["library"].startswith("Open MPI") and row["collective"] == "reduce"]
    times = {row["phase"]: row["seconds"] for row in mine}
    assert times["after"] == min(row["against_seconds"] for row in mine)
    decided = BASELINES["openmpi-4.1"].choice("reduce", 512, 32768)
    assert decided is not None
    with collwise.session(tmp_path / "s", engine="schedule") as context:
        case = case_of("reduce", decided, 512, 32768, 16)
        assert context.simulate(load("jupiter"), [case]).timings[case].seconds == times["before"]
    LibraryOptions(tmp_path / "out" / "jupiter-openmpi-4.1.rules").check()
    run(f"guidelines simulate --platform jupiter --engine schedule {asked} --json -o {tmp_path}/out")
    assert "jupiter-openmpi-4.1.rules and the files that belong to it are replaced" in capsys.readouterr().err


@needs("smpi")
def test_what_a_check_found_is_not_simulated_again(tmp_path: Path, capsys: Capture) -> None:
    asked = f"--platform gros --library ompi --collective scan --procs 4 --sizes 8,64 --store {tmp_path}/s"
    run(f"guidelines simulate {asked}")
    first = capsys.readouterr().out
    run(f"guidelines simulate {asked}")
    without_times = re.compile(r"the check took.*")
    assert without_times.sub("", first) == without_times.sub("", capsys.readouterr().out)


@needs("smpi")
def test_a_selector_that_fails_does_not_hide_the_others(tmp_path: Path, capsys: Capture) -> None:
    """SMPI's broadcast for Intel MPI never ends on 8 processes, nor do those by its allgatherv and allreduce."""
    run(
        f"guidelines simulate --platform gros --collective bcast --procs 8 --sizes 64KiB --json --store {tmp_path}/s", 1
    )
    shown = capsys.readouterr()
    assert [one["library"].split()[1] for one in printed(shown.out).facts["libraries"]] == ["ompi", "mpich", "mvapich2"]
    assert "SMPI's impi (Intel MPI): no call has a time" in shown.err


def profile(name: str, procs: int, first: int) -> str:
    return f"MPI_Scatter\n{procs}\n1\n2 scatter_as_{name}\n1\n{first} 1024 2\n"


def test_profiles_of_pgmpitunelib_become_a_table(tmp_path: Path) -> None:
    """The rules hold for any number of processes on a node, and for these process counts and sizes only."""
    files = [tmp_path / f"{name}.prf" for name in ("more", "few")]
    for file, text in zip(files, (profile("scatterv", 8, 0), profile("bcast", 4, 16)), strict=True):
        file.write_text(text)
    run(f"export {files[0]} {files[1]} --format collwise -o {tmp_path}/table")
    LibraryOptions(tmp_path / "table").check()
    assert [line for line in (tmp_path / "table").read_text().splitlines() if line and line[0] != "#"] == [
        "scatter 4 1 0 default",
        "scatter 4 1 16 gl21_bcast",
        "scatter 4 1 1025 default",
        "scatter 5 1 0 default",
        "scatter 8 1 0 gl22_scatterv",
        "scatter 8 1 1025 default",
        "scatter 9 1 0 default",
    ]


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ("", "--format openmpi: profiles"),
        ("--format collwise decisions.json", "decisions.json: not a profile"),
        ("--format collwise again.prf", "again.prf: another profile of MPI_Scatter for 4 processes"),
        ("--format collwise unknown.prf", "unknown.prf: MPI_Scatter: unknown mock-up 'scatter_as_gather'"),
    ],
)
def test_wrong_profiles(
    others: str, message: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "again"):
        Path(f"{name}.prf").write_text(profile("bcast", 4, 0))
    Path("unknown.prf").write_text(profile("gather", 8, 0))
    run(f"export one.prf {others} -o table", 2)
    assert message in capsys.readouterr().err
    assert not Path("table").exists()


@pytest.mark.parametrize("library", each("openmpi", "mpich"))
def test_a_real_library(library: str, tmp_path: Path, capsys: Capture) -> None:
    """Times of two launches prove nothing about violations, but everything runs, libcollwise included."""
    asked = f"--library {library} --collective gather --procs 2 --sizes 8 --launches 2 --repetitions 3"
    run(f"guidelines measure {asked} --rule share --share 0 --json --store {tmp_path}/s")
    rows, facts = printed(capsys.readouterr().out)
    (found,) = facts["libraries"]
    assert {one["guideline"] for one in rows} == {"GL11", "GL12", "GL13"}
    assert all(one["seconds"] > 0 for one in rows)
    if found["violations_before"]["pattern"]:
        assert "gather 2 2 8 gl1" in found["rules"]


@needs("smpi")
def test_a_decision_table_is_checked(tmp_path: Path, capsys: Capture) -> None:
    """A linear allreduce is slower than the binomial reduction and broadcast of the catalogue."""
    decisions = tmp_path / "decisions.json"
    entry = {"algorithm": "linear", "segment_bytes": 0, "parameter": 0, "limit_bytes": 0, "from_bytes": 0}
    table = {"format": "collwise decisions 3", "collective": "allreduce", "platform": "gros", "processes_per_node": 1}
    decisions.write_text(json.dumps([{**table, "made_by": "hand", "rules": {"8": [entry]}}]))
    run(f"guidelines decisions {decisions} --platform gros --sizes 64KiB --json --store {tmp_path}/s")
    found = printed(capsys.readouterr().out)
    assert {one["guideline"] for one in found.rows} <= {"GL5", "GL6", "GL7"}
    best = min(found.rows, key=lambda one: one["parts_seconds"])
    assert best["parts_seconds"] < 0.99 * best["seconds"]
    assert [part["collective"] for part in best["parts"]] == [
        part.collective for part in GUIDELINES[best["guideline"]].parts
    ]
