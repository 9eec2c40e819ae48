"""collwise whatif and sweep from the command line: tables, JSON, figures and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from collwise.common.errors import warn
from collwise.platforms import load, write_description
from collwise.validation.times.defaults import USUAL_COLLECTIVES
from tests.command_line import printed
from tests.free import free
from tests.needs import needs
from tests.studies.cli.model_commands import Capture, done, run

POINTS = "--platform gros.toml --collective allreduce --procs 31,32 --sizes 1KiB,1MiB --segments 8KiB"
ASKED = f"whatif change {POINTS}"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a description of Gros without overheads."""
    monkeypatch.chdir(tmp_path)
    Path("gros.toml").write_text(write_description(free()))
    monkeypatch.setenv("COLLWISE_STORE", str(tmp_path / "timings.sqlite"))
    warn.cache_clear()  # each warning is printed once


def test_an_assumed_memory_rate_is_said(capsys: Capture) -> None:
    done("platforms new hdr --interconnect infiniband-hdr100 --nodes 16 --ppn 8 -o hdr.toml", capsys)
    asked = "--platform hdr.toml --collective allreduce --procs 128 --sizes 1MiB --segments 0"
    _, said = done(f"whatif change {asked} --change bandwidth=x2", capsys)
    assert "a node of 'hdr' are assumed to share 20 GB/s of memory; 'collwise whatif sweep --factors memory=" in said
    swept, said = done(f"whatif sweep {asked} --factors memory=x0.5:x5 --for openmpi-4.1", capsys)
    assert "are assumed to share" not in said
    assert "memory x0.5 to x5 of 20 GB/s" in swept
    assert (
        "are assumed to share" not in done(f"whatif change {asked} --ppn 1 --procs 16 --change bandwidth=x2", capsys)[1]
    )


def test_json(capsys: Capture) -> None:
    shown, _ = done(f"{ASKED} --change bandwidth=x0.5 --change latency=x2 --json", capsys)
    rows, facts = printed(shown)
    assert facts["changes"] == [{"name": "bandwidth", "value": "x0.5"}, {"name": "latency", "value": "x2"}]
    assert len(rows) == 4
    for point in rows:
        assert point["after_seconds"] == pytest.approx(point["ratio"] * point["before_seconds"])
        assert point["kept_slowdown"] >= 0


def test_halving_the_largest_part_may_save_little(capsys: Capture) -> None:
    """The promised time is that of the choice alone on the platform with the change that is named."""
    asked = f"{ASKED} --change bandwidth=x0.5 --json"
    rows = printed(done(asked, capsys)[0]).rows
    assert {row["relief_before"] for row in rows} == {"latency x0.5", "bandwidth x2"}
    one = rows[0]
    algorithm, _, segment = one["before"].partition(", ")
    assert not segment
    change = one["relief_before"].replace(" ", "=")
    asked = f"whatif change {POINTS} --algorithms {algorithm} --change {change} --json"
    (again,) = (
        row for row in printed(done(asked, capsys)[0]).rows if row["message_bytes"] == 1024 and row["procs"] == 31
    )
    assert one["relieved_before"] == pytest.approx(again["ratio"])
    assert again["ratio"] > 1 - one["share_before"] / 2 - 1e-6
    shown, _ = done(f"{ASKED} --change bandwidth=x0.5", capsys)
    assert f"; {one['relief_before']}: x{one['relieved_before']:.2f}" in shown
    assert "if other processes wait for this part as well" in shown


def test_an_interconnect_is_a_platform_with_room_for_the_processes(capsys: Capture) -> None:
    asked = "--platform infiniband-hdr100 --ppn 2 --procs 40 --sizes 1KiB --collective bcast"
    shown, said = done(f"whatif change {asked} --change latency=x2", capsys)
    assert "bcast on infiniband-hdr100-x20, latency x2" in shown
    assert "assumed for infiniband-hdr100-x20: 20 nodes, one switch" in said


def test_collectives_are_by_default_those_that_are_tuned(capsys: Capture) -> None:
    shown, _ = done("whatif change --platform gros.toml --procs 4 --sizes 1KiB --change latency=x2 --json", capsys)
    assert printed(shown).facts["collective"] == USUAL_COLLECTIVES


def test_the_changed_platform_can_be_written(capsys: Capture) -> None:
    asked = "platforms show gros --change nodes=40 --change placement=cyclic -o small.toml"
    code, shown, said = run(asked, capsys)
    assert (code, shown) == (0, "small.toml: 40 hosts\n")
    assert "a description has no placement" in said
    assert load("small.toml").max_procs(1) == 40
    done("platforms show small.toml --change bandwidth=x2 -o other.xml", capsys)
    done("platforms show other.xml -o other.toml", capsys)
    written = load("other.xml").xml_text().replace('id="gros-nodes-40-bandwidth-x2"', 'id="other"')
    assert load("other.toml").xml_text() == written
    done("platforms show hcl16 -o hosts.xml", capsys)
    assert "platform XML that has no description" in run("platforms show hosts.xml -o other.toml --force", capsys)[2]


@needs("smpi")
def test_smpi(capsys: Capture) -> None:
    algorithms = "--algorithms ring,rabenseifner"
    asked = f"whatif change --platform gros --collective allreduce --procs 8 --sizes 64KiB {algorithms}"
    shown, _ = done(f"{asked} --change bandwidth=x0.5 --engine smpi", capsys)
    assert "SimGrid" in shown


def test_the_help_lists_every_change(capsys: Capture) -> None:
    _, shown, _ = run("whatif change --help", capsys)
    assert "degraded_link=3:x0.1: the rate of one node's link" in " ".join(shown.split())


def test_points_by_default_fit_on_both_platforms(capsys: Capture) -> None:
    asked = "whatif change --platform gros --collective barrier --change nodes=12 --json"
    found = printed(run(asked, capsys)[1]).rows
    assert [point["procs"] for point in found] == [4, 8, 12]
