"""--allocation, --node-map and --allocations, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import printed
from tests.studies.cli.model_commands import Capture, done, run

RING = "--platform leonardo --collective allgather --engine schedule --algorithms ring --procs 4 --sizes 8"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLLWISE_STORE", str(tmp_path / "timings.sqlite"))
    Path("map.csv").write_text("host,switch,group\nn1,a,x\nn2,a,x\nn3,b,x\nn4,c,y\n")


def seconds(words: str, capsys: Capture) -> float:
    shown, _ = done(f"simulate {RING} {words} --json", capsys)
    (row,) = printed(shown).rows
    return float(row["seconds"])


def test_a_ring_takes_longer_on_scattered_nodes(capsys: Capture) -> None:
    Path("near.csv").write_text("rank,host\n0,n1\n1,n2\n2,n2\n3,n1\n")
    packed = seconds("--allocation near.csv --node-map map.csv", capsys)
    at_one_switch = seconds("--ppn 1", capsys)
    scattered = seconds("--allocation n[1-4] --node-map map.csv --ppn 1", capsys)
    assert packed < at_one_switch < scattered
    # Hops: of a step between switches one, between groups three; the slowest steps are those to n4 and back.
    assert scattered - at_one_switch > 3 * 1.3e-7


def test_tune_takes_a_job_and_draws(capsys: Capture) -> None:
    asked = "--collective allgather --sizes 8 --procs 4 --algorithms ring,bruck"
    description = Path(__file__).parents[3] / "platforms" / "leonardo.toml"
    Path("mine.toml").write_text(description.read_text().replace('name = "leonardo"', 'name = "mine"'))
    job = "--allocation n[1-4] --node-map map.csv"
    shown, _ = done(f"tune mine.toml {asked} {job} --ppn 1 -o job", capsys)
    assert "Leonardo, CINECA, Booster, allocation n[1-4]" in shown
    again = (
        f"whatif change --platform {Path('job/mine.toml')} --collective allgather --procs 4 --sizes 8B --ppn 1 {job} "
    )
    assert again.replace("n[1-4]", "'n[1-4]'") in shown
    assert Path("job/mine.toml").read_text().count('name = "mine"') == 1
    shown, error = done(f"tune mine.toml {asked} --ppn 1 --allocations 3 -o drawn", capsys)
    assert "over 3 allocations the choices lose" in error
    assert "allgather: over 3 allocations the choices lose" in shown
    assert "allgather: over 3 allocations the choices lose" in Path("drawn/mine.html").read_text()
    done("compare drawn/mine.times drawn/mine-decisions.json", capsys)


def test_traffic_is_that_of_the_steps_over_which_messages_go(capsys: Capture) -> None:
    """Each step of a ring carries P - 1 blocks, and a tree sends its message along P - 1 edges."""
    Path("job.csv").write_text("rank,host\n0,n1\n1,n1\n2,n2\n3,n3\n4,n4\n")
    job = "--platform leonardo --allocation job.csv --node-map map.csv --procs 5 --sizes 1KiB"
    shown, _ = done(f"show schedule {job} --collective allgather --algorithms ring,linear --json", capsys)
    found = printed(shown)
    assert found.facts == {"nodes": 4, "switches": 3, "groups": 2}
    rows = {row["algorithm"]: row for row in found.rows}
    # The steps 1-2, 2-3, 3-4 and 4-0 leave a node, 2-3, 3-4 and 4-0 a switch, 3-4 and 4-0 a group.
    between = [rows["ring"][f"bytes_between_{what}"] for what in ("nodes", "switches", "groups")]
    assert between == [4 * 1024 * steps for steps in (4, 3, 2)]
    # The order is by bytes of the longest steps, and by times where these are equal, as of messages in segments.
    rows = printed(done(f"show schedule {job} --collective bcast --segments 0,256 --json", capsys)[0]).rows
    order = [(row["bytes_between_groups"], row["seconds"]) for row in rows]
    assert order == sorted(order)
    assert 1 < len({sent for sent, _ in order}) < len(order)
    shown, _ = done(f"show schedule {job} --collective bcast --algorithms chain --segments 0 --json", capsys)
    facts = printed(shown).facts
    assert [facts[f"bytes_between_{what}"] for what in ("nodes", "switches", "groups")] == [3072, 2048, 1024]
    _, shown, _ = run(f"show schedule {job} --collective bcast --algorithms linear --segments 0", capsys)
    assert "4 messages, 4 KiB in all, 3 KiB between nodes, 2 KiB between switches, 1 KiB between groups" in shown
