"""The worked example of docs/adding.md: one C file and one catalogue entry make an algorithm."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from collwise.algorithms import catalogue
from collwise.simulator.execution import installations as engines
from collwise.studies.cli.main import collwise
from tests.algorithms.compiling import copied_sources
from tests.command_line import printed
from tests.needs import needs

ROOT = Path(__file__).resolve().parents[2]


def blocks_of_the_guide() -> tuple[str, str]:
    """The C file and the catalogue entry that the guide shows."""
    guide = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
    (c_file,) = re.findall(r"```c\n(.*?)```", guide, re.DOTALL)
    (entry,) = re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    return c_file, entry


@needs("smpi")
def test_one_file_and_one_entry_make_an_algorithm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    c_file, entry = blocks_of_the_guide()
    copied_sources(tmp_path)
    (tmp_path / "algorithms/bcast/two_way_chain.c").write_text(c_file, encoding="utf-8")
    with (tmp_path / "algorithms/catalogue.toml").open("a", encoding="utf-8") as file:
        file.write("\n" + entry)
    build = tmp_path / "build" / "smpi-system"
    configure = ["cmake", "-S", str(tmp_path), "-B", str(build), "-G", "Ninja", "-DCOLLWISE_MPI=smpi"]
    # Compiling takes longer here than simulating, and simulated times do not depend on it.
    configure.append("-DCMAKE_C_FLAGS_RELEASE=-O0")
    for command in (["env", "SMPI_PRETEND_CC=1", *configure, "-DCMAKE_C_COMPILER=smpicc"],
                    ["cmake", "--build", str(build), "--target", "verify", "benchmark"]):  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.setattr(engines, "builds_folder", lambda: tmp_path / "build")
    monkeypatch.setattr(catalogue, "CATALOGUE_PATH", tmp_path / "algorithms/catalogue.toml")
    catalogue.Catalogue.load.cache_clear()
    try:
        choice = ["--collective", "bcast", "--algorithm", "two_way_chain", "--library", "smpi", "--json"]
        verified = CliRunner().invoke(collwise, ["check", "algorithms", *choice, "--quick"])
        assert verified.exit_code == 0, verified.output
        (result,) = printed(verified.stdout).rows
        assert result["cases"] > 50
        assert result["failures"] == 0

        points = ["--platform", "grisou", "--procs", "16", "--sizes", "4MiB", "--store", str(tmp_path / "store.db")]
        simulated = CliRunner().invoke(
            collwise, ["simulate", "--collective", "bcast", "--algorithms", "two_way_chain,chain", *points, "--json"]
        )
        assert simulated.exit_code == 0, simulated.output
        seconds = {row["algorithm"]: row["seconds"] for row in printed(simulated.stdout).rows}
        # Half as many steps to fill the pipeline, but the root sends each segment twice.
        assert 1 < seconds["two_way_chain"] / seconds["chain"] < 2.1
    finally:
        catalogue.Catalogue.load.cache_clear()
