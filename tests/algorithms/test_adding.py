"""The worked example of docs/adding.md: one C file and one catalogue entry make an algorithm."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from collwise.algorithms import catalogue
from collwise.studies.cli.main import collwise
from tests.algorithms.compiling import built_from, copied_sources
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
    with (tmp_path / "CMakeLists.txt").open("r+", encoding="utf-8") as file:
        text = file.read()
        file.seek(0)
        # Optimizing takes longer than it saves here.
        file.write(text.replace("project(collwise C)", 'project(collwise C)\nset(CMAKE_C_FLAGS_RELEASE "-O0")'))
    built_from(tmp_path, monkeypatch)
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
