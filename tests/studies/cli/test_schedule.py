"""collwise show schedule, and --engine schedule, from the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import collwise
from collwise.common.units import format_seconds
from collwise.platforms import write_description
from collwise.studies.present.shown import shown as presented
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
    shown, _ = done(f"{ASKED} --draw reduce.png", capsys)
    assert "56 messages, 448 KiB in all" in shown
    assert "no overheads" in shown
    assert Path("reduce.png").stat().st_size > 10_000

    shown, _ = done(f"{ASKED} --json", capsys)
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


def test_the_title_names_the_engine_and_one_case_is_no_plural(capsys: Capture) -> None:
    asked = "simulate --engine schedule --platform gros --collective bcast --algorithms linear --procs 4 --sizes 8KiB"
    shown, _ = done(asked, capsys)
    assert shown.startswith("bcast on gros, simulated by schedule engine")
    assert "\n1 case, 0 of them already in the store" in shown


def test_platform_xml_of_unequal_hosts_is_for_smpi(capsys: Capture) -> None:
    done("platforms show exact-heterogeneous -o own.xml", capsys)
    code, _, error = run("simulate --engine schedule --platform own.xml --collective bcast --procs 4", capsys)
    assert code == 2
    assert (
        "platform 'own' is platform XML that has no description: <host> 'exact-2' differs from 'exact-1' in its "
        "attributes"
    ) in error


def test_a_selection_by_the_schedule_engine_needs_no_simulator(tmp_path: Path, capsys: Capture) -> None:
    swept = "--platform gros --collective allreduce --procs 4,8 --sizes 1KiB,1MiB --engine schedule"
    shown, _ = done(f"simulate {swept} -o {tmp_path}/s.times --json", capsys)
    best = min(
        (row["seconds"], row["algorithm"])
        for row in printed(shown).rows
        if (row["procs"], row["message_bytes"]) == (8, 2**20)
    )
    shown, _ = done(f"select {tmp_path}/s.times --json", capsys)
    assert best[1] in shown


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
    code, _, error = run(f"{asked} --placement cycles", capsys)
    assert code == 2
    assert error.count("\n") == 1
    assert "unknown placement 'cycles'; did you mean cyclic?" in error


def test_shares_of_the_critical_path_are_the_whole(capsys: Capture) -> None:
    _, shown, _ = run(
        "show schedule --platform gros.toml --collective bcast --algorithms binomial --procs 4 --sizes 8KiB", capsys
    )
    shares = [float(share) for share in re.findall(r"([\d.]+) %", shown)]
    assert len(shares) == 3
    assert sum(shares) == pytest.approx(100, abs=0.2)


def test_the_times_of_one_call_say_what_it_should_use(tmp_path: Path) -> None:
    with collwise.session(tmp_path / "s.sqlite", "schedule") as context:
        one = collwise.simulate("gros", "alltoall", procs=64, sizes="8KiB", context=context)
        two = collwise.simulate("gros", "alltoall", procs=64, sizes="8KiB,16KiB", context=context)
    seconds = {choice.algorithm: value for choice, value in one["alltoall"].at_point(64, 8192).items()}
    faster = {name: value for name, value in seconds.items() if name != "linear"}
    first, second = sorted(faster, key=lambda name: faster[name])[:2]
    assert seconds["linear"] < faster[first]
    times = {name: format_seconds(value) for name, value in seconds.items()}
    told = [part for part in presented(one).parts if isinstance(part, str)]
    assert (
        f"alltoall on P = 64, m = 8 KiB: use {first}, which takes {times[first]}; the next algorithm, {second}, takes "
        f"{times[second]}"
    ) in told
    assert any(line.startswith(f"linear seems faster ({times['linear']}), but ") for line in told)
    assert not any("use " in part for part in presented(two).parts if isinstance(part, str))
