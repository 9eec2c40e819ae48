"""collwise show schedule, and --engine schedule, from the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from collwise.platforms import write_description
from tests.command_line import printed
from tests.free import free
from tests.studies.cli.model_commands import Capture, done, run

ASKED = "show schedule --platform gros.toml --collective reduce --algorithms binomial --procs 8 --sizes 64KiB"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a description of Gros without overheads."""
    monkeypatch.chdir(tmp_path)
    Path("gros.toml").write_text(write_description(free()))
    monkeypatch.setenv("COLLWISE_STORE", str(tmp_path / "timings.sqlite"))


def test_messages_rounds_path_and_picture(capsys: Capture) -> None:
    shown, _ = done(f"{ASKED} --draw reduce.png --json", capsys)
    assert Path("reduce.png").stat().st_size > 10_000
    rows, found = printed(shown)
    assert (found["messages"], found["bytes"], found["rounds"]) == (56, 7 * 2**16, 3)
    parts = {row["part"]: row for row in rows}
    assert sum(row["seconds"] for row in parts.values()) == pytest.approx(found["seconds"])
    assert parts["latency"]["count"] == 3


def test_a_barrier_has_no_size_and_lmo_without_bounds_is_linear(capsys: Capture) -> None:
    code, shown, _ = run("show schedule --platform gros --collective barrier --algorithms bruck --procs 4", capsys)
    assert (code, shown.partition(":")[0]) == (0, "barrier bruck, P = 4")
    asked = "show schedule --platform gros --collective gather --algorithms lmo --procs 4 --sizes 8KiB"
    code, shown, error = run(asked, capsys)
    assert "m = 8 KiB, without bounds: the linear algorithm" in shown
    assert "gather lmo runs as linear" in error
    Path("lmo.toml").write_text("[thresholds]\ngather_irregular_from_bytes = 1024\n")
    code, shown, error = run(f"{asked} --thresholds lmo.toml", capsys)
    assert (code, error) == (0, "")
    assert "m = 8 KiB, parts below 1 KiB" in shown


def test_platform_xml_of_unequal_hosts_is_for_smpi(capsys: Capture) -> None:
    done("platforms show exact-heterogeneous -o own.xml", capsys)
    code, _, error = run("simulate --engine schedule --platform own.xml --collective bcast --procs 4", capsys)
    assert code == 2
    assert (
        "platform 'own' is platform XML that has no description: <host> 'exact-2' differs from 'exact-1' in its "
        "attributes"
    ) in error


def test_ranks_are_placed_as_asked(tmp_path: Path, capsys: Capture) -> None:
    """Of a ring over two nodes, blocks send most messages within a node, cyclic placement none."""
    point = "--collective allgather --algorithms ring --procs 96 --sizes 64KiB"
    asked = f"show schedule --platform stampede2 {point} --json"
    block, cyclic = (
        printed(run(f"{asked} --placement {how}", capsys)[1]).facts["seconds"] for how in ("block", "cyclic")
    )
    assert cyclic > 2 * block
    file = tmp_path / "ranks.txt"
    file.write_text("".join(f"stampede2-{1 + rank // 48}\n" for rank in range(96)))
    assert printed(run(f"{asked} --placement {file}", capsys)[1]).facts["seconds"] == block


def test_shares_of_the_critical_path_are_the_whole(capsys: Capture) -> None:
    _, shown, _ = run(
        "show schedule --platform gros.toml --collective bcast --algorithms binomial --procs 4 --sizes 8KiB", capsys
    )
    shares = [float(share) for share in re.findall(r"([\d.]+) %", shown)]
    assert len(shares) == 3
    assert sum(shares) == pytest.approx(100, abs=0.2)
