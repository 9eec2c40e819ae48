"""--thresholds FILE: what simulate and run make of M1, M2 and S."""

from __future__ import annotations

from pathlib import Path

import pytest

from collwise.common.errors import warn
from collwise.models.single_messages import Thresholds
from collwise.validation.times.grid import with_bounds
from tests.command_line import called, printed
from tests.needs import needs

KNOWN = Thresholds(65536, 5120, 60000)
SIMULATE = ("simulate", "--platform", "grisou", "--procs", "4")


@pytest.mark.parametrize(
    ("thresholds", "asked", "expected"),
    [
        (KNOWN, "", ""),
        (KNOWN, "gather=linear;bcast=default", "gather=linear;bcast=default"),
        (KNOWN, "gather=lmo", "gather=lmo,bound_bytes=5120,limit_bytes=59999"),
        (KNOWN, " scatter = lmo ;bcast=chain,segment_bytes=3",
         " scatter = lmo ,bound_bytes=65536;bcast=chain,segment_bytes=3"),
        (KNOWN, "gather=lmo,segment_bytes=7", "gather=lmo,segment_bytes=7"),
        (Thresholds(gather_irregular_from_bytes=9), "gather=lmo", "gather=lmo,bound_bytes=9"),
    ],
)  # fmt: skip
def test_lists(thresholds: Thresholds, asked: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert with_bounds(asked, thresholds) == expected
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("thresholds", [None, Thresholds(), Thresholds(65536, None, 60000)])
def test_without_its_threshold_it_is_linear(thresholds: Thresholds | None, capsys: pytest.CaptureFixture[str]) -> None:
    warn.cache_clear()
    assert with_bounds("gather=lmo", thresholds) == "gather=lmo"
    name = "gather_irregular_from_bytes"
    why = f"give {name} by --thresholds FILE" if thresholds is None else f"the file has no {name}"
    assert capsys.readouterr().err == f"collwise: warning: gather lmo runs as linear: {why}\n"


def simulated(folder: Path, *arguments: str) -> tuple[dict[tuple[str, int], dict], str]:
    sizes = ("--collective", "gather", "--algorithms", "linear,lmo", "--sizes", "4KiB,6KiB,128KiB", "--json")
    done = called(*SIMULATE, *sizes, *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return {(r["algorithm"], r["message_bytes"]): r for r in printed(done.stdout).rows}, done.stderr


@needs("smpi")
def test_simulate(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(
        "[thresholds]\ngather_irregular_from_bytes = 5120\ngather_regular_from_bytes = 65536"
    )
    found, said = simulated(tmp_path, "--thresholds", "t.toml")
    assert "thresholds" not in said
    assert {(r["segment_bytes"], r["limit_bytes"]) for (name, _), r in found.items() if name == "lmo"} == {
        (5120, 65535)
    }
    same = [size for size in (4096, 6144, 131072) if found["lmo", size]["seconds"] == found["linear", size]["seconds"]]
    assert same == [4096, 131072]
    # Two barriers and two linear gathers, each with its latencies again.
    assert found["lmo", 6144]["seconds"] > 2 * found["linear", 4096]["seconds"]

    found, said = simulated(tmp_path)
    assert said.count("lmo runs as linear") == 1
    assert "gather lmo runs as linear" in said
    assert all(found["lmo", size]["seconds"] == found["linear", size]["seconds"] for size in (4096, 6144, 131072))
