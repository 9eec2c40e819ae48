"""collwise show defaults, and comparisons of every collective with the defaults of libraries."""

from __future__ import annotations

from pathlib import Path

import pytest

from collwise.algorithms.catalogue import Catalogue
from collwise.models.parameters import CLASSES, Overheads, PathFit, PathParameters
from collwise.models.piecewise import PiecewiseLinear
from collwise.models.single_messages import Hockney
from collwise.validation.libraries import installed
from collwise.validation.libraries.baselines import BASELINES
from tests.command_line import printed
from tests.needs import needs
from tests.studies.cli.model_commands import Capture, done, run

COLLECTIVES = tuple(Catalogue.load().collectives)
NONE = PiecewiseLinear((0.0,), (0.0,))
MESSAGES = {name: Hockney(3e-5, 1e-9) for name in CLASSES}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with parameters for every algorithm, and a store of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLLWISE_STORE", str(tmp_path / "timings.sqlite"))
    fits = {
        one.name: {name: PathFit(MESSAGES, (), 1, True) for name in one.selectable}
        for one in Catalogue.load().collectives.values()
    }
    made = PathParameters("gros", "made up", 1, 65536, 1e-10, False, Overheads(NONE, NONE, NONE), MESSAGES, fits)
    made.save(tmp_path / "all.toml")
    return tmp_path


@needs("mpich")
def test_the_installed_library_is_asked(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = "show defaults --baseline mpich-4 --collective bcast --procs 9 --sizes 1KiB --check"
    _, error = done(asked, capsys)
    assert "the installed library decides the same for 1 call\n" in error
    monkeypatch.setattr(installed, "mpichs_algorithm", lambda *_: "smoke signals")
    code, _, error = run(asked, capsys)
    assert code == 1
    assert "bcast, P = 9, 1 KiB: smoke signals, not binomial" in error
    monkeypatch.setattr(installed, "mpi_installation", lambda _: BUILT)
    code, _, error = run(asked.replace("mpich-4", "openmpi-5.0"), capsys)
    assert (code, error.splitlines()[-1]) == (2, "collwise: Open MPI 5.0 is not installed; Open MPI 4.0.7 is")


class BUILT:
    version, label = "4.0.7", "Open MPI 4.0.7"


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_collective_is_compared(collective: str, capsys: Capture) -> None:
    """Under the schedule engine, with both libraries; the times of their picks are those of the same choices."""
    sizes = "" if collective == "barrier" else "--sizes 1KiB,1MiB"
    extent = f"--collective {collective} --procs 4,6 {sizes} --segments 0,8KiB"
    beside = "--deciders openmpi-4.1,mpich-4"
    for made in (
        f"simulate --platform gros {extent} --engine schedule {beside} -o s.times",
        f"predict --parameters all.toml {extent} -o p.times",
    ):
        done(made, capsys)
    shown, _ = done("compare s.times p.times openmpi-4.1 mpich-4 --json", capsys)
    rows = printed(shown).rows
    assert len(rows) == (2 if collective == "barrier" else 4)
    for name in ("openmpi-4.1", "mpich-4"):
        for row in rows:
            expected = BASELINES[name].decide(collective, row["procs"], row["message_bytes"])
            found = row["picks"][BASELINES[name].title]
            assert found["algorithm"] == (expected.choice.algorithm if expected.choice else expected.algorithm)
            assert (found["seconds"] is None) == (expected.choice is None)
            best = row["best"]
            if all(found[key] == best[key] for key in ("algorithm", "segment_bytes", "parameter")):
                assert (found["seconds"], found["slowdown"]) == (best["seconds"], 0)
    shown = run("compare s.times p.times openmpi-4.1 mpich-4", capsys)[1]
    missing = {
        BASELINES[name].title
        for name in ("openmpi-4.1", "mpich-4")
        for row in rows
        if row["picks"][BASELINES[name].title]["seconds"] is None
    }
    for name in ("openmpi-4.1", "mpich-4"):
        title = BASELINES[name].title
        assert (f"no time for {title}" in shown) == (title in missing)


def test_a_barrier_is_drawn_over_the_processes_alone(here: Path, capsys: Capture) -> None:
    made = "simulate --platform gros --collective barrier --procs 4,6 --engine schedule --deciders mpich-4 -o s.times"
    done(made, capsys)
    _, error = done("compare s.times mpich-4 --figures figures", capsys)
    assert [path.name for path in (here / "figures").iterdir()] == ["gros-barrier-by-procs.png"]
    made = "simulate --platform gros --collective barrier --procs 4 --engine schedule --figures none"
    code, _, error = run(made, capsys)
    assert (code, (here / "none").exists()) == (0, False)
    assert "nothing to draw" in error
