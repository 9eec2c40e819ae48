"""collwise platforms ranks from the command line."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from collwise.models.parameters import FittedParameters
from collwise.models.single_messages import Hockney
from collwise.platforms import load
from collwise.platforms.linear_costs import point_to_point
from tests.command_line import called, printed
from tests.needs import needs

PLATFORM = load("hcl16")


def collwise(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return called("platforms", "ranks", "--platform", "hcl16", *arguments, cwd=folder)


@pytest.fixture
def parameters(tmp_path: Path) -> Path:
    """The parameters of the first nodes in table 7.1 of the thesis."""
    truth = point_to_point(PLATFORM)
    hockney = Hockney(truth.alpha_seconds, truth.beta_seconds_per_byte)
    FittedParameters("hockney", "two-sizes", "hcl16", "a test", 16, 65536, 0.0, hockney).save(tmp_path / "p.toml")
    return tmp_path / "p.toml"


@needs("smpi")
def test_table_json_and_file(tmp_path: Path, parameters: Path) -> None:
    asked = ("--collective", "gather", "--procs", "8", "--sizes", "1KiB,16KiB", "--parameters", str(parameters))
    model = ("--model", "hockney_heterogeneous", "--common")
    done = collwise(tmp_path, *asked, *model, "-o", "hosts", "--json")
    assert done.returncode == 0, done.stderr
    found = printed(done.stdout).rows
    assert [row["message_bytes"] for row in found] == [1024, 16384]
    assert found[0]["hosts"] == found[1]["hosts"] == (tmp_path / "hosts").read_text().split("\n")[:-1]
    assert found[0]["hosts"] == [PLATFORM.hosts[node] for node in found[0]["mapping"]]
    assert found[0]["simulated_seconds"] <= found[0]["simulated_default_seconds"]

    done = collwise(tmp_path, *asked, *model)
    assert done.returncode == 0, done.stderr
    assert " ".join(map(str, found[0]["mapping"])) in done.stdout


def test_help_says_what_to_do_with_the_file(tmp_path: Path) -> None:
    words = " ".join(collwise(tmp_path, "--help").stdout.split())
    assert "mpirun --map-by seq --hostfile FILE" in words
